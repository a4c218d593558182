//! Messages of `meta.k8s.io/v1`.

use super::message::{Message, Type::*, atomic_message, many, map, message, one, pointer};

pub(super) static CONDITION: Message = message(
    "Condition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "observedGeneration", Int64),
        one(4, "lastTransitionTime", Time),
        one(5, "reason", String).kept(),
        one(6, "message", String).kept(),
    ],
);

pub(super) static DELETE_OPTIONS: Message = message(
    "DeleteOptions",
    &[
        pointer(1, "gracePeriodSeconds", Int64),
        pointer(2, "preconditions", Of(&PRECONDITIONS)),
        pointer(3, "orphanDependents", Bool),
        pointer(4, "propagationPolicy", String),
        many(5, "dryRun", String),
        pointer(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Bool),
    ],
);

pub(super) static FIELD_SELECTOR_REQUIREMENT: Message = message(
    "FieldSelectorRequirement",
    &[one(1, "key", String).required(), one(2, "operator", String).required(), many(3, "values", String)],
);

pub(super) static LABEL_SELECTOR: Message = atomic_message(
    "LabelSelector",
    &[map(1, "matchLabels", String), many(2, "matchExpressions", Of(&LABEL_SELECTOR_REQUIREMENT))],
);

pub(super) static LABEL_SELECTOR_REQUIREMENT: Message = message(
    "LabelSelectorRequirement",
    &[one(1, "key", String).required(), one(2, "operator", String).required(), many(3, "values", String)],
);

pub(super) static MANAGED_FIELDS_ENTRY: Message = message(
    "ManagedFieldsEntry",
    &[
        one(1, "manager", String),
        one(2, "operation", String),
        one(3, "apiVersion", String),
        pointer(4, "time", Time),
        one(6, "fieldsType", String),
        pointer(7, "fieldsV1", Fields),
        one(8, "subresource", String),
    ],
);

pub(super) static OBJECT_META: Message = message(
    "ObjectMeta",
    &[
        one(1, "name", String),
        one(2, "generateName", String),
        one(3, "namespace", String),
        one(4, "selfLink", String),
        one(5, "uid", String),
        one(6, "resourceVersion", String),
        one(7, "generation", Int64),
        one(8, "creationTimestamp", Time),
        pointer(9, "deletionTimestamp", Time),
        pointer(10, "deletionGracePeriodSeconds", Int64),
        map(11, "labels", String),
        map(12, "annotations", String),
        many(13, "ownerReferences", Of(&OWNER_REFERENCE)).keyed(&["uid"]).merge("uid"),
        many(14, "finalizers", String).set().merge_set(),
        many(17, "managedFields", Of(&MANAGED_FIELDS_ENTRY)),
    ],
);

pub(super) static OWNER_REFERENCE: Message = atomic_message(
    "OwnerReference",
    &[
        one(1, "kind", String).required(),
        one(3, "name", String).required(),
        one(4, "uid", String).required(),
        one(5, "apiVersion", String).required(),
        pointer(6, "controller", Bool),
        pointer(7, "blockOwnerDeletion", Bool),
    ],
);

pub(super) static PRECONDITIONS: Message =
    message("Preconditions", &[pointer(1, "uid", String), pointer(2, "resourceVersion", String)]);
