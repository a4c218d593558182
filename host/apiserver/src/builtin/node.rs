//! Nodes and node selectors.

use super::message::{Message, Type::*, atomic_message, many, map, message, one, pointer};
use super::{meta, pod};

pub(super) static ATTACHED_VOLUME: Message =
    message("AttachedVolume", &[one(1, "name", String).kept(), one(2, "devicePath", String).kept()]);

pub(super) static CONFIG_MAP_NODE_CONFIG_SOURCE: Message = message(
    "ConfigMapNodeConfigSource",
    &[
        one(1, "namespace", String).kept(),
        one(2, "name", String).kept(),
        one(3, "uid", String),
        one(4, "resourceVersion", String),
        one(5, "kubeletConfigKey", String).kept(),
    ],
);

pub(super) static CONTAINER_IMAGE: Message =
    message("ContainerImage", &[many(1, "names", String), one(2, "sizeBytes", Int64)]);

pub(super) static DAEMON_ENDPOINT: Message = message("DaemonEndpoint", &[one(1, "Port", Int32).kept()]);

pub(super) static NODE: Message = message(
    "Node",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), one(2, "spec", Of(&NODE_SPEC)), one(3, "status", Of(&NODE_STATUS))],
);

pub(super) static NODE_ADDRESS: Message =
    message("NodeAddress", &[one(1, "type", String).required(), one(2, "address", String).required()]);

pub(super) static NODE_AFFINITY: Message = message(
    "NodeAffinity",
    &[
        pointer(1, "requiredDuringSchedulingIgnoredDuringExecution", Of(&NODE_SELECTOR)),
        many(2, "preferredDuringSchedulingIgnoredDuringExecution", Of(&pod::PREFERRED_SCHEDULING_TERM)),
    ],
);

pub(super) static NODE_CONDITION: Message = message(
    "NodeCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastHeartbeatTime", Time),
        one(4, "lastTransitionTime", Time),
        one(5, "reason", String),
        one(6, "message", String),
    ],
);

pub(super) static NODE_CONFIG_SOURCE: Message =
    message("NodeConfigSource", &[pointer(2, "configMap", Of(&CONFIG_MAP_NODE_CONFIG_SOURCE))]);

pub(super) static NODE_CONFIG_STATUS: Message = message(
    "NodeConfigStatus",
    &[
        pointer(1, "assigned", Of(&NODE_CONFIG_SOURCE)),
        pointer(2, "active", Of(&NODE_CONFIG_SOURCE)),
        pointer(3, "lastKnownGood", Of(&NODE_CONFIG_SOURCE)),
        one(4, "error", String),
    ],
);

pub(super) static NODE_DAEMON_ENDPOINTS: Message =
    message("NodeDaemonEndpoints", &[one(1, "kubeletEndpoint", Of(&DAEMON_ENDPOINT))]);

pub(super) static NODE_FEATURES: Message = message("NodeFeatures", &[pointer(1, "supplementalGroupsPolicy", Bool)]);

pub(super) static NODE_RUNTIME_HANDLER: Message = message(
    "NodeRuntimeHandler",
    &[one(1, "name", String).kept(), pointer(2, "features", Of(&NODE_RUNTIME_HANDLER_FEATURES))],
);

pub(super) static NODE_RUNTIME_HANDLER_FEATURES: Message = message(
    "NodeRuntimeHandlerFeatures",
    &[pointer(1, "recursiveReadOnlyMounts", Bool), pointer(2, "userNamespaces", Bool)],
);

pub(super) static NODE_SELECTOR: Message =
    atomic_message("NodeSelector", &[many(1, "nodeSelectorTerms", Of(&NODE_SELECTOR_TERM))]);

pub(super) static NODE_SELECTOR_REQUIREMENT: Message = message(
    "NodeSelectorRequirement",
    &[one(1, "key", String).required(), one(2, "operator", String).required(), many(3, "values", String)],
);

pub(super) static NODE_SELECTOR_TERM: Message = atomic_message(
    "NodeSelectorTerm",
    &[
        many(1, "matchExpressions", Of(&NODE_SELECTOR_REQUIREMENT)),
        many(2, "matchFields", Of(&NODE_SELECTOR_REQUIREMENT)),
    ],
);

pub(super) static NODE_SPEC: Message = message(
    "NodeSpec",
    &[
        one(1, "podCIDR", String),
        one(2, "externalID", String),
        one(3, "providerID", String),
        one(4, "unschedulable", Bool),
        many(5, "taints", Of(&TAINT)),
        pointer(6, "configSource", Of(&NODE_CONFIG_SOURCE)),
        many(7, "podCIDRs", String).set().merge_set(),
    ],
);

pub(super) static NODE_STATUS: Message = message(
    "NodeStatus",
    &[
        map(1, "capacity", Quantity),
        map(2, "allocatable", Quantity),
        one(3, "phase", String),
        many(4, "conditions", Of(&NODE_CONDITION)).keyed(&["type"]).merge("type"),
        many(5, "addresses", Of(&NODE_ADDRESS)).keyed(&["type"]).merge("type"),
        one(6, "daemonEndpoints", Of(&NODE_DAEMON_ENDPOINTS)),
        one(7, "nodeInfo", Of(&NODE_SYSTEM_INFO)),
        many(8, "images", Of(&CONTAINER_IMAGE)),
        many(9, "volumesInUse", String),
        many(10, "volumesAttached", Of(&ATTACHED_VOLUME)),
        pointer(11, "config", Of(&NODE_CONFIG_STATUS)),
        many(12, "runtimeHandlers", Of(&NODE_RUNTIME_HANDLER)),
        pointer(13, "features", Of(&NODE_FEATURES)),
    ],
);

pub(super) static NODE_SWAP_STATUS: Message = message("NodeSwapStatus", &[pointer(1, "capacity", Int64)]);

pub(super) static NODE_SYSTEM_INFO: Message = message(
    "NodeSystemInfo",
    &[
        one(1, "machineID", String).kept(),
        one(2, "systemUUID", String).kept(),
        one(3, "bootID", String).kept(),
        one(4, "kernelVersion", String).kept(),
        one(5, "osImage", String).kept(),
        one(6, "containerRuntimeVersion", String).kept(),
        one(7, "kubeletVersion", String).kept(),
        one(8, "kubeProxyVersion", String).kept(),
        one(9, "operatingSystem", String).kept(),
        one(10, "architecture", String).kept(),
        pointer(11, "swap", Of(&NODE_SWAP_STATUS)),
    ],
);

pub(super) static TAINT: Message = message(
    "Taint",
    &[
        one(1, "key", String).required(),
        one(2, "value", String),
        one(3, "effect", String).required(),
        pointer(4, "timeAdded", Time),
    ],
);
