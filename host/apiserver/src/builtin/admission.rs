//! Messages of `admissionregistration.k8s.io/v1`.

use super::message::{Message, Type::*, inline, many, message, one, pointer};
use super::meta;

pub(super) static MATCH_CONDITION: Message =
    message("MatchCondition", &[one(1, "name", String).kept(), one(2, "expression", String).kept()]);

pub(super) static MUTATING_WEBHOOK: Message = message(
    "MutatingWebhook",
    &[
        one(1, "name", String).required(),
        one(2, "clientConfig", Of(&WEBHOOK_CLIENT_CONFIG)),
        many(3, "rules", Of(&RULE_WITH_OPERATIONS)),
        pointer(4, "failurePolicy", String),
        pointer(5, "namespaceSelector", Of(&meta::LABEL_SELECTOR)),
        pointer(6, "sideEffects", String).required(),
        pointer(7, "timeoutSeconds", Int32),
        many(8, "admissionReviewVersions", String),
        pointer(9, "matchPolicy", String),
        pointer(10, "reinvocationPolicy", String),
        pointer(11, "objectSelector", Of(&meta::LABEL_SELECTOR)),
        many(12, "matchConditions", Of(&MATCH_CONDITION)).keyed(&["name"]).merge("name"),
    ],
);

pub(super) static MUTATING_WEBHOOK_CONFIGURATION: Message = message(
    "MutatingWebhookConfiguration",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        many(2, "webhooks", Of(&MUTATING_WEBHOOK)).keyed(&["name"]).merge("name"),
    ],
);

pub(super) static RULE: Message = message(
    "Rule",
    &[
        many(1, "apiGroups", String),
        many(2, "apiVersions", String),
        many(3, "resources", String),
        pointer(4, "scope", String),
    ],
);

pub(super) static RULE_WITH_OPERATIONS: Message =
    message("RuleWithOperations", &[many(1, "operations", String), inline(2, Of(&RULE))]);

pub(super) static SERVICE_REFERENCE: Message = message(
    "ServiceReference",
    &[
        one(1, "namespace", String).required(),
        one(2, "name", String).required(),
        pointer(3, "path", String),
        pointer(4, "port", Int32),
    ],
);

pub(super) static VALIDATING_WEBHOOK: Message = message(
    "ValidatingWebhook",
    &[
        one(1, "name", String).required(),
        one(2, "clientConfig", Of(&WEBHOOK_CLIENT_CONFIG)),
        many(3, "rules", Of(&RULE_WITH_OPERATIONS)),
        pointer(4, "failurePolicy", String),
        pointer(5, "namespaceSelector", Of(&meta::LABEL_SELECTOR)),
        pointer(6, "sideEffects", String).required(),
        pointer(7, "timeoutSeconds", Int32),
        many(8, "admissionReviewVersions", String),
        pointer(9, "matchPolicy", String),
        pointer(10, "objectSelector", Of(&meta::LABEL_SELECTOR)),
        many(11, "matchConditions", Of(&MATCH_CONDITION)).keyed(&["name"]).merge("name"),
    ],
);

pub(super) static VALIDATING_WEBHOOK_CONFIGURATION: Message = message(
    "ValidatingWebhookConfiguration",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        many(2, "webhooks", Of(&VALIDATING_WEBHOOK)).keyed(&["name"]).merge("name"),
    ],
);

pub(super) static WEBHOOK_CLIENT_CONFIG: Message = message(
    "WebhookClientConfig",
    &[pointer(1, "service", Of(&SERVICE_REFERENCE)), one(2, "caBundle", Bytes), pointer(3, "url", String)],
);
