//! Messages of `authorization.k8s.io/v1`.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::meta;

pub(super) static FIELD_SELECTOR_ATTRIBUTES: Message = message(
    "FieldSelectorAttributes",
    &[one(1, "rawSelector", String), many(2, "requirements", Of(&meta::FIELD_SELECTOR_REQUIREMENT))],
);

pub(super) static LABEL_SELECTOR_ATTRIBUTES: Message = message(
    "LabelSelectorAttributes",
    &[one(1, "rawSelector", String), many(2, "requirements", Of(&meta::LABEL_SELECTOR_REQUIREMENT))],
);

pub(super) static LOCAL_SUBJECT_ACCESS_REVIEW: Message = message(
    "LocalSubjectAccessReview",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&SUBJECT_ACCESS_REVIEW_SPEC)),
        one(3, "status", Of(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
);

pub(super) static NON_RESOURCE_ATTRIBUTES: Message =
    message("NonResourceAttributes", &[one(1, "path", String), one(2, "verb", String)]);

pub(super) static NON_RESOURCE_RULE: Message =
    message("NonResourceRule", &[many(1, "verbs", String), many(2, "nonResourceURLs", String)]);

pub(super) static RESOURCE_ATTRIBUTES: Message = message(
    "ResourceAttributes",
    &[
        one(1, "namespace", String),
        one(2, "verb", String),
        one(3, "group", String),
        one(4, "version", String),
        one(5, "resource", String),
        one(6, "subresource", String),
        one(7, "name", String),
        pointer(8, "fieldSelector", Of(&FIELD_SELECTOR_ATTRIBUTES)),
        pointer(9, "labelSelector", Of(&LABEL_SELECTOR_ATTRIBUTES)),
    ],
);

pub(super) static RESOURCE_RULE: Message = message(
    "ResourceRule",
    &[
        many(1, "verbs", String),
        many(2, "apiGroups", String),
        many(3, "resources", String),
        many(4, "resourceNames", String),
    ],
);

pub(super) static SELF_SUBJECT_ACCESS_REVIEW: Message = message(
    "SelfSubjectAccessReview",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)),
        one(3, "status", Of(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
);

pub(super) static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Message = message(
    "SelfSubjectAccessReviewSpec",
    &[
        pointer(1, "resourceAttributes", Of(&RESOURCE_ATTRIBUTES)),
        pointer(2, "nonResourceAttributes", Of(&NON_RESOURCE_ATTRIBUTES)),
    ],
);

pub(super) static SELF_SUBJECT_RULES_REVIEW: Message = message(
    "SelfSubjectRulesReview",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&SELF_SUBJECT_RULES_REVIEW_SPEC)),
        one(3, "status", Of(&SUBJECT_RULES_REVIEW_STATUS)),
    ],
);

pub(super) static SELF_SUBJECT_RULES_REVIEW_SPEC: Message =
    message("SelfSubjectRulesReviewSpec", &[one(1, "namespace", String)]);

pub(super) static SUBJECT_ACCESS_REVIEW: Message = message(
    "SubjectAccessReview",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&SUBJECT_ACCESS_REVIEW_SPEC)),
        one(3, "status", Of(&SUBJECT_ACCESS_REVIEW_STATUS)),
    ],
);

pub(super) static SUBJECT_ACCESS_REVIEW_SPEC: Message = message(
    "SubjectAccessReviewSpec",
    &[
        pointer(1, "resourceAttributes", Of(&RESOURCE_ATTRIBUTES)),
        pointer(2, "nonResourceAttributes", Of(&NON_RESOURCE_ATTRIBUTES)),
        one(3, "user", String),
        many(4, "groups", String),
        map(5, "extra", Strings),
        one(6, "uid", String),
    ],
);

pub(super) static SUBJECT_ACCESS_REVIEW_STATUS: Message = message(
    "SubjectAccessReviewStatus",
    &[
        one(1, "allowed", Bool).kept(),
        one(2, "reason", String),
        one(3, "evaluationError", String),
        one(4, "denied", Bool),
    ],
);

pub(super) static SUBJECT_RULES_REVIEW_STATUS: Message = message(
    "SubjectRulesReviewStatus",
    &[
        many(1, "resourceRules", Of(&RESOURCE_RULE)),
        many(2, "nonResourceRules", Of(&NON_RESOURCE_RULE)),
        one(3, "incomplete", Bool).kept(),
        one(4, "evaluationError", String),
    ],
);
