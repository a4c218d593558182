//! Messages of `events.k8s.io/v1`.

use super::message::{Message, Type::*, message, one, pointer};
use super::{core, meta};

pub(super) static EVENT: Message = message(
    "Event",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "eventTime", MicroTime),
        pointer(3, "series", Of(&EVENT_SERIES)),
        one(4, "reportingController", String),
        one(5, "reportingInstance", String),
        one(6, "action", String),
        one(7, "reason", String),
        one(8, "regarding", Of(&core::OBJECT_REFERENCE)),
        pointer(9, "related", Of(&core::OBJECT_REFERENCE)),
        one(10, "note", String),
        one(11, "type", String),
        one(12, "deprecatedSource", Of(&core::EVENT_SOURCE)),
        one(13, "deprecatedFirstTimestamp", Time),
        one(14, "deprecatedLastTimestamp", Time),
        one(15, "deprecatedCount", Int32),
    ],
);

pub(super) static EVENT_SERIES: Message =
    message("EventSeries", &[one(1, "count", Int32).kept(), one(2, "lastObservedTime", MicroTime)]);
