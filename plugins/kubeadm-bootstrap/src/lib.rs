//! Cluster API provider kubeadm-bootstrap as a WebAssembly component: turns a KubeadmConfig into the bootstrap data of
//! its machine.
//!
//! - [`decide`]: which stage a KubeadmConfig is in; [`generate`]: the pass that follows from it
//! - [`lock`]: only one machine initializes; [`token`] and [`discovery`]: how the others are let in and find the cluster
//! - [`certificates`] and [`files`]: what is placed on the machine
//! - [`kubeadm`], [`cloud_config`], [`yaml`]: how it is written

pub mod certificates;
pub mod cloud_config;
pub mod config;
pub mod decide;
pub mod discovery;
pub mod files;
pub mod generate;
pub mod kubeadm;
pub mod lock;
pub mod token;
pub mod yaml;

use capwasm_sdk::api::descriptor::{Descriptor, Role};
use capwasm_sdk::{Bootstrap, BootstrapData, Context, Description, Kind, Problem, Provider};
use serde_json::Value;

/// The provider.
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

capwasm_sdk::export_bootstrap_provider!(KubeadmBootstrap);
