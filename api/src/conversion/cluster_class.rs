//! ClusterClass.

use super::health_check::HEALTH_CHECK;
use super::machine::DELETION;
use super::rule::Rule::{self, Each, Empty, Move, Template, Tidy, Within};
use super::{Kind, Older};
use crate::names;

pub const KINDS: &[Kind] = &[Kind {
    group: names::CORE_GROUP,
    kind: "ClusterClass",
    older: &[Older { version: "v1beta1", rules: RULES }],
    derived: None,
}];

const RULES: &[Rule] = &[
    Empty("status.observedGeneration"),
    Tidy(&[
        // Values of the user's.
        "spec.patches.definitions.jsonPatches.value",
        "spec.patches.external.settings",
        "spec.variables.schema.openAPIV3Schema.default",
        "spec.variables.schema.openAPIV3Schema.example",
        "spec.variables.schema.openAPIV3Schema.enum",
        "spec.variables.schema.openAPIV3Schema.properties",
        "spec.variables.schema.openAPIV3Schema.additionalProperties",
        "spec.variables.schema.openAPIV3Schema.items",
        "spec.variables.schema.openAPIV3Schema.allOf",
        "spec.variables.schema.openAPIV3Schema.anyOf",
        "spec.variables.schema.openAPIV3Schema.oneOf",
        "spec.variables.schema.openAPIV3Schema.not",
        "status.variables.definitions.schema.openAPIV3Schema.default",
        "status.variables.definitions.schema.openAPIV3Schema.example",
        "status.variables.definitions.schema.openAPIV3Schema.enum",
        "status.variables.definitions.schema.openAPIV3Schema.properties",
        "status.variables.definitions.schema.openAPIV3Schema.additionalProperties",
        "status.variables.definitions.schema.openAPIV3Schema.items",
        "status.variables.definitions.schema.openAPIV3Schema.allOf",
        "status.variables.definitions.schema.openAPIV3Schema.anyOf",
        "status.variables.definitions.schema.openAPIV3Schema.oneOf",
        "status.variables.definitions.schema.openAPIV3Schema.not",
    ]),
    Template("spec.infrastructure.ref", "spec.infrastructure.templateRef"),
    Move("spec.infrastructureNamingStrategy", "spec.infrastructure.naming"),
    Within("spec.controlPlane", "spec.controlPlane", CONTROL_PLANE),
    Each("spec.workers.machineDeployments", "spec.workers.machineDeployments", MACHINE_DEPLOYMENT),
    Each("spec.workers.machinePools", "spec.workers.machinePools", MACHINE_POOL),
    Each("spec.variables", "spec.variables", VARIABLE),
    Each("spec.patches", "spec.patches", PATCH),
    Each("status.variables", "status.variables", &[Each("definitions", "definitions", VARIABLE)]),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
];

const VARIABLE: &[Rule] = &[Move("metadata", "deprecatedV1Beta1Metadata")];

const PATCH: &[Rule] = &[
    Move("external.generateExtension", "external.generatePatchesExtension"),
    Move("external.validateExtension", "external.validateTopologyExtension"),
];

const CONTROL_PLANE: &[Rule] = &[
    Template("ref", "templateRef"),
    Template("machineInfrastructure.ref", "machineInfrastructure.templateRef"),
    Move("namingStrategy", "naming"),
    DELETION[0],
    DELETION[1],
    DELETION[2],
    Within("machineHealthCheck", "healthCheck", HEALTH_CHECK),
];

const MACHINE_DEPLOYMENT: &[Rule] = &[
    Template("template.bootstrap.ref", "bootstrap.templateRef"),
    Template("template.infrastructure.ref", "infrastructure.templateRef"),
    Move("template.metadata", "metadata"),
    Move("namingStrategy", "naming"),
    DELETION[0],
    DELETION[1],
    DELETION[2],
    Move("strategy.remediation.maxInFlight", "healthCheck.remediation.maxInFlight"),
    Move("strategy.rollingUpdate.deletePolicy", "deletion.order"),
    Move("strategy", "rollout.strategy"),
    Rule::Assume { path: "rollout.strategy", key: "type", value: "RollingUpdate" },
    Within("machineHealthCheck", "healthCheck", HEALTH_CHECK),
];

const MACHINE_POOL: &[Rule] = &[
    Template("template.bootstrap.ref", "bootstrap.templateRef"),
    Template("template.infrastructure.ref", "infrastructure.templateRef"),
    Move("template.metadata", "metadata"),
    Move("namingStrategy", "naming"),
    DELETION[0],
    DELETION[1],
    DELETION[2],
];
