//! Typed views of the core kinds at v1beta2: what reconcilers and providers read.
//!
//! They are for reading. Objects are written as differences of untyped values, so that fields that are not known here survive.
//! Reading is tolerant: absent fields are empty, unknown ones are ignored.

mod cluster;
mod machine;
mod machine_deployment;
mod machine_health_check;
mod machine_pool;
mod machine_set;
mod meta;

pub use cluster::{
    Cluster, ClusterInitialization, ClusterNetwork, ClusterSpec, ClusterStatus, Endpoint, FailureDomain, NetworkRanges,
};
pub use machine::{
    Bootstrap, Deletion, Machine, MachineAddress, MachineDeletionStatus, MachineInitialization, MachineSpec,
    MachineStatus, NodeRef, ReadinessGate, Taint,
};
pub use machine_deployment::{
    MachineDeployment, MachineDeploymentSpec, MachineDeploymentStatus, RollingUpdate, Rollout, RolloutStrategy,
};
pub use machine_health_check::{
    HealthCheckRemediation, HealthChecks, MachineHealthCheck, MachineHealthCheckSpec, RemediationTrigger,
    TemplateReference, UnhealthyCondition,
};
pub use machine_pool::{MachinePool, MachinePoolSpec, MachinePoolStatus};
pub use machine_set::{
    MachineNaming, MachineSet, MachineSetSpec, MachineSetStatus, MachineTemplate, SetDeletion, VersionCount,
};
pub use meta::{ContractReference, Metadata, OwnerReference, TemplateMetadata};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a typed view of an untyped object.
pub fn view<T: DeserializeOwned>(object: &Value) -> Result<T, InvalidObject> {
    T::deserialize(object).map_err(|source| InvalidObject {
        kind: crate::json::kind(object).to_owned(),
        name: crate::json::name(object).to_owned(),
        source,
    })
}

/// An object that its kind's schema would not have let in.
#[derive(Debug, thiserror::Error)]
#[error("unable to read {kind} {name}")]
pub struct InvalidObject {
    kind: String,
    name: String,
    #[source]
    source: serde_json::Error,
}
