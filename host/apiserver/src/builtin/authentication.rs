//! Messages of `authentication.k8s.io/v1`.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::meta;

pub(super) static BOUND_OBJECT_REFERENCE: Message = message(
    "BoundObjectReference",
    &[one(1, "kind", String), one(2, "apiVersion", String), one(3, "name", String), one(4, "uid", String)],
);

pub(super) static SELF_SUBJECT_REVIEW: Message = message(
    "SelfSubjectReview",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), one(2, "status", Of(&SELF_SUBJECT_REVIEW_STATUS))],
);

pub(super) static SELF_SUBJECT_REVIEW_STATUS: Message =
    message("SelfSubjectReviewStatus", &[one(1, "userInfo", Of(&USER_INFO))]);

pub(super) static TOKEN_REQUEST: Message = message(
    "TokenRequest",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&TOKEN_REQUEST_SPEC)),
        one(3, "status", Of(&TOKEN_REQUEST_STATUS)),
    ],
);

pub(super) static TOKEN_REQUEST_SPEC: Message = message(
    "TokenRequestSpec",
    &[
        many(1, "audiences", String),
        pointer(3, "boundObjectRef", Of(&BOUND_OBJECT_REFERENCE)),
        pointer(4, "expirationSeconds", Int64),
    ],
);

pub(super) static TOKEN_REQUEST_STATUS: Message =
    message("TokenRequestStatus", &[one(1, "token", String).kept(), one(2, "expirationTimestamp", Time)]);

pub(super) static TOKEN_REVIEW: Message = message(
    "TokenReview",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&TOKEN_REVIEW_SPEC)),
        one(3, "status", Of(&TOKEN_REVIEW_STATUS)),
    ],
);

pub(super) static TOKEN_REVIEW_SPEC: Message =
    message("TokenReviewSpec", &[one(1, "token", String), many(2, "audiences", String)]);

pub(super) static TOKEN_REVIEW_STATUS: Message = message(
    "TokenReviewStatus",
    &[
        one(1, "authenticated", Bool),
        one(2, "user", Of(&USER_INFO)),
        one(3, "error", String),
        many(4, "audiences", String),
    ],
);

pub(super) static USER_INFO: Message = message(
    "UserInfo",
    &[one(1, "username", String), one(2, "uid", String), many(3, "groups", String), map(4, "extra", Strings)],
);
