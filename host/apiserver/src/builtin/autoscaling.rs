//! Messages of `autoscaling/v1`.

use super::message::{Message, Type::*, message, one};
use super::meta;

pub(super) static SCALE: Message = message(
    "Scale",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), one(2, "spec", Of(&SCALE_SPEC)), one(3, "status", Of(&SCALE_STATUS))],
);

pub(super) static SCALE_SPEC: Message = message("ScaleSpec", &[one(1, "replicas", Int32)]);

pub(super) static SCALE_STATUS: Message =
    message("ScaleStatus", &[one(1, "replicas", Int32).kept(), one(2, "selector", String)]);
