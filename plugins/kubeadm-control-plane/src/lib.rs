//! Cluster API provider kubeadm-control-plane as a WebAssembly component: keeps the machines that run a cluster's API
//! servers, one step at a time.
//!
//! - [`observe`]: what is read; [`reconcile`]: the pass over it, which takes at most one step; [`delete`]: the end
//! - [`health`]: conditions of machines from Nodes, static pods and etcd's members
//! - [`decide`], [`preflight`], [`select`], [`rollout`]: whether a machine comes or goes, and which
//! - [`remediation`], [`pre_terminate`], [`etcd`]: unhealthy machines, and what etcd allows
//! - [`clone`](mod@clone), [`config`], [`propagate`]: what is made for a machine, and what changes in place
//! - [`expiry`]: when the certificates of machines end
//! - [`kubeadm`]: what kubeadm keeps in the workload cluster
//! - [`adoption`], [`validate`], [`status`]: machines of others, wishes that cannot be met, what is reported

pub mod adoption;
pub mod clone;
pub mod config;
pub mod conversion;
pub mod decide;
pub mod delete;
pub mod etcd;
pub mod expiry;
pub mod health;
pub mod kubeadm;
pub mod machine;
pub mod names;
pub mod observe;
pub mod plane;
pub mod pre_terminate;
pub mod preflight;
pub mod propagate;
pub mod reconcile;
pub mod remediation;
pub mod rollout;
pub mod select;
pub mod status;
#[cfg(test)]
mod testing;
pub mod validate;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Context, ControlPlane, ControlPlaneAnswer, Conversion, Description, Kind, Problem, Provider};
use serde_json::Value;

/// Cluster API's kubeadm control plane provider.
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
                    // The records of used slots and of a remediation.
                    .own("metadata.annotations"),
            )
            .kind(Kind::new(Role::Template, include_str!("../crds/kubeadmcontrolplanetemplates.json")))
            .reads("cluster.x-k8s.io", "Machine")
            .reads("cluster.x-k8s.io", "MachinePool")
            .reads("bootstrap.cluster.x-k8s.io", "KubeadmConfig")
            .reads("infrastructure.cluster.x-k8s.io", "*")
            // Whose they are, when machines are adopted.
            .reads("", "Secret")
            .writes("cluster.x-k8s.io", "Machine")
            .writes("bootstrap.cluster.x-k8s.io", "KubeadmConfig")
            .writes("infrastructure.cluster.x-k8s.io", "*")
            .writes("", "Secret")
            .workload_reads("", "ConfigMap")
            .workload_reads("", "Node")
            .workload_reads("", "Pod")
            .workload_reads("apps", "DaemonSet")
            .workload_reads("apps", "Deployment")
            .workload_writes("", "ConfigMap")
            .workload_writes("", "Node")
            .workload_writes("apps", "DaemonSet")
            .workload_writes("apps", "Deployment")
            .etcd()
            .pki();
        for kind in ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"] {
            description = description
                .workload_reads("rbac.authorization.k8s.io", kind)
                .workload_writes("rbac.authorization.k8s.io", kind);
        }
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
        delete::delete(cx, object)
    }
}

impl Conversion for KubeadmControlPlane {
    fn convert(object: Value, to: &str) -> Result<Value, Problem> {
        conversion::convert(object, to).map_err(|error| Problem::invalid("ConversionFailed", error.to_string()))
    }
}

capwasm_sdk::export_interfaces!(KubeadmControlPlane: descriptor, control_plane, conversion);
