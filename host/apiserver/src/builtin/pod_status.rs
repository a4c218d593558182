//! What a kubelet reports about a pod.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::{core, pod};

pub(super) static CONTAINER_EXTENDED_RESOURCE_REQUEST: Message = message(
    "ContainerExtendedResourceRequest",
    &[
        one(1, "containerName", String).required(),
        one(2, "resourceName", String).required(),
        one(3, "requestName", String).required(),
    ],
);

pub(super) static CONTAINER_STATE: Message = message(
    "ContainerState",
    &[
        pointer(1, "waiting", Of(&CONTAINER_STATE_WAITING)),
        pointer(2, "running", Of(&CONTAINER_STATE_RUNNING)),
        pointer(3, "terminated", Of(&CONTAINER_STATE_TERMINATED)),
    ],
);

pub(super) static CONTAINER_STATE_RUNNING: Message = message("ContainerStateRunning", &[one(1, "startedAt", Time)]);

pub(super) static CONTAINER_STATE_TERMINATED: Message = message(
    "ContainerStateTerminated",
    &[
        one(1, "exitCode", Int32).kept(),
        one(2, "signal", Int32),
        one(3, "reason", String),
        one(4, "message", String),
        one(5, "startedAt", Time),
        one(6, "finishedAt", Time),
        one(7, "containerID", String),
    ],
);

pub(super) static CONTAINER_STATE_WAITING: Message =
    message("ContainerStateWaiting", &[one(1, "reason", String), one(2, "message", String)]);

pub(super) static CONTAINER_STATUS: Message = message(
    "ContainerStatus",
    &[
        one(1, "name", String).kept(),
        one(2, "state", Of(&CONTAINER_STATE)),
        one(3, "lastState", Of(&CONTAINER_STATE)),
        one(4, "ready", Bool).kept(),
        one(5, "restartCount", Int32).kept(),
        one(6, "image", String).kept(),
        one(7, "imageID", String).kept(),
        one(8, "containerID", String),
        pointer(9, "started", Bool),
        map(10, "allocatedResources", Quantity),
        pointer(11, "resources", Of(&pod::RESOURCE_REQUIREMENTS)),
        many(12, "volumeMounts", Of(&core::VOLUME_MOUNT_STATUS)).keyed(&["mountPath"]).merge("mountPath"),
        pointer(13, "user", Of(&CONTAINER_USER)),
        many(14, "allocatedResourcesStatus", Of(&core::RESOURCE_STATUS)).keyed(&["name"]).merge("name"),
        pointer(15, "stopSignal", String),
    ],
);

pub(super) static CONTAINER_USER: Message =
    message("ContainerUser", &[pointer(1, "linux", Of(&core::LINUX_CONTAINER_USER))]);

pub(super) static POD_CONDITION: Message = message(
    "PodCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastProbeTime", Time),
        one(4, "lastTransitionTime", Time),
        one(5, "reason", String),
        one(6, "message", String),
        one(7, "observedGeneration", Int64),
    ],
);

pub(super) static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Message = message(
    "PodExtendedResourceClaimStatus",
    &[many(1, "requestMappings", Of(&CONTAINER_EXTENDED_RESOURCE_REQUEST)), one(2, "resourceClaimName", String).kept()],
);

pub(super) static POD_IP: Message = message("PodIP", &[one(1, "ip", String).required()]);

pub(super) static POD_RESOURCE_CLAIM_STATUS: Message =
    message("PodResourceClaimStatus", &[one(1, "name", String).kept(), pointer(2, "resourceClaimName", String)]);

pub(super) static POD_STATUS: Message = message(
    "PodStatus",
    &[
        one(1, "phase", String),
        many(2, "conditions", Of(&POD_CONDITION)).keyed(&["type"]).merge("type"),
        one(3, "message", String),
        one(4, "reason", String),
        one(5, "hostIP", String),
        one(6, "podIP", String),
        pointer(7, "startTime", Time),
        many(8, "containerStatuses", Of(&CONTAINER_STATUS)),
        one(9, "qosClass", String),
        many(10, "initContainerStatuses", Of(&CONTAINER_STATUS)),
        one(11, "nominatedNodeName", String),
        many(12, "podIPs", Of(&POD_IP)).keyed(&["ip"]).merge("ip"),
        many(13, "ephemeralContainerStatuses", Of(&CONTAINER_STATUS)),
        one(14, "resize", String),
        many(15, "resourceClaimStatuses", Of(&POD_RESOURCE_CLAIM_STATUS)).keyed(&["name"]).merge("name").retain_keys(),
        many(16, "hostIPs", Of(&core::HOST_IP)).merge("ip"),
        one(17, "observedGeneration", Int64),
        pointer(18, "extendedResourceClaimStatus", Of(&POD_EXTENDED_RESOURCE_CLAIM_STATUS)),
    ],
);
