//! Persistent volumes and their claims.

use super::message::{Message, Type::*, inline, many, map, message, one, pointer};
use super::{core, meta, node, volume};

pub(super) static AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Message = message(
    "AzureFilePersistentVolumeSource",
    &[
        one(1, "secretName", String).required(),
        one(2, "shareName", String).required(),
        one(3, "readOnly", Bool),
        pointer(4, "secretNamespace", String),
    ],
);

pub(super) static CSI_PERSISTENT_VOLUME_SOURCE: Message = message(
    "CSIPersistentVolumeSource",
    &[
        one(1, "driver", String).required(),
        one(2, "volumeHandle", String).required(),
        one(3, "readOnly", Bool),
        one(4, "fsType", String),
        map(5, "volumeAttributes", String),
        pointer(6, "controllerPublishSecretRef", Of(&core::SECRET_REFERENCE)),
        pointer(7, "nodeStageSecretRef", Of(&core::SECRET_REFERENCE)),
        pointer(8, "nodePublishSecretRef", Of(&core::SECRET_REFERENCE)),
        pointer(9, "controllerExpandSecretRef", Of(&core::SECRET_REFERENCE)),
        pointer(10, "nodeExpandSecretRef", Of(&core::SECRET_REFERENCE)),
    ],
);

pub(super) static CEPH_FS_PERSISTENT_VOLUME_SOURCE: Message = message(
    "CephFSPersistentVolumeSource",
    &[
        many(1, "monitors", String),
        one(2, "path", String),
        one(3, "user", String),
        one(4, "secretFile", String),
        pointer(5, "secretRef", Of(&core::SECRET_REFERENCE)),
        one(6, "readOnly", Bool),
    ],
);

pub(super) static CINDER_PERSISTENT_VOLUME_SOURCE: Message = message(
    "CinderPersistentVolumeSource",
    &[
        one(1, "volumeID", String).required(),
        one(2, "fsType", String),
        one(3, "readOnly", Bool),
        pointer(4, "secretRef", Of(&core::SECRET_REFERENCE)),
    ],
);

pub(super) static FLEX_PERSISTENT_VOLUME_SOURCE: Message = message(
    "FlexPersistentVolumeSource",
    &[
        one(1, "driver", String).required(),
        one(2, "fsType", String),
        pointer(3, "secretRef", Of(&core::SECRET_REFERENCE)),
        one(4, "readOnly", Bool),
        map(5, "options", String),
    ],
);

pub(super) static GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Message = message(
    "GlusterfsPersistentVolumeSource",
    &[
        one(1, "endpoints", String).required(),
        one(2, "path", String).required(),
        one(3, "readOnly", Bool),
        pointer(4, "endpointsNamespace", String),
    ],
);

pub(super) static ISCSI_PERSISTENT_VOLUME_SOURCE: Message = message(
    "ISCSIPersistentVolumeSource",
    &[
        one(1, "targetPortal", String).required(),
        one(2, "iqn", String).required(),
        one(3, "lun", Int32).kept(),
        one(4, "iscsiInterface", String).default("default"),
        one(5, "fsType", String),
        one(6, "readOnly", Bool),
        many(7, "portals", String),
        one(8, "chapAuthDiscovery", Bool),
        pointer(10, "secretRef", Of(&core::SECRET_REFERENCE)),
        one(11, "chapAuthSession", Bool),
        pointer(12, "initiatorName", String),
    ],
);

pub(super) static MODIFY_VOLUME_STATUS: Message = message(
    "ModifyVolumeStatus",
    &[one(1, "targetVolumeAttributesClassName", String), one(2, "status", String).kept()],
);

pub(super) static PERSISTENT_VOLUME: Message = message(
    "PersistentVolume",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&PERSISTENT_VOLUME_SPEC)),
        one(3, "status", Of(&PERSISTENT_VOLUME_STATUS)),
    ],
);

pub(super) static PERSISTENT_VOLUME_CLAIM: Message = message(
    "PersistentVolumeClaim",
    &[
        one(1, "metadata", Of(&meta::OBJECT_META)),
        one(2, "spec", Of(&PERSISTENT_VOLUME_CLAIM_SPEC)),
        one(3, "status", Of(&PERSISTENT_VOLUME_CLAIM_STATUS)),
    ],
);

pub(super) static PERSISTENT_VOLUME_CLAIM_CONDITION: Message = message(
    "PersistentVolumeClaimCondition",
    &[
        one(1, "type", String).kept(),
        one(2, "status", String).kept(),
        one(3, "lastProbeTime", Time),
        one(4, "lastTransitionTime", Time),
        one(5, "reason", String),
        one(6, "message", String),
    ],
);

pub(super) static PERSISTENT_VOLUME_CLAIM_SPEC: Message = message(
    "PersistentVolumeClaimSpec",
    &[
        many(1, "accessModes", String),
        one(2, "resources", Of(&VOLUME_RESOURCE_REQUIREMENTS)),
        one(3, "volumeName", String),
        pointer(4, "selector", Of(&meta::LABEL_SELECTOR)),
        pointer(5, "storageClassName", String),
        pointer(6, "volumeMode", String),
        pointer(7, "dataSource", Of(&core::TYPED_LOCAL_OBJECT_REFERENCE)),
        pointer(8, "dataSourceRef", Of(&volume::TYPED_OBJECT_REFERENCE)),
        pointer(9, "volumeAttributesClassName", String),
    ],
);

pub(super) static PERSISTENT_VOLUME_CLAIM_STATUS: Message = message(
    "PersistentVolumeClaimStatus",
    &[
        one(1, "phase", String),
        many(2, "accessModes", String),
        map(3, "capacity", Quantity),
        many(4, "conditions", Of(&PERSISTENT_VOLUME_CLAIM_CONDITION)).keyed(&["type"]).merge("type"),
        map(5, "allocatedResources", Quantity),
        map(7, "allocatedResourceStatuses", String),
        pointer(8, "currentVolumeAttributesClassName", String),
        pointer(9, "modifyVolumeStatus", Of(&MODIFY_VOLUME_STATUS)),
    ],
);

pub(super) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Message = message(
    "PersistentVolumeClaimTemplate",
    &[one(1, "metadata", Of(&meta::OBJECT_META)), one(2, "spec", Of(&PERSISTENT_VOLUME_CLAIM_SPEC))],
);

pub(super) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Message =
    message("PersistentVolumeClaimVolumeSource", &[one(1, "claimName", String).required(), one(2, "readOnly", Bool)]);

pub(super) static PERSISTENT_VOLUME_SOURCE: Message = message(
    "PersistentVolumeSource",
    &[
        pointer(1, "gcePersistentDisk", Of(&volume::GCE_PERSISTENT_DISK_VOLUME_SOURCE)),
        pointer(2, "awsElasticBlockStore", Of(&volume::AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
        pointer(3, "hostPath", Of(&volume::HOST_PATH_VOLUME_SOURCE)),
        pointer(4, "glusterfs", Of(&GLUSTERFS_PERSISTENT_VOLUME_SOURCE)),
        pointer(5, "nfs", Of(&volume::NFS_VOLUME_SOURCE)),
        pointer(6, "rbd", Of(&RBD_PERSISTENT_VOLUME_SOURCE)),
        pointer(7, "iscsi", Of(&ISCSI_PERSISTENT_VOLUME_SOURCE)),
        pointer(8, "cinder", Of(&CINDER_PERSISTENT_VOLUME_SOURCE)),
        pointer(9, "cephfs", Of(&CEPH_FS_PERSISTENT_VOLUME_SOURCE)),
        pointer(10, "fc", Of(&volume::FC_VOLUME_SOURCE)),
        pointer(11, "flocker", Of(&volume::FLOCKER_VOLUME_SOURCE)),
        pointer(12, "flexVolume", Of(&FLEX_PERSISTENT_VOLUME_SOURCE)),
        pointer(13, "azureFile", Of(&AZURE_FILE_PERSISTENT_VOLUME_SOURCE)),
        pointer(14, "vsphereVolume", Of(&volume::VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
        pointer(15, "quobyte", Of(&volume::QUOBYTE_VOLUME_SOURCE)),
        pointer(16, "azureDisk", Of(&volume::AZURE_DISK_VOLUME_SOURCE)),
        pointer(17, "photonPersistentDisk", Of(&volume::PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
        pointer(18, "portworxVolume", Of(&volume::PORTWORX_VOLUME_SOURCE)),
        pointer(19, "scaleIO", Of(&SCALE_IO_PERSISTENT_VOLUME_SOURCE)),
        pointer(20, "local", Of(&volume::LOCAL_VOLUME_SOURCE)),
        pointer(21, "storageos", Of(&STORAGE_OS_PERSISTENT_VOLUME_SOURCE)),
        pointer(22, "csi", Of(&CSI_PERSISTENT_VOLUME_SOURCE)),
    ],
);

pub(super) static PERSISTENT_VOLUME_SPEC: Message = message(
    "PersistentVolumeSpec",
    &[
        map(1, "capacity", Quantity),
        inline(2, Of(&PERSISTENT_VOLUME_SOURCE)),
        many(3, "accessModes", String),
        pointer(4, "claimRef", Of(&core::OBJECT_REFERENCE)),
        one(5, "persistentVolumeReclaimPolicy", String),
        one(6, "storageClassName", String),
        many(7, "mountOptions", String),
        pointer(8, "volumeMode", String),
        pointer(9, "nodeAffinity", Of(&VOLUME_NODE_AFFINITY)),
        pointer(10, "volumeAttributesClassName", String),
    ],
);

pub(super) static PERSISTENT_VOLUME_STATUS: Message = message(
    "PersistentVolumeStatus",
    &[
        one(1, "phase", String),
        one(2, "message", String),
        one(3, "reason", String),
        pointer(4, "lastPhaseTransitionTime", Time),
    ],
);

pub(super) static RBD_PERSISTENT_VOLUME_SOURCE: Message = message(
    "RBDPersistentVolumeSource",
    &[
        many(1, "monitors", String),
        one(2, "image", String).required(),
        one(3, "fsType", String),
        one(4, "pool", String).default("rbd"),
        one(5, "user", String).default("admin"),
        one(6, "keyring", String).default("/etc/ceph/keyring"),
        pointer(7, "secretRef", Of(&core::SECRET_REFERENCE)),
        one(8, "readOnly", Bool),
    ],
);

pub(super) static SCALE_IO_PERSISTENT_VOLUME_SOURCE: Message = message(
    "ScaleIOPersistentVolumeSource",
    &[
        one(1, "gateway", String).required(),
        one(2, "system", String).required(),
        pointer(3, "secretRef", Of(&core::SECRET_REFERENCE)).required(),
        one(4, "sslEnabled", Bool),
        one(5, "protectionDomain", String),
        one(6, "storagePool", String),
        one(7, "storageMode", String).default("ThinProvisioned"),
        one(8, "volumeName", String),
        one(9, "fsType", String).default("xfs"),
        one(10, "readOnly", Bool),
    ],
);

pub(super) static STORAGE_OS_PERSISTENT_VOLUME_SOURCE: Message = message(
    "StorageOSPersistentVolumeSource",
    &[
        one(1, "volumeName", String),
        one(2, "volumeNamespace", String),
        one(3, "fsType", String),
        one(4, "readOnly", Bool),
        pointer(5, "secretRef", Of(&core::OBJECT_REFERENCE)),
    ],
);

pub(super) static VOLUME_NODE_AFFINITY: Message =
    message("VolumeNodeAffinity", &[pointer(1, "required", Of(&node::NODE_SELECTOR))]);

pub(super) static VOLUME_RESOURCE_REQUIREMENTS: Message =
    message("VolumeResourceRequirements", &[map(1, "limits", Quantity), map(2, "requests", Quantity)]);
