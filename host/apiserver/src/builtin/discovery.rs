//! Messages of `discovery.k8s.io/v1`.

use super::message::{Message, Type::*, atomic_message, many, map, message, one, pointer};
use super::{core, meta};

pub(super) static ENDPOINT: Message = message(
    "Endpoint",
    &[
        many(1, "addresses", String).set(),
        one(2, "conditions", Of(&ENDPOINT_CONDITIONS)),
        pointer(3, "hostname", String),
        pointer(4, "targetRef", Of(&core::OBJECT_REFERENCE)),
        map(5, "deprecatedTopology", String),
        pointer(6, "nodeName", String),
        pointer(7, "zone", String),
        pointer(8, "hints", Of(&ENDPOINT_HINTS)),
    ],
);

pub(super) static ENDPOINT_CONDITIONS: Message = message(
    "EndpointConditions",
    &[pointer(1, "ready", Bool), pointer(2, "serving", Bool), pointer(3, "terminating", Bool)],
);

pub(super) static ENDPOINT_HINTS: Message =
    message("EndpointHints", &[many(1, "forZones", Of(&FOR_ZONE)), many(2, "forNodes", Of(&FOR_NODE))]);

pub(super) static ENDPOINT_PORT: Message = atomic_message(
    "EndpointPort",
    &[
        pointer(1, "name", String),
        pointer(2, "protocol", String),
        pointer(3, "port", Int32),
        pointer(4, "appProtocol", String),
    ],
);

pub(super) static ENDPOINT_SLICE: Message = message(
    "EndpointSlice",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        many(2, "endpoints", Of(&ENDPOINT)),
        many(3, "ports", Of(&ENDPOINT_PORT)),
        one(4, "addressType", String).required(),
    ],
);

pub(super) static FOR_NODE: Message = message("ForNode", &[one(1, "name", String).required()]);

pub(super) static FOR_ZONE: Message = message("ForZone", &[one(1, "name", String).required()]);
