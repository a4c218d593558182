//! Cluster API provider kubeadm-bootstrap as a WebAssembly component: turns a KubeadmConfig into the bootstrap data of
//! its machine.
//!
//! - [`decide`]: which stage a KubeadmConfig is in; [`generate`]: the pass that follows from it; [`conditions`]: what it says
//! - [`lock`]: only one machine initializes; [`token`], [`discovery_file`]: how the others are let in and find the cluster
//! - [`files`], [`template`]: what is placed on the machine
//! - [`kubeadm`]: what kubeadm reads, in the API of the machine's Kubernetes [`version`]
//! - [`userdata`], [`cloud_config`], [`ignition`]: how all of it is written

pub mod cloud_config;
pub mod conditions;
pub mod config;
pub mod conversion;
pub mod decide;
pub mod discovery_file;
pub mod files;
pub mod generate;
pub mod ignition;
pub mod kubeadm;
pub mod lock;
pub mod template;
pub mod token;
pub mod userdata;
pub mod version;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Bootstrap, BootstrapData, Context, Conversion, Description, Kind, Problem, Provider};
use serde_json::Value;

/// Cluster API's kubeadm bootstrap provider.
#[derive(Clone, Copy, Debug)]
pub struct KubeadmBootstrap;

impl Provider for KubeadmBootstrap {
    fn describe() -> Descriptor {
        Description::new("kubeadm-bootstrap", env!("CARGO_PKG_VERSION"))
            .kind(
                Kind::new(Role::Bootstrap, include_str!("../crds/kubeadmconfigs.json"))
                    .own("spec.joinConfiguration.discovery"),
            )
            .kind(Kind::new(Role::Template, include_str!("../crds/kubeadmconfigtemplates.json")))
            .reads("cluster.x-k8s.io", "Machine")
            .reads("", "ConfigMap")
            .writes("", "ConfigMap")
            .writes("", "Secret")
            .workload_reads("", "Secret")
            .workload_writes("", "Secret")
            // `files[].contentFrom` and `users[].passwdFrom` may name any Secret.
            .secret("*")
            .pki()
            .build()
    }
}

impl Bootstrap for KubeadmBootstrap {
    fn generate(cx: &mut Context<'_>, object: &Value) -> Result<Option<BootstrapData>, Problem> {
        generate::generate(cx, object)
    }

    /// Everything that a KubeadmConfig leads to is owned by it or by its Cluster.
    fn release(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
        Ok(true)
    }
}

impl Conversion for KubeadmBootstrap {
    fn convert(object: Value, to: &str) -> Result<Value, Problem> {
        conversion::convert(object, to).map_err(|error| Problem::invalid("ConversionFailed", error.to_string()))
    }
}

capwasm_sdk::export_interfaces!(KubeadmBootstrap: descriptor, bootstrap, conversion);
