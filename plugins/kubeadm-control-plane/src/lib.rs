//! Cluster API provider kubeadm-control-plane as a WebAssembly component: keeps the machines that run a cluster's API
//! servers, one step at a time.
//!
//! - [`observe`]: what is read; [`decide`]: the step that follows; [`reconcile`]: the pass that carries it out
//! - [`clone`]: the three objects of a new machine
//! - [`certificates`], [`kubeconfig`]: the Secrets that a control plane must have
//! - [`status`]: counters and conditions

// One file for both kubeadm providers; a crate of its own would be more than its hundred lines deserve.
#[path = "../../kubeadm-bootstrap/src/certificates.rs"]
pub mod certificates;
pub mod clone;
pub mod decide;
pub mod kubeconfig;
pub mod observe;
pub mod reconcile;
pub mod status;

use capwasm_sdk::api::descriptor::{Descriptor, Role};
use capwasm_sdk::{Context, ControlPlane, ControlPlaneAnswer, Description, Kind, Problem, Provider};
use serde_json::Value;

/// The provider.
#[derive(Clone, Copy, Debug)]
pub struct KubeadmControlPlane;

impl Provider for KubeadmControlPlane {
    fn describe() -> Descriptor {
        let mut description = Description::new("kubeadm-control-plane", env!("CARGO_PKG_VERSION"))
            .kind(
                Kind::new(Role::ControlPlane, include_str!("../crds/kubeadmcontrolplanes.json"))
                    .finalizer("kubeadm.controlplane.cluster.x-k8s.io")
                    // Defaulted to 1.
                    .own("spec.replicas")
                    // The record of used slots.
                    .own("metadata.annotations"),
            )
            .kind(Kind::new(Role::Template, include_str!("../crds/kubeadmcontrolplanetemplates.json")))
            .reads("cluster.x-k8s.io", "Machine")
            .reads("infrastructure.cluster.x-k8s.io", "*")
            .writes("cluster.x-k8s.io", "Machine")
            .writes("bootstrap.cluster.x-k8s.io", "KubeadmConfig")
            .writes("infrastructure.cluster.x-k8s.io", "*")
            .writes("", "Secret")
            .workload_reads("", "ConfigMap")
            .workload_reads("", "Pod")
            .pki();
        for secret in ["*-ca", "*-etcd", "*-proxy", "*-sa", "*-apiserver-etcd-client", "*-kubeconfig"] {
            description = description.secret(secret);
        }
        description.build()
    }
}

impl ControlPlane for KubeadmControlPlane {
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<ControlPlaneAnswer, Problem> {
        reconcile::reconcile(cx, object)
    }

    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        reconcile::delete(cx, object)
    }
}

capwasm_sdk::export_control_plane_provider!(KubeadmControlPlane);
