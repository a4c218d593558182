//! Messages of the core group `v1`, without pods and volumes.

use super::message::{Message, Type::*, atomic_message, many, map, message, one, pointer};
use super::meta;

pub(super) static CLIENT_IP_CONFIG: Message = message("ClientIPConfig", &[pointer(1, "timeoutSeconds", Int32)]);

pub(super) static CONFIG_MAP: Message = message(
    "ConfigMap",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        map(2, "data", String),
        map(3, "binaryData", Bytes),
        pointer(4, "immutable", Bool),
    ],
);

pub(super) static ENDPOINT_ADDRESS: Message = atomic_message(
    "EndpointAddress",
    &[
        one(1, "ip", String).kept(),
        pointer(2, "targetRef", Of(&OBJECT_REFERENCE)),
        one(3, "hostname", String),
        pointer(4, "nodeName", String),
    ],
);

pub(super) static ENDPOINT_PORT: Message = atomic_message(
    "EndpointPort",
    &[
        one(1, "name", String),
        one(2, "port", Int32).kept(),
        one(3, "protocol", String),
        pointer(4, "appProtocol", String),
    ],
);

pub(super) static ENDPOINT_SUBSET: Message = message(
    "EndpointSubset",
    &[
        many(1, "addresses", Of(&ENDPOINT_ADDRESS)),
        many(2, "notReadyAddresses", Of(&ENDPOINT_ADDRESS)),
        many(3, "ports", Of(&ENDPOINT_PORT)),
    ],
);

pub(super) static ENDPOINTS: Message =
    message("Endpoints", &[one(1, "metadata", Of(&meta::OBJECT_META)), many(2, "subsets", Of(&ENDPOINT_SUBSET))]);

pub(super) static EVENT: Message = message(
    "Event",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "involvedObject", Of(&OBJECT_REFERENCE)),
        one(3, "reason", String),
        one(4, "message", String),
        one(5, "source", Of(&EVENT_SOURCE)),
        one(6, "firstTimestamp", Time),
        one(7, "lastTimestamp", Time),
        one(8, "count", Int32),
        one(9, "type", String),
        one(10, "eventTime", MicroTime),
        pointer(11, "series", Of(&EVENT_SERIES)),
        one(12, "action", String),
        pointer(13, "related", Of(&OBJECT_REFERENCE)),
        one(14, "reportingComponent", String).kept(),
        one(15, "reportingInstance", String).kept(),
    ],
);

pub(super) static EVENT_SERIES: Message =
    message("EventSeries", &[one(1, "count", Int32), one(2, "lastObservedTime", MicroTime)]);

pub(super) static EVENT_SOURCE: Message =
    message("EventSource", &[one(1, "component", String), one(2, "host", String)]);

pub(super) static HOST_IP: Message = message("HostIP", &[one(1, "ip", String).required()]);

pub(super) static LINUX_CONTAINER_USER: Message = message(
    "LinuxContainerUser",
    &[one(1, "uid", Int64).kept(), one(2, "gid", Int64).kept(), many(3, "supplementalGroups", Int64)],
);

pub(super) static LOAD_BALANCER_INGRESS: Message = message(
    "LoadBalancerIngress",
    &[
        one(1, "ip", String),
        one(2, "hostname", String),
        pointer(3, "ipMode", String),
        many(4, "ports", Of(&PORT_STATUS)),
    ],
);

pub(super) static LOAD_BALANCER_STATUS: Message =
    message("LoadBalancerStatus", &[many(1, "ingress", Of(&LOAD_BALANCER_INGRESS))]);

pub(super) static LOCAL_OBJECT_REFERENCE: Message = atomic_message("LocalObjectReference", &[one(1, "name", String)]);

pub(super) static NAMESPACE: Message = message(
    "Namespace",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&NAMESPACE_SPEC)),
        one(3, "status", Of(&NAMESPACE_STATUS)),
    ],
);

pub(super) static NAMESPACE_CONDITION: Message = message(
    "NamespaceCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(4, "lastTransitionTime", Time),
        one(5, "reason", String),
        one(6, "message", String),
    ],
);

pub(super) static NAMESPACE_SPEC: Message = message("NamespaceSpec", &[many(1, "finalizers", String)]);

pub(super) static NAMESPACE_STATUS: Message = message(
    "NamespaceStatus",
    &[one(1, "phase", String), many(2, "conditions", Of(&NAMESPACE_CONDITION)).keyed(&["type"]).merge("type")],
);

pub(super) static OBJECT_FIELD_SELECTOR: Message =
    atomic_message("ObjectFieldSelector", &[one(1, "apiVersion", String), one(2, "fieldPath", String).required()]);

pub(super) static OBJECT_REFERENCE: Message = atomic_message(
    "ObjectReference",
    &[
        one(1, "kind", String),
        one(2, "namespace", String),
        one(3, "name", String),
        one(4, "uid", String),
        one(5, "apiVersion", String),
        one(6, "resourceVersion", String),
        one(7, "fieldPath", String),
    ],
);

pub(super) static PORT_STATUS: Message = message(
    "PortStatus",
    &[one(1, "port", Int32).kept(), one(2, "protocol", String).kept(), pointer(3, "error", String)],
);

pub(super) static RESOURCE_FIELD_SELECTOR: Message = atomic_message(
    "ResourceFieldSelector",
    &[one(1, "containerName", String), one(2, "resource", String).required(), one(3, "divisor", Quantity)],
);

pub(super) static RESOURCE_HEALTH: Message =
    message("ResourceHealth", &[one(1, "resourceID", String).required(), one(2, "health", String)]);

pub(super) static RESOURCE_STATUS: Message = message(
    "ResourceStatus",
    &[one(1, "name", String).kept(), many(2, "resources", Of(&RESOURCE_HEALTH)).keyed(&["resourceID"])],
);

pub(super) static SECRET: Message = message(
    "Secret",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        map(2, "data", Bytes),
        one(3, "type", String),
        map(4, "stringData", String),
        pointer(5, "immutable", Bool),
    ],
);

pub(super) static SECRET_REFERENCE: Message =
    atomic_message("SecretReference", &[one(1, "name", String), one(2, "namespace", String)]);

pub(super) static SERVICE: Message = message(
    "Service",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&SERVICE_SPEC)),
        one(3, "status", Of(&SERVICE_STATUS)),
    ],
);

pub(super) static SERVICE_ACCOUNT: Message = message(
    "ServiceAccount",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        many(2, "secrets", Of(&OBJECT_REFERENCE)).keyed(&["name"]).merge("name"),
        many(3, "imagePullSecrets", Of(&LOCAL_OBJECT_REFERENCE)),
        pointer(4, "automountServiceAccountToken", Bool),
    ],
);

pub(super) static SERVICE_PORT: Message = message(
    "ServicePort",
    &[
        one(1, "name", String),
        one(2, "protocol", String).default("TCP"),
        one(3, "port", Int32).kept(),
        one(4, "targetPort", IntOrString),
        one(5, "nodePort", Int32),
        pointer(6, "appProtocol", String),
    ],
);

pub(super) static SERVICE_SPEC: Message = message(
    "ServiceSpec",
    &[
        many(1, "ports", Of(&SERVICE_PORT)).keyed(&["port", "protocol"]).merge("port"),
        map(2, "selector", String).atomic(),
        one(3, "clusterIP", String),
        one(4, "type", String),
        many(5, "externalIPs", String),
        one(7, "sessionAffinity", String),
        one(8, "loadBalancerIP", String),
        many(9, "loadBalancerSourceRanges", String),
        one(10, "externalName", String),
        one(11, "externalTrafficPolicy", String),
        one(12, "healthCheckNodePort", Int32),
        one(13, "publishNotReadyAddresses", Bool),
        pointer(14, "sessionAffinityConfig", Of(&SESSION_AFFINITY_CONFIG)),
        pointer(17, "ipFamilyPolicy", String),
        many(18, "clusterIPs", String),
        many(19, "ipFamilies", String),
        pointer(20, "allocateLoadBalancerNodePorts", Bool),
        pointer(21, "loadBalancerClass", String),
        pointer(22, "internalTrafficPolicy", String),
        pointer(23, "trafficDistribution", String),
    ],
);

pub(super) static SERVICE_STATUS: Message = message(
    "ServiceStatus",
    &[
        one(1, "loadBalancer", Of(&LOAD_BALANCER_STATUS)),
        many(2, "conditions", Of(&meta::CONDITION)).keyed(&["type"]).merge("type"),
    ],
);

pub(super) static SESSION_AFFINITY_CONFIG: Message =
    message("SessionAffinityConfig", &[pointer(1, "clientIP", Of(&CLIENT_IP_CONFIG))]);

pub(super) static TOPOLOGY_SELECTOR_LABEL_REQUIREMENT: Message =
    message("TopologySelectorLabelRequirement", &[one(1, "key", String).required(), many(2, "values", String)]);

pub(super) static TOPOLOGY_SELECTOR_TERM: Message = atomic_message(
    "TopologySelectorTerm",
    &[many(1, "matchLabelExpressions", Of(&TOPOLOGY_SELECTOR_LABEL_REQUIREMENT))],
);

pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Message = atomic_message(
    "TypedLocalObjectReference",
    &[pointer(1, "apiGroup", String), one(2, "kind", String).required(), one(3, "name", String).required()],
);

pub(super) static VOLUME_MOUNT_STATUS: Message = message(
    "VolumeMountStatus",
    &[
        one(1, "name", String).kept(),
        one(2, "mountPath", String).kept(),
        one(3, "readOnly", Bool),
        pointer(4, "recursiveReadOnly", String),
    ],
);
