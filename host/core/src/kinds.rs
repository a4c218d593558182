//! Kinds that core reads by name. Provider kinds are resolved by contract ([`crate::external`]).

use capwasm_api::names::{CORE_GROUP, CORE_VERSION};
use capwasm_reconcile::Kind;

fn core(kind: &str, plural: &str) -> Kind {
    Kind::new(CORE_GROUP, CORE_VERSION, kind, plural, true)
}

pub(crate) fn cluster() -> Kind {
    core("Cluster", "clusters")
}

pub(crate) fn machine() -> Kind {
    core("Machine", "machines")
}

pub(crate) fn machine_set() -> Kind {
    core("MachineSet", "machinesets")
}

pub(crate) fn machine_deployment() -> Kind {
    core("MachineDeployment", "machinedeployments")
}

pub(crate) fn machine_pool() -> Kind {
    core("MachinePool", "machinepools")
}

pub(crate) fn machine_health_check() -> Kind {
    core("MachineHealthCheck", "machinehealthchecks")
}

pub(crate) fn machine_drain_rule() -> Kind {
    core("MachineDrainRule", "machinedrainrules")
}

/// Of a workload cluster.
pub(crate) fn namespace() -> Kind {
    Kind::new("", "v1", "Namespace", "namespaces", false)
}

/// Read for its contract labels.
pub(crate) fn crd() -> Kind {
    Kind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

/// Of a workload cluster.
pub(crate) fn node() -> Kind {
    Kind::new("", "v1", "Node", "nodes", false)
}

/// Of a workload cluster.
pub(crate) fn pod() -> Kind {
    Kind::new("", "v1", "Pod", "pods", true)
}
