//! Names of Cluster API: labels, annotations, finalizers, condition types and reasons; and how names of created objects
//! are derived.

pub mod annotations;
pub mod condition;
mod derive;
pub mod finalizers;
pub mod labels;
pub mod reason;

pub use derive::{child_name, fingerprint, label_value, next_slot, suffix};

/// API group of the core kinds.
pub const CORE_GROUP: &str = "cluster.x-k8s.io";
/// Version in which core reads and writes.
pub const CORE_VERSION: &str = "v1beta2";
/// `apiVersion` of the core kinds.
pub const CORE_API_VERSION: &str = "cluster.x-k8s.io/v1beta2";
/// Type of Secrets with bootstrap data, certificates and kubeconfigs.
pub const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";
/// Taint that bootstrap providers set on workers, and that core removes once the Node has its labels.
pub const UNINITIALIZED_TAINT: &str = "node.cluster.x-k8s.io/uninitialized";
/// Taint on Nodes of Machines of an older revision of a MachineDeployment.
pub const OUTDATED_REVISION_TAINT: &str = "node.cluster.x-k8s.io/outdated-revision";
