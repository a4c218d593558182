//! Messages of `policy/v1`.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::meta;

pub(super) static EVICTION: Message = message(
    "Eviction",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), pointer(2, "deleteOptions", Of(&meta::DELETE_OPTIONS))],
);

pub(super) static POD_DISRUPTION_BUDGET: Message = message(
    "PodDisruptionBudget",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&POD_DISRUPTION_BUDGET_SPEC)),
        one(3, "status", Of(&POD_DISRUPTION_BUDGET_STATUS)),
    ],
);

pub(super) static POD_DISRUPTION_BUDGET_SPEC: Message = message(
    "PodDisruptionBudgetSpec",
    &[
        pointer(1, "minAvailable", IntOrString),
        pointer(2, "selector", Of(&meta::LABEL_SELECTOR)),
        pointer(3, "maxUnavailable", IntOrString),
        pointer(4, "unhealthyPodEvictionPolicy", String),
    ],
);

pub(super) static POD_DISRUPTION_BUDGET_STATUS: Message = message(
    "PodDisruptionBudgetStatus",
    &[
        one(1, "observedGeneration", Int64),
        map(2, "disruptedPods", Time),
        one(3, "disruptionsAllowed", Int32).kept(),
        one(4, "currentHealthy", Int32).kept(),
        one(5, "desiredHealthy", Int32).kept(),
        one(6, "expectedPods", Int32).kept(),
        many(7, "conditions", Of(&meta::CONDITION)).keyed(&["type"]).merge("type"),
    ],
);
