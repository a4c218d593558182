//! Volumes of a pod and their sources.

use super::message::{Message, Type::*, inline, many, map, message, one, pointer};
use super::{core, meta, persistent_volume};

pub(super) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Message = message(
    "AWSElasticBlockStoreVolumeSource",
    &[
        one(1, "volumeID", String).required(),
        one(2, "fsType", String),
        one(3, "partition", Int32),
        one(4, "readOnly", Bool),
    ],
);

pub(super) static AZURE_DISK_VOLUME_SOURCE: Message = message(
    "AzureDiskVolumeSource",
    &[
        one(1, "diskName", String).required(),
        one(2, "diskURI", String).required(),
        pointer(3, "cachingMode", String),
        pointer(4, "fsType", String).default("ext4"),
        pointer(5, "readOnly", Bool),
        pointer(6, "kind", String),
    ],
);

pub(super) static AZURE_FILE_VOLUME_SOURCE: Message = message(
    "AzureFileVolumeSource",
    &[one(1, "secretName", String).required(), one(2, "shareName", String).required(), one(3, "readOnly", Bool)],
);

pub(super) static CSI_VOLUME_SOURCE: Message = message(
    "CSIVolumeSource",
    &[
        one(1, "driver", String).required(),
        pointer(2, "readOnly", Bool),
        pointer(3, "fsType", String),
        map(4, "volumeAttributes", String),
        pointer(5, "nodePublishSecretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
    ],
);

pub(super) static CEPH_FS_VOLUME_SOURCE: Message = message(
    "CephFSVolumeSource",
    &[
        many(1, "monitors", String),
        one(2, "path", String),
        one(3, "user", String),
        one(4, "secretFile", String),
        pointer(5, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
        one(6, "readOnly", Bool),
    ],
);

pub(super) static CINDER_VOLUME_SOURCE: Message = message(
    "CinderVolumeSource",
    &[
        one(1, "volumeID", String).required(),
        one(2, "fsType", String),
        one(3, "readOnly", Bool),
        pointer(4, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
    ],
);

pub(super) static CLUSTER_TRUST_BUNDLE_PROJECTION: Message = message(
    "ClusterTrustBundleProjection",
    &[
        pointer(1, "name", String),
        pointer(2, "signerName", String),
        pointer(3, "labelSelector", Of(&meta::LABEL_SELECTOR)),
        one(4, "path", String).required(),
        pointer(5, "optional", Bool),
    ],
);

pub(super) static CONFIG_MAP_PROJECTION: Message = message(
    "ConfigMapProjection",
    &[inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)), many(2, "items", Of(&KEY_TO_PATH)), pointer(4, "optional", Bool)],
);

pub(super) static CONFIG_MAP_VOLUME_SOURCE: Message = message(
    "ConfigMapVolumeSource",
    &[
        inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)),
        many(2, "items", Of(&KEY_TO_PATH)),
        pointer(3, "defaultMode", Int32),
        pointer(4, "optional", Bool),
    ],
);

pub(super) static DOWNWARD_API_PROJECTION: Message =
    message("DownwardAPIProjection", &[many(1, "items", Of(&DOWNWARD_API_VOLUME_FILE))]);

pub(super) static DOWNWARD_API_VOLUME_FILE: Message = message(
    "DownwardAPIVolumeFile",
    &[
        one(1, "path", String).required(),
        pointer(2, "fieldRef", Of(&core::OBJECT_FIELD_SELECTOR)),
        pointer(3, "resourceFieldRef", Of(&core::RESOURCE_FIELD_SELECTOR)),
        pointer(4, "mode", Int32),
    ],
);

pub(super) static DOWNWARD_API_VOLUME_SOURCE: Message = message(
    "DownwardAPIVolumeSource",
    &[many(1, "items", Of(&DOWNWARD_API_VOLUME_FILE)), pointer(2, "defaultMode", Int32)],
);

pub(super) static EMPTY_DIR_VOLUME_SOURCE: Message =
    message("EmptyDirVolumeSource", &[one(1, "medium", String), pointer(2, "sizeLimit", Quantity)]);

pub(super) static EPHEMERAL_VOLUME_SOURCE: Message = message(
    "EphemeralVolumeSource",
    &[pointer(1, "volumeClaimTemplate", Of(&persistent_volume::PERSISTENT_VOLUME_CLAIM_TEMPLATE))],
);

pub(super) static FC_VOLUME_SOURCE: Message = message(
    "FCVolumeSource",
    &[
        many(1, "targetWWNs", String),
        pointer(2, "lun", Int32),
        one(3, "fsType", String),
        one(4, "readOnly", Bool),
        many(5, "wwids", String),
    ],
);

pub(super) static FLEX_VOLUME_SOURCE: Message = message(
    "FlexVolumeSource",
    &[
        one(1, "driver", String).required(),
        one(2, "fsType", String),
        pointer(3, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
        one(4, "readOnly", Bool),
        map(5, "options", String),
    ],
);

pub(super) static FLOCKER_VOLUME_SOURCE: Message =
    message("FlockerVolumeSource", &[one(1, "datasetName", String), one(2, "datasetUUID", String)]);

pub(super) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Message = message(
    "GCEPersistentDiskVolumeSource",
    &[
        one(1, "pdName", String).required(),
        one(2, "fsType", String),
        one(3, "partition", Int32),
        one(4, "readOnly", Bool),
    ],
);

pub(super) static GIT_REPO_VOLUME_SOURCE: Message = message(
    "GitRepoVolumeSource",
    &[one(1, "repository", String).required(), one(2, "revision", String), one(3, "directory", String)],
);

pub(super) static GLUSTERFS_VOLUME_SOURCE: Message = message(
    "GlusterfsVolumeSource",
    &[one(1, "endpoints", String).required(), one(2, "path", String).required(), one(3, "readOnly", Bool)],
);

pub(super) static HOST_PATH_VOLUME_SOURCE: Message =
    message("HostPathVolumeSource", &[one(1, "path", String).required(), pointer(2, "type", String)]);

pub(super) static ISCSI_VOLUME_SOURCE: Message = message(
    "ISCSIVolumeSource",
    &[
        one(1, "targetPortal", String).required(),
        one(2, "iqn", String).required(),
        one(3, "lun", Int32).kept(),
        one(4, "iscsiInterface", String).default("default"),
        one(5, "fsType", String),
        one(6, "readOnly", Bool),
        many(7, "portals", String),
        one(8, "chapAuthDiscovery", Bool),
        pointer(10, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
        one(11, "chapAuthSession", Bool),
        pointer(12, "initiatorName", String),
    ],
);

pub(super) static IMAGE_VOLUME_SOURCE: Message =
    message("ImageVolumeSource", &[one(1, "reference", String), one(2, "pullPolicy", String)]);

pub(super) static KEY_TO_PATH: Message = message(
    "KeyToPath",
    &[one(1, "key", String).required(), one(2, "path", String).required(), pointer(3, "mode", Int32)],
);

pub(super) static LOCAL_VOLUME_SOURCE: Message =
    message("LocalVolumeSource", &[one(1, "path", String).required(), pointer(2, "fsType", String)]);

pub(super) static NFS_VOLUME_SOURCE: Message = message(
    "NFSVolumeSource",
    &[one(1, "server", String).required(), one(2, "path", String).required(), one(3, "readOnly", Bool)],
);

pub(super) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Message =
    message("PhotonPersistentDiskVolumeSource", &[one(1, "pdID", String).required(), one(2, "fsType", String)]);

pub(super) static POD_CERTIFICATE_PROJECTION: Message = message(
    "PodCertificateProjection",
    &[
        one(1, "signerName", String).required(),
        one(2, "keyType", String).required(),
        pointer(3, "maxExpirationSeconds", Int32),
        one(4, "credentialBundlePath", String),
        one(5, "keyPath", String),
        one(6, "certificateChainPath", String),
    ],
);

pub(super) static PORTWORX_VOLUME_SOURCE: Message = message(
    "PortworxVolumeSource",
    &[one(1, "volumeID", String).required(), one(2, "fsType", String), one(3, "readOnly", Bool)],
);

pub(super) static PROJECTED_VOLUME_SOURCE: Message =
    message("ProjectedVolumeSource", &[many(1, "sources", Of(&VOLUME_PROJECTION)), pointer(2, "defaultMode", Int32)]);

pub(super) static QUOBYTE_VOLUME_SOURCE: Message = message(
    "QuobyteVolumeSource",
    &[
        one(1, "registry", String).required(),
        one(2, "volume", String).required(),
        one(3, "readOnly", Bool),
        one(4, "user", String),
        one(5, "group", String),
        one(6, "tenant", String),
    ],
);

pub(super) static RBD_VOLUME_SOURCE: Message = message(
    "RBDVolumeSource",
    &[
        many(1, "monitors", String),
        one(2, "image", String).required(),
        one(3, "fsType", String),
        one(4, "pool", String).default("rbd"),
        one(5, "user", String).default("admin"),
        one(6, "keyring", String).default("/etc/ceph/keyring"),
        pointer(7, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
        one(8, "readOnly", Bool),
    ],
);

pub(super) static SCALE_IO_VOLUME_SOURCE: Message = message(
    "ScaleIOVolumeSource",
    &[
        one(1, "gateway", String).required(),
        one(2, "system", String).required(),
        pointer(3, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)).required(),
        one(4, "sslEnabled", Bool),
        one(5, "protectionDomain", String),
        one(6, "storagePool", String),
        one(7, "storageMode", String).default("ThinProvisioned"),
        one(8, "volumeName", String),
        one(9, "fsType", String).default("xfs"),
        one(10, "readOnly", Bool),
    ],
);

pub(super) static SECRET_PROJECTION: Message = message(
    "SecretProjection",
    &[inline(1, Of(&core::LOCAL_OBJECT_REFERENCE)), many(2, "items", Of(&KEY_TO_PATH)), pointer(4, "optional", Bool)],
);

pub(super) static SECRET_VOLUME_SOURCE: Message = message(
    "SecretVolumeSource",
    &[
        one(1, "secretName", String),
        many(2, "items", Of(&KEY_TO_PATH)),
        pointer(3, "defaultMode", Int32),
        pointer(4, "optional", Bool),
    ],
);

pub(super) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Message = message(
    "ServiceAccountTokenProjection",
    &[one(1, "audience", String), pointer(2, "expirationSeconds", Int64), one(3, "path", String).required()],
);

pub(super) static STORAGE_OS_VOLUME_SOURCE: Message = message(
    "StorageOSVolumeSource",
    &[
        one(1, "volumeName", String),
        one(2, "volumeNamespace", String),
        one(3, "fsType", String),
        one(4, "readOnly", Bool),
        pointer(5, "secretRef", Of(&core::LOCAL_OBJECT_REFERENCE)),
    ],
);

pub(super) static TYPED_OBJECT_REFERENCE: Message = message(
    "TypedObjectReference",
    &[
        pointer(1, "apiGroup", String),
        one(2, "kind", String).required(),
        one(3, "name", String).required(),
        pointer(4, "namespace", String),
    ],
);

pub(super) static VOLUME: Message =
    message("Volume", &[one(1, "name", String).required(), inline(2, Of(&VOLUME_SOURCE))]);

pub(super) static VOLUME_PROJECTION: Message = message(
    "VolumeProjection",
    &[
        pointer(1, "secret", Of(&SECRET_PROJECTION)),
        pointer(2, "downwardAPI", Of(&DOWNWARD_API_PROJECTION)),
        pointer(3, "configMap", Of(&CONFIG_MAP_PROJECTION)),
        pointer(4, "serviceAccountToken", Of(&SERVICE_ACCOUNT_TOKEN_PROJECTION)),
        pointer(5, "clusterTrustBundle", Of(&CLUSTER_TRUST_BUNDLE_PROJECTION)),
        pointer(6, "podCertificate", Of(&POD_CERTIFICATE_PROJECTION)),
    ],
);

pub(super) static VOLUME_SOURCE: Message = message(
    "VolumeSource",
    &[
        pointer(1, "hostPath", Of(&HOST_PATH_VOLUME_SOURCE)),
        pointer(2, "emptyDir", Of(&EMPTY_DIR_VOLUME_SOURCE)),
        pointer(3, "gcePersistentDisk", Of(&GCE_PERSISTENT_DISK_VOLUME_SOURCE)),
        pointer(4, "awsElasticBlockStore", Of(&AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
        pointer(5, "gitRepo", Of(&GIT_REPO_VOLUME_SOURCE)),
        pointer(6, "secret", Of(&SECRET_VOLUME_SOURCE)),
        pointer(7, "nfs", Of(&NFS_VOLUME_SOURCE)),
        pointer(8, "iscsi", Of(&ISCSI_VOLUME_SOURCE)),
        pointer(9, "glusterfs", Of(&GLUSTERFS_VOLUME_SOURCE)),
        pointer(10, "persistentVolumeClaim", Of(&persistent_volume::PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
        pointer(11, "rbd", Of(&RBD_VOLUME_SOURCE)),
        pointer(12, "flexVolume", Of(&FLEX_VOLUME_SOURCE)),
        pointer(13, "cinder", Of(&CINDER_VOLUME_SOURCE)),
        pointer(14, "cephfs", Of(&CEPH_FS_VOLUME_SOURCE)),
        pointer(15, "flocker", Of(&FLOCKER_VOLUME_SOURCE)),
        pointer(16, "downwardAPI", Of(&DOWNWARD_API_VOLUME_SOURCE)),
        pointer(17, "fc", Of(&FC_VOLUME_SOURCE)),
        pointer(18, "azureFile", Of(&AZURE_FILE_VOLUME_SOURCE)),
        pointer(19, "configMap", Of(&CONFIG_MAP_VOLUME_SOURCE)),
        pointer(20, "vsphereVolume", Of(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
        pointer(21, "quobyte", Of(&QUOBYTE_VOLUME_SOURCE)),
        pointer(22, "azureDisk", Of(&AZURE_DISK_VOLUME_SOURCE)),
        pointer(23, "photonPersistentDisk", Of(&PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
        pointer(24, "portworxVolume", Of(&PORTWORX_VOLUME_SOURCE)),
        pointer(25, "scaleIO", Of(&SCALE_IO_VOLUME_SOURCE)),
        pointer(26, "projected", Of(&PROJECTED_VOLUME_SOURCE)),
        pointer(27, "storageos", Of(&STORAGE_OS_VOLUME_SOURCE)),
        pointer(28, "csi", Of(&CSI_VOLUME_SOURCE)),
        pointer(29, "ephemeral", Of(&EPHEMERAL_VOLUME_SOURCE)),
        pointer(30, "image", Of(&IMAGE_VOLUME_SOURCE)),
    ],
);

pub(super) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Message = message(
    "VsphereVirtualDiskVolumeSource",
    &[
        one(1, "volumePath", String).required(),
        one(2, "fsType", String),
        one(3, "storagePolicyName", String),
        one(4, "storagePolicyID", String),
    ],
);
