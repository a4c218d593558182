//! Machine, MachineSet, MachineDeployment, MachinePool.

use serde_json::Value;

use super::rule::Rule::{self, Adjust, Assume, Empty, Move, Node, OnlyNew, OnlyOld, Reference, Seconds, Tidy, Within};
use super::{Kind, Older};
use crate::{deprecated, names};

pub const KINDS: &[Kind] = &[
    Kind {
        group: names::CORE_GROUP,
        kind: "Machine",
        older: &[Older { version: "v1beta1", rules: MACHINE }],
        derived: Some(deprecated::machine),
    },
    Kind {
        group: names::CORE_GROUP,
        kind: "MachineSet",
        older: &[Older { version: "v1beta1", rules: MACHINE_SET }],
        derived: Some(deprecated::machine_set),
    },
    Kind {
        group: names::CORE_GROUP,
        kind: "MachineDeployment",
        older: &[Older { version: "v1beta1", rules: MACHINE_DEPLOYMENT }],
        derived: Some(deprecated::machine_deployment),
    },
    Kind {
        group: names::CORE_GROUP,
        kind: "MachinePool",
        older: &[Older { version: "v1beta1", rules: MACHINE_POOL }],
        derived: Some(deprecated::machine_pool),
    },
];

/// Timeouts of a Machine's deletion.
pub const DELETION: [Rule; 3] = [
    Seconds("nodeDrainTimeout", "deletion.nodeDrainTimeoutSeconds"),
    Seconds("nodeVolumeDetachTimeout", "deletion.nodeVolumeDetachTimeoutSeconds"),
    Seconds("nodeDeletionTimeout", "deletion.nodeDeletionTimeoutSeconds"),
];

const MACHINE_SPEC: &[Rule] = &[
    DELETION[0],
    DELETION[1],
    DELETION[2],
    Reference("bootstrap.configRef", "bootstrap.configRef"),
    Reference("infrastructureRef", "infrastructureRef"),
];

const MACHINE: &[Rule] = &[
    Empty("status.observedGeneration"),
    Tidy(&["spec.bootstrap"]),
    OnlyNew("spec.minReadySeconds"),
    Within("spec", "spec", MACHINE_SPEC),
    Node("status.nodeRef", "status.nodeRef"),
    Move("status.bootstrapReady", "status.initialization.bootstrapDataSecretCreated"),
    Move("status.infrastructureReady", "status.initialization.infrastructureProvisioned"),
    OnlyNew("status.failureDomain"),
    Adjust { new: |_| {}, old: known_phase },
    Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
    Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
];

/// The phase `Updating` becomes `Running`, which older versions know.
fn known_phase(object: &mut Value) {
    if let Some(phase) = object.pointer_mut("/status/phase")
        && phase == "Updating"
    {
        *phase = "Running".into();
    }
}

const MACHINE_SET: &[Rule] = &[
    Empty("status.observedGeneration"),
    Tidy(&["spec.selector", "spec.template.spec.bootstrap"]),
    Move("spec.minReadySeconds", "spec.template.spec.minReadySeconds"),
    Move("spec.deletePolicy", "spec.deletion.order"),
    Move("spec.machineNamingStrategy", "spec.machineNaming"),
    Within("spec.template.spec", "spec.template.spec", MACHINE_SPEC),
    Move("status.fullyLabeledReplicas", "status.deprecated.v1beta1.fullyLabeledReplicas"),
    Move("status.readyReplicas", "status.deprecated.v1beta1.readyReplicas"),
    Move("status.availableReplicas", "status.deprecated.v1beta1.availableReplicas"),
    Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
    Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
    Move("status.v1beta2.readyReplicas", "status.readyReplicas"),
    Move("status.v1beta2.availableReplicas", "status.availableReplicas"),
    Move("status.v1beta2.upToDateReplicas", "status.upToDateReplicas"),
];

const MACHINE_DEPLOYMENT: &[Rule] = &[
    Empty("status.observedGeneration"),
    Tidy(&["spec.selector", "spec.template.spec.bootstrap"]),
    OnlyOld("spec.progressDeadlineSeconds"),
    OnlyOld("spec.revisionHistoryLimit"),
    Move("spec.minReadySeconds", "spec.template.spec.minReadySeconds"),
    Move("spec.machineNamingStrategy", "spec.machineNaming"),
    Move("spec.rolloutAfter", "spec.rollout.after"),
    Move("spec.strategy.remediation", "spec.remediation"),
    Move("spec.strategy.rollingUpdate.deletePolicy", "spec.deletion.order"),
    Move("spec.strategy", "spec.rollout.strategy"),
    Assume { path: "spec.rollout.strategy", key: "type", value: "RollingUpdate" },
    Within("spec.template.spec", "spec.template.spec", MACHINE_SPEC),
    Move("status.readyReplicas", "status.deprecated.v1beta1.readyReplicas"),
    Move("status.availableReplicas", "status.deprecated.v1beta1.availableReplicas"),
    Move("status.unavailableReplicas", "status.deprecated.v1beta1.unavailableReplicas"),
    Move("status.updatedReplicas", "status.deprecated.v1beta1.updatedReplicas"),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
    Move("status.v1beta2.readyReplicas", "status.readyReplicas"),
    Move("status.v1beta2.availableReplicas", "status.availableReplicas"),
    Move("status.v1beta2.upToDateReplicas", "status.upToDateReplicas"),
];

const MACHINE_POOL: &[Rule] = &[
    Empty("status.observedGeneration"),
    Tidy(&["spec.template.spec.bootstrap"]),
    Move("spec.minReadySeconds", "spec.template.spec.minReadySeconds"),
    Within("spec.template.spec", "spec.template.spec", MACHINE_SPEC),
    Move("status.bootstrapReady", "status.initialization.bootstrapDataSecretCreated"),
    Move("status.infrastructureReady", "status.initialization.infrastructureProvisioned"),
    Move("status.readyReplicas", "status.deprecated.v1beta1.readyReplicas"),
    Move("status.availableReplicas", "status.deprecated.v1beta1.availableReplicas"),
    Move("status.unavailableReplicas", "status.deprecated.v1beta1.unavailableReplicas"),
    Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
    Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
    Move("status.v1beta2.readyReplicas", "status.readyReplicas"),
    Move("status.v1beta2.availableReplicas", "status.availableReplicas"),
    Move("status.v1beta2.upToDateReplicas", "status.upToDateReplicas"),
];
