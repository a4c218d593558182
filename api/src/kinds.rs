//! Typed views of the core kinds at v1beta2: what reconcilers read, decide and write.
//!
//! Reading is tolerant: absent fields are empty, unknown ones are ignored. What is written is the difference between a view as it was
//! read and as it was decided, laid over the object ([`lay_over`]), so that fields that are not known here survive.

mod cluster;
mod lay_over;
mod machine;
mod machine_deployment;
mod machine_health_check;
mod machine_pool;
mod machine_set;
mod meta;

pub use cluster::{
    Cluster, ClusterInitialization, ClusterNetwork, ClusterSpec, ClusterStatus, Endpoint, FailureDomain, NetworkRanges,
    ReplicaCounts,
};
pub use lay_over::lay_over;
pub use machine::{
    Bootstrap, Deletion, Machine, MachineAddress, MachineDeletionStatus, MachineInitialization, MachineSpec,
    MachineStatus, NodeInfo, NodeRef, ReadinessGate, Taint,
};
pub use machine_deployment::{
    MachineDeployment, MachineDeploymentSpec, MachineDeploymentStatus, RollingUpdate, Rollout, RolloutStrategy,
};
pub use machine_health_check::{
    HealthCheckRemediation, HealthChecks, MachineHealthCheck, MachineHealthCheckSpec, MachineHealthCheckStatus,
    RemediationTrigger, TemplateReference, UnhealthyCondition,
};
pub use machine_pool::{MachinePool, MachinePoolSpec, MachinePoolStatus, NodeReference};
pub use machine_set::{
    MachineNaming, MachineSet, MachineSetSpec, MachineSetStatus, MachineTemplate, SetDeletion, VersionCount,
};
pub use meta::{ContractReference, Metadata, Object, OwnerReference, TemplateMetadata};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the typed view of an object.
pub fn view<T: DeserializeOwned>(object: &Value) -> Result<T, InvalidObject> {
    T::deserialize(object).map_err(|source| InvalidObject {
        kind: capwasm_object::meta::kind(object).to_owned(),
        name: capwasm_object::meta::name(object).to_owned(),
        source,
    })
}

/// An object does not fit the types of its kind.
#[derive(Debug, thiserror::Error)]
#[error("unable to read {kind} {name}")]
pub struct InvalidObject {
    kind: String,
    name: String,
    #[source]
    source: serde_json::Error,
}
