//! MachineHealthCheck, MachineDrainRule, and the kinds of the add-on, IPAM and runtime groups.

use super::health_check::HEALTH_CHECK;
use super::rule::Rule::{self, Each, Empty, Move, OnlyNew, Tidy, Within};
use super::{Kind, Older};
use crate::names;

pub const KINDS: &[Kind] = &[
    Kind {
        group: names::CORE_GROUP,
        kind: "MachineHealthCheck",
        older: &[Older { version: "v1beta1", rules: MACHINE_HEALTH_CHECK }],
        derived: None,
    },
    Kind {
        group: names::CORE_GROUP,
        kind: "MachineDrainRule",
        older: &[Older { version: "v1beta1", rules: &[] }],
        derived: None,
    },
    Kind {
        group: "addons.cluster.x-k8s.io",
        kind: "ClusterResourceSet",
        older: &[Older { version: "v1beta1", rules: CLUSTER_RESOURCE_SET }],
        derived: None,
    },
    Kind {
        group: "addons.cluster.x-k8s.io",
        kind: "ClusterResourceSetBinding",
        older: &[Older { version: "v1beta1", rules: &[] }],
        derived: None,
    },
    Kind {
        group: "ipam.cluster.x-k8s.io",
        kind: "IPAddress",
        older: &[Older { version: "v1beta1", rules: &[] }, Older { version: "v1alpha1", rules: &[] }],
        derived: None,
    },
    Kind {
        group: "ipam.cluster.x-k8s.io",
        kind: "IPAddressClaim",
        older: &[
            Older { version: "v1beta1", rules: IP_ADDRESS_CLAIM },
            Older { version: "v1alpha1", rules: IP_ADDRESS_CLAIM_V1ALPHA1 },
        ],
        derived: None,
    },
    Kind {
        group: "runtime.cluster.x-k8s.io",
        kind: "ExtensionConfig",
        older: &[Older { version: "v1alpha1", rules: EXTENSION_CONFIG }],
        derived: None,
    },
];

const CONDITIONS: &[Rule] = &[
    Tidy(&["spec"]),
    Move("status.conditions", "status.deprecated.v1beta1.conditions"),
    Move("status.v1beta2.conditions", "status.conditions"),
];

const IP_ADDRESS_CLAIM: &[Rule] = &[Empty("status.addressRef.name"), CONDITIONS[0], CONDITIONS[1], CONDITIONS[2]];

const MACHINE_HEALTH_CHECK: &[Rule] = &[
    Empty("status.observedGeneration"),
    Tidy(&["spec.selector"]),
    Within("spec", "spec", HEALTH_CHECK),
    CONDITIONS[1],
    CONDITIONS[2],
];

const CLUSTER_RESOURCE_SET: &[Rule] =
    &[Empty("status.observedGeneration"), Tidy(&["spec.clusterSelector"]), CONDITIONS[1], CONDITIONS[2]];

/// Without v1beta2 conditions, which are newer.
const IP_ADDRESS_CLAIM_V1ALPHA1: &[Rule] = &[
    Empty("status.addressRef.name"),
    Tidy(&["spec"]),
    OnlyNew("spec.clusterName"),
    CONDITIONS[1],
    OnlyNew("status.conditions"),
];

const EXTENSION_CONFIG: &[Rule] = &[
    Each("status.handlers", "status.handlers", &[Empty("timeoutSeconds")]),
    Tidy(&["spec.namespaceSelector"]),
    CONDITIONS[1],
    CONDITIONS[2],
];
