//! The kinds that core reads by name. Provider kinds are resolved by contract ([`crate::external`]).

use capwasm_api::names::{CORE_GROUP, CORE_VERSION};
use capwasm_reconcile::Kind;

fn core(kind: &str, plural: &str) -> Kind {
    Kind::new(CORE_GROUP, CORE_VERSION, kind, plural, true)
}

/// `Cluster`.
pub(crate) fn cluster() -> Kind {
    core("Cluster", "clusters")
}

/// `Machine`.
pub(crate) fn machine() -> Kind {
    core("Machine", "machines")
}

/// `MachineSet`.
pub(crate) fn machine_set() -> Kind {
    core("MachineSet", "machinesets")
}

/// `MachineDeployment`.
pub(crate) fn machine_deployment() -> Kind {
    core("MachineDeployment", "machinedeployments")
}

/// `MachinePool`.
pub(crate) fn machine_pool() -> Kind {
    core("MachinePool", "machinepools")
}

/// `MachineHealthCheck`.
pub(crate) fn machine_health_check() -> Kind {
    core("MachineHealthCheck", "machinehealthchecks")
}

/// `MachineDrainRule`.
pub(crate) fn machine_drain_rule() -> Kind {
    core("MachineDrainRule", "machinedrainrules")
}

/// `Namespace` of a workload cluster.
pub(crate) fn namespace() -> Kind {
    Kind::new("", "v1", "Namespace", "namespaces", false)
}

/// `CustomResourceDefinition`, read for its contract labels.
pub(crate) fn crd() -> Kind {
    Kind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

/// `Node` of a workload cluster.
pub(crate) fn node() -> Kind {
    Kind::new("", "v1", "Node", "nodes", false)
}

/// `Pod` of a workload cluster.
pub(crate) fn pod() -> Kind {
    Kind::new("", "v1", "Pod", "pods", true)
}
