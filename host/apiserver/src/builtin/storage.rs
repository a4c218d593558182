//! Messages of `storage.k8s.io/v1`.

use super::message::{Message, Type::*, many, map, message, one, pointer};
use super::{core, meta, persistent_volume};

pub(super) static STORAGE_CLASS: Message = message(
    "StorageClass",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "provisioner", String).required(),
        map(3, "parameters", String),
        pointer(4, "reclaimPolicy", String),
        many(5, "mountOptions", String),
        pointer(6, "allowVolumeExpansion", Bool),
        pointer(7, "volumeBindingMode", String),
        many(8, "allowedTopologies", Of(&core::TOPOLOGY_SELECTOR_TERM)),
    ],
);

pub(super) static VOLUME_ATTACHMENT: Message = message(
    "VolumeAttachment",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&VOLUME_ATTACHMENT_SPEC)),
        one(3, "status", Of(&VOLUME_ATTACHMENT_STATUS)),
    ],
);

pub(super) static VOLUME_ATTACHMENT_SOURCE: Message = message(
    "VolumeAttachmentSource",
    &[
        pointer(1, "persistentVolumeName", String),
        pointer(2, "inlineVolumeSpec", Of(&persistent_volume::PERSISTENT_VOLUME_SPEC)),
    ],
);

pub(super) static VOLUME_ATTACHMENT_SPEC: Message = message(
    "VolumeAttachmentSpec",
    &[
        one(1, "attacher", String).required(),
        one(2, "source", Of(&VOLUME_ATTACHMENT_SOURCE)),
        one(3, "nodeName", String).required(),
    ],
);

pub(super) static VOLUME_ATTACHMENT_STATUS: Message = message(
    "VolumeAttachmentStatus",
    &[
        one(1, "attached", Bool).kept(),
        map(2, "attachmentMetadata", String),
        pointer(3, "attachError", Of(&VOLUME_ERROR)),
        pointer(4, "detachError", Of(&VOLUME_ERROR)),
    ],
);

pub(super) static VOLUME_ERROR: Message =
    message("VolumeError", &[one(1, "time", Time), one(2, "message", String), pointer(3, "errorCode", Int32)]);
