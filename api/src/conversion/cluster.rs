//! Cluster.

use super::health_check::HEALTH_CHECK;
use super::machine::DELETION;
use super::rule::Rule::{self, Each, Empty, Move, Named, OnlyOld, Reference, Tidy, Within};
use super::{Kind, Older};
use crate::{deprecated, names};

pub const KINDS: &[Kind] = &[Kind {
    group: names::CORE_GROUP,
    kind: "Cluster",
    older: &[Older { version: "v1beta1", rules: RULES }],
    derived: Some(deprecated::cluster),
}];

const RULES: &[Rule] = &[
    Empty("spec.clusterNetwork.apiServerPort"),
    Empty("spec.controlPlaneEndpoint.host"),
    Empty("spec.controlPlaneEndpoint.port"),
    Empty("status.observedGeneration"),
    Tidy(&[
        "spec.topology.variables.value",
        "spec.topology.controlPlane.variables.overrides.value",
        "spec.topology.workers.machineDeployments.variables.overrides.value",
        "spec.topology.workers.machinePools.variables.overrides.value",
    ]),
    Reference("spec.infrastructureRef", "spec.infrastructureRef"),
    Reference("spec.controlPlaneRef", "spec.controlPlaneRef"),
    Move("spec.topology.class", "spec.topology.classRef.name"),
    Move("spec.topology.classNamespace", "spec.topology.classRef.namespace"),
    OnlyOld("spec.topology.rolloutAfter"),
    Each("spec.topology.variables", "spec.topology.variables", VARIABLE),
    Each("spec.topology.workers.machineDeployments", "spec.topology.workers.machineDeployments", MACHINE_DEPLOYMENT),
    Each("spec.topology.workers.machinePools", "spec.topology.workers.machinePools", MACHINE_POOL),
    Within("spec.topology.controlPlane", "spec.topology.controlPlane", CONTROL_PLANE),
    Move("status.infrastructureReady", "status.initialization.infrastructureProvisioned"),
    Move("status.controlPlaneReady", "status.initialization.controlPlaneInitialized"),
    Named("status.failureDomains", "status.failureDomains"),
    Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
    Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
    Move("status.v1beta2.controlPlane", "status.controlPlane"),
    Move("status.v1beta2.workers", "status.workers"),
];

const VARIABLE: &[Rule] = &[OnlyOld("definitionFrom")];

const CONTROL_PLANE: &[Rule] = &[
    DELETION[0],
    DELETION[1],
    DELETION[2],
    Within("machineHealthCheck", "healthCheck", HEALTH_CHECK),
    Each("variables.overrides", "variables.overrides", VARIABLE),
];

const MACHINE_DEPLOYMENT: &[Rule] = &[
    DELETION[0],
    DELETION[1],
    DELETION[2],
    Move("strategy.remediation.maxInFlight", "healthCheck.remediation.maxInFlight"),
    Move("strategy.rollingUpdate.deletePolicy", "deletion.order"),
    Move("strategy", "rollout.strategy"),
    Rule::Assume { path: "rollout.strategy", key: "type", value: "RollingUpdate" },
    Within("machineHealthCheck", "healthCheck", HEALTH_CHECK),
    Each("variables.overrides", "variables.overrides", VARIABLE),
];

const MACHINE_POOL: &[Rule] =
    &[DELETION[0], DELETION[1], DELETION[2], Each("variables.overrides", "variables.overrides", VARIABLE)];
