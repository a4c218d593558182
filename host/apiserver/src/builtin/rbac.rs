//! Messages of `rbac.authorization.k8s.io/v1`.

use super::message::{Message, Type::*, atomic_message, many, message, one, pointer};
use super::meta;

pub(super) static AGGREGATION_RULE: Message =
    message("AggregationRule", &[many(1, "clusterRoleSelectors", Of(&meta::LABEL_SELECTOR))]);

pub(super) static CLUSTER_ROLE: Message = message(
    "ClusterRole",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        many(2, "rules", Of(&POLICY_RULE)),
        pointer(3, "aggregationRule", Of(&AGGREGATION_RULE)),
    ],
);

pub(super) static CLUSTER_ROLE_BINDING: Message = message(
    "ClusterRoleBinding",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), many(2, "subjects", Of(&SUBJECT)), one(3, "roleRef", Of(&ROLE_REF))],
);

pub(super) static POLICY_RULE: Message = message(
    "PolicyRule",
    &[
        many(1, "verbs", String),
        many(2, "apiGroups", String),
        many(3, "resources", String),
        many(4, "resourceNames", String),
        many(5, "nonResourceURLs", String),
    ],
);

pub(super) static ROLE: Message =
    message("Role", &[one(1, "metadata", Of(&meta::OBJECT_META)), many(2, "rules", Of(&POLICY_RULE))]);

pub(super) static ROLE_BINDING: Message = message(
    "RoleBinding",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), many(2, "subjects", Of(&SUBJECT)), one(3, "roleRef", Of(&ROLE_REF))],
);

pub(super) static ROLE_REF: Message = atomic_message(
    "RoleRef",
    &[
        one(1, "apiGroup", String).default("rbac.authorization.k8s.io"),
        one(2, "kind", String).required(),
        one(3, "name", String).required(),
    ],
);

pub(super) static SUBJECT: Message = atomic_message(
    "Subject",
    &[
        one(1, "kind", String).required(),
        one(2, "apiGroup", String),
        one(3, "name", String).required(),
        one(4, "namespace", String),
    ],
);
