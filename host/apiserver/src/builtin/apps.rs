//! Messages of `apps/v1`.

use super::message::{Message, Type::*, many, message, one, pointer};
use super::{meta, persistent_volume, pod};

pub(super) static DAEMON_SET: Message = message(
    "DaemonSet",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&DAEMON_SET_SPEC)),
        one(3, "status", Of(&DAEMON_SET_STATUS)),
    ],
);

pub(super) static DAEMON_SET_CONDITION: Message = message(
    "DaemonSetCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastTransitionTime", Time),
        one(4, "reason", String),
        one(5, "message", String),
    ],
);

pub(super) static DAEMON_SET_SPEC: Message = message(
    "DaemonSetSpec",
    &[
        pointer(1, "selector", Of(&meta::LABEL_SELECTOR)).required(),
        one(2, "template", Of(&pod::POD_TEMPLATE_SPEC)),
        one(3, "updateStrategy", Of(&DAEMON_SET_UPDATE_STRATEGY)),
        one(4, "minReadySeconds", Int32),
        pointer(6, "revisionHistoryLimit", Int32),
    ],
);

pub(super) static DAEMON_SET_STATUS: Message = message(
    "DaemonSetStatus",
    &[
        one(1, "currentNumberScheduled", Int32).kept(),
        one(2, "numberMisscheduled", Int32).kept(),
        one(3, "desiredNumberScheduled", Int32).kept(),
        one(4, "numberReady", Int32).kept(),
        one(5, "observedGeneration", Int64),
        one(6, "updatedNumberScheduled", Int32),
        one(7, "numberAvailable", Int32),
        one(8, "numberUnavailable", Int32),
        pointer(9, "collisionCount", Int32),
        many(10, "conditions", Of(&DAEMON_SET_CONDITION)).keyed(&["type"]).merge("type"),
    ],
);

pub(super) static DAEMON_SET_UPDATE_STRATEGY: Message = message(
    "DaemonSetUpdateStrategy",
    &[one(1, "type", String), pointer(2, "rollingUpdate", Of(&ROLLING_UPDATE_DAEMON_SET))],
);

pub(super) static DEPLOYMENT: Message = message(
    "Deployment",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&DEPLOYMENT_SPEC)),
        one(3, "status", Of(&DEPLOYMENT_STATUS)),
    ],
);

pub(super) static DEPLOYMENT_CONDITION: Message = message(
    "DeploymentCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(4, "reason", String),
        one(5, "message", String),
        one(6, "lastUpdateTime", Time),
        one(7, "lastTransitionTime", Time),
    ],
);

pub(super) static DEPLOYMENT_SPEC: Message = message(
    "DeploymentSpec",
    &[
        pointer(1, "replicas", Int32),
        pointer(2, "selector", Of(&meta::LABEL_SELECTOR)).required(),
        one(3, "template", Of(&pod::POD_TEMPLATE_SPEC)),
        one(4, "strategy", Of(&DEPLOYMENT_STRATEGY)).retain_keys(),
        one(5, "minReadySeconds", Int32),
        pointer(6, "revisionHistoryLimit", Int32),
        one(7, "paused", Bool),
        pointer(9, "progressDeadlineSeconds", Int32),
    ],
);

pub(super) static DEPLOYMENT_STATUS: Message = message(
    "DeploymentStatus",
    &[
        one(1, "observedGeneration", Int64),
        one(2, "replicas", Int32),
        one(3, "updatedReplicas", Int32),
        one(4, "availableReplicas", Int32),
        one(5, "unavailableReplicas", Int32),
        many(6, "conditions", Of(&DEPLOYMENT_CONDITION)).keyed(&["type"]).merge("type"),
        one(7, "readyReplicas", Int32),
        pointer(8, "collisionCount", Int32),
        pointer(9, "terminatingReplicas", Int32),
    ],
);

pub(super) static DEPLOYMENT_STRATEGY: Message = message(
    "DeploymentStrategy",
    &[one(1, "type", String), pointer(2, "rollingUpdate", Of(&ROLLING_UPDATE_DEPLOYMENT))],
);

pub(super) static REPLICA_SET: Message = message(
    "ReplicaSet",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&REPLICA_SET_SPEC)),
        one(3, "status", Of(&REPLICA_SET_STATUS)),
    ],
);

pub(super) static REPLICA_SET_CONDITION: Message = message(
    "ReplicaSetCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastTransitionTime", Time),
        one(4, "reason", String),
        one(5, "message", String),
    ],
);

pub(super) static REPLICA_SET_SPEC: Message = message(
    "ReplicaSetSpec",
    &[
        pointer(1, "replicas", Int32),
        pointer(2, "selector", Of(&meta::LABEL_SELECTOR)).required(),
        one(3, "template", Of(&pod::POD_TEMPLATE_SPEC)),
        one(4, "minReadySeconds", Int32),
    ],
);

pub(super) static REPLICA_SET_STATUS: Message = message(
    "ReplicaSetStatus",
    &[
        one(1, "replicas", Int32).kept(),
        one(2, "fullyLabeledReplicas", Int32),
        one(3, "observedGeneration", Int64),
        one(4, "readyReplicas", Int32),
        one(5, "availableReplicas", Int32),
        many(6, "conditions", Of(&REPLICA_SET_CONDITION)).keyed(&["type"]).merge("type"),
        pointer(7, "terminatingReplicas", Int32),
    ],
);

pub(super) static ROLLING_UPDATE_DAEMON_SET: Message = message(
    "RollingUpdateDaemonSet",
    &[pointer(1, "maxUnavailable", IntOrString), pointer(2, "maxSurge", IntOrString)],
);

pub(super) static ROLLING_UPDATE_DEPLOYMENT: Message = message(
    "RollingUpdateDeployment",
    &[pointer(1, "maxUnavailable", IntOrString), pointer(2, "maxSurge", IntOrString)],
);

pub(super) static ROLLING_UPDATE_STATEFUL_SET_STRATEGY: Message = message(
    "RollingUpdateStatefulSetStrategy",
    &[pointer(1, "partition", Int32), pointer(2, "maxUnavailable", IntOrString)],
);

pub(super) static STATEFUL_SET: Message = message(
    "StatefulSet",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&STATEFUL_SET_SPEC)),
        one(3, "status", Of(&STATEFUL_SET_STATUS)),
    ],
);

pub(super) static STATEFUL_SET_CONDITION: Message = message(
    "StatefulSetCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastTransitionTime", Time),
        one(4, "reason", String),
        one(5, "message", String),
    ],
);

pub(super) static STATEFUL_SET_ORDINALS: Message = message("StatefulSetOrdinals", &[one(1, "start", Int32).kept()]);

pub(super) static STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY: Message = message(
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    &[one(1, "whenDeleted", String), one(2, "whenScaled", String)],
);

pub(super) static STATEFUL_SET_SPEC: Message = message(
    "StatefulSetSpec",
    &[
        pointer(1, "replicas", Int32),
        pointer(2, "selector", Of(&meta::LABEL_SELECTOR)).required(),
        one(3, "template", Of(&pod::POD_TEMPLATE_SPEC)),
        many(4, "volumeClaimTemplates", Of(&persistent_volume::PERSISTENT_VOLUME_CLAIM)),
        one(5, "serviceName", String).kept(),
        one(6, "podManagementPolicy", String),
        one(7, "updateStrategy", Of(&STATEFUL_SET_UPDATE_STRATEGY)),
        pointer(8, "revisionHistoryLimit", Int32),
        one(9, "minReadySeconds", Int32),
        pointer(10, "persistentVolumeClaimRetentionPolicy", Of(&STATEFUL_SET_PERSISTENT_VOLUME_CLAIM_RETENTION_POLICY)),
        pointer(11, "ordinals", Of(&STATEFUL_SET_ORDINALS)),
    ],
);

pub(super) static STATEFUL_SET_STATUS: Message = message(
    "StatefulSetStatus",
    &[
        one(1, "observedGeneration", Int64),
        one(2, "replicas", Int32).kept(),
        one(3, "readyReplicas", Int32),
        one(4, "currentReplicas", Int32),
        one(5, "updatedReplicas", Int32),
        one(6, "currentRevision", String),
        one(7, "updateRevision", String),
        pointer(9, "collisionCount", Int32),
        many(10, "conditions", Of(&STATEFUL_SET_CONDITION)).keyed(&["type"]).merge("type"),
        one(11, "availableReplicas", Int32).kept(),
    ],
);

pub(super) static STATEFUL_SET_UPDATE_STRATEGY: Message = message(
    "StatefulSetUpdateStrategy",
    &[one(1, "type", String), pointer(2, "rollingUpdate", Of(&ROLLING_UPDATE_STATEFUL_SET_STRATEGY))],
);
