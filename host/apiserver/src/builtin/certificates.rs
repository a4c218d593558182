//! Messages of `certificates.k8s.io/v1`.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::meta;

pub(super) static CERTIFICATE_SIGNING_REQUEST: Message = message(
    "CertificateSigningRequest",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&CERTIFICATE_SIGNING_REQUEST_SPEC)),
        one(3, "status", Of(&CERTIFICATE_SIGNING_REQUEST_STATUS)),
    ],
);

pub(super) static CERTIFICATE_SIGNING_REQUEST_CONDITION: Message = message(
    "CertificateSigningRequestCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "reason", String),
        one(3, "message", String),
        one(4, "lastUpdateTime", Time),
        one(5, "lastTransitionTime", Time),
        one(6, "status", String).kept(),
    ],
);

pub(super) static CERTIFICATE_SIGNING_REQUEST_SPEC: Message = message(
    "CertificateSigningRequestSpec",
    &[
        one(1, "request", Bytes).kept(),
        one(2, "username", String),
        one(3, "uid", String),
        many(4, "groups", String),
        many(5, "usages", String),
        map(6, "extra", Strings),
        one(7, "signerName", String).required(),
        pointer(8, "expirationSeconds", Int32),
    ],
);

pub(super) static CERTIFICATE_SIGNING_REQUEST_STATUS: Message = message(
    "CertificateSigningRequestStatus",
    &[many(1, "conditions", Of(&CERTIFICATE_SIGNING_REQUEST_CONDITION)).keyed(&["type"]), one(2, "certificate", Bytes)],
);
