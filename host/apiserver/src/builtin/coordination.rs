//! Messages of `coordination.k8s.io/v1`.

use super::message::{Message, Type::*, message, one, pointer};
use super::meta;

pub(super) static LEASE: Message =
    message("Lease", &[one(1, "metadata", Of(&meta::OBJECT_META)), one(2, "spec", Of(&LEASE_SPEC))]);

pub(super) static LEASE_SPEC: Message = message(
    "LeaseSpec",
    &[
        pointer(1, "holderIdentity", String),
        pointer(2, "leaseDurationSeconds", Int32),
        pointer(3, "acquireTime", MicroTime),
        pointer(4, "renewTime", MicroTime),
        pointer(5, "leaseTransitions", Int32),
        pointer(6, "strategy", String),
        pointer(7, "preferredHolder", String),
    ],
);
