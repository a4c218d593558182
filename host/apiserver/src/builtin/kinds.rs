//! The table of built-in kinds.

use super::message::Message;
use super::{
    admission, apps, authentication, authorization, autoscaling, certificates, coordination, core, crd, discovery,
    events, meta, node, persistent_volume, pod, policy, rbac, storage,
};

/// What the server needs to know about a built-in kind, besides its fields.
pub struct BuiltinKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version, without the group.
    pub version: &'static str,
    /// Kind, such as `ConfigMap`.
    pub kind: &'static str,
    /// Resource name, such as `configmaps`.
    pub plural: &'static str,
    /// Singular resource name, such as `configmap`.
    pub singular: &'static str,
    /// Names that kubectl expands, such as `cm`.
    pub short_names: &'static [&'static str],
    /// Groups of resources that kubectl expands, such as `all`.
    pub categories: &'static [&'static str],
    /// Lives in a namespace.
    pub namespaced: bool,
    /// Has the `status` subresource.
    pub has_status: bool,
    /// `metadata.generation` counts changes of the desired state.
    pub has_generation: bool,
    /// Objects are stored; others are answered at once and forgotten, such as reviews.
    pub stored: bool,
    message: &'static Message,
}

impl BuiltinKind {
    pub(super) fn message(&self) -> &'static Message {
        self.message
    }

    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn in_all(mut self) -> Self {
        self.categories = &["all"];
        self
    }

    const fn in_api_extensions(mut self) -> Self {
        self.categories = &["api-extensions"];
        self
    }

    const fn status(mut self) -> Self {
        self.has_status = true;
        self
    }

    const fn generation(mut self) -> Self {
        self.has_generation = true;
        self
    }

    const fn answered(mut self) -> Self {
        self.stored = false;
        self
    }
}

const fn kind(
    (group, version): (&'static str, &'static str),
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    namespaced: bool,
    message: &'static Message,
) -> BuiltinKind {
    BuiltinKind {
        group,
        version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced,
        has_status: false,
        has_generation: false,
        stored: true,
        message,
    }
}

const fn namespaced(
    gv: (&'static str, &'static str),
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    message: &'static Message,
) -> BuiltinKind {
    kind(gv, name, plural, singular, true, message)
}

const fn cluster(
    gv: (&'static str, &'static str),
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    message: &'static Message,
) -> BuiltinKind {
    kind(gv, name, plural, singular, false, message)
}

const CORE: (&str, &str) = ("", "v1");
const COORDINATION: (&str, &str) = ("coordination.k8s.io", "v1");
const EVENTS: (&str, &str) = ("events.k8s.io", "v1");
const EXTENSIONS: (&str, &str) = ("apiextensions.k8s.io", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");
const APPS: (&str, &str) = ("apps", "v1");
const STORAGE: (&str, &str) = ("storage.k8s.io", "v1");
const CERTIFICATES: (&str, &str) = ("certificates.k8s.io", "v1");
const POLICY: (&str, &str) = ("policy", "v1");
const DISCOVERY: (&str, &str) = ("discovery.k8s.io", "v1");
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");
const AUTHORIZATION: (&str, &str) = ("authorization.k8s.io", "v1");
const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io", "v1");

static KINDS: &[BuiltinKind] = &[
    cluster(CORE, "Namespace", "namespaces", "namespace", &core::NAMESPACE).short(&["ns"]).status(),
    namespaced(CORE, "Secret", "secrets", "secret", &core::SECRET),
    namespaced(CORE, "ConfigMap", "configmaps", "configmap", &core::CONFIG_MAP).short(&["cm"]),
    namespaced(CORE, "Event", "events", "event", &core::EVENT).short(&["ev"]),
    cluster(CORE, "Node", "nodes", "node", &node::NODE).short(&["no"]).status(),
    namespaced(CORE, "ServiceAccount", "serviceaccounts", "serviceaccount", &core::SERVICE_ACCOUNT).short(&["sa"]),
    namespaced(CORE, "Service", "services", "service", &core::SERVICE).short(&["svc"]).in_all().status(),
    namespaced(CORE, "Endpoints", "endpoints", "endpoints", &core::ENDPOINTS).short(&["ep"]),
    namespaced(CORE, "Pod", "pods", "pod", &pod::POD).short(&["po"]).in_all().status().generation(),
    cluster(CORE, "PersistentVolume", "persistentvolumes", "persistentvolume", &persistent_volume::PERSISTENT_VOLUME)
        .short(&["pv"])
        .status(),
    namespaced(
        CORE,
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "persistentvolumeclaim",
        &persistent_volume::PERSISTENT_VOLUME_CLAIM,
    )
    .short(&["pvc"])
    .status(),
    namespaced(COORDINATION, "Lease", "leases", "lease", &coordination::LEASE),
    namespaced(EVENTS, "Event", "events", "event", &events::EVENT).short(&["ev"]),
    cluster(
        EXTENSIONS,
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
        &crd::CUSTOM_RESOURCE_DEFINITION,
    )
    .short(&["crd", "crds"])
    .in_api_extensions()
    .status()
    .generation(),
    namespaced(RBAC, "Role", "roles", "role", &rbac::ROLE),
    namespaced(RBAC, "RoleBinding", "rolebindings", "rolebinding", &rbac::ROLE_BINDING),
    cluster(RBAC, "ClusterRole", "clusterroles", "clusterrole", &rbac::CLUSTER_ROLE),
    cluster(RBAC, "ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", &rbac::CLUSTER_ROLE_BINDING),
    namespaced(APPS, "Deployment", "deployments", "deployment", &apps::DEPLOYMENT)
        .short(&["deploy"])
        .in_all()
        .status()
        .generation(),
    namespaced(APPS, "DaemonSet", "daemonsets", "daemonset", &apps::DAEMON_SET)
        .short(&["ds"])
        .in_all()
        .status()
        .generation(),
    namespaced(APPS, "ReplicaSet", "replicasets", "replicaset", &apps::REPLICA_SET)
        .short(&["rs"])
        .in_all()
        .status()
        .generation(),
    namespaced(APPS, "StatefulSet", "statefulsets", "statefulset", &apps::STATEFUL_SET)
        .short(&["sts"])
        .in_all()
        .status()
        .generation(),
    cluster(STORAGE, "StorageClass", "storageclasses", "storageclass", &storage::STORAGE_CLASS).short(&["sc"]),
    cluster(STORAGE, "VolumeAttachment", "volumeattachments", "volumeattachment", &storage::VOLUME_ATTACHMENT).status(),
    cluster(
        CERTIFICATES,
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "certificatesigningrequest",
        &certificates::CERTIFICATE_SIGNING_REQUEST,
    )
    .short(&["csr"])
    .status(),
    namespaced(
        POLICY,
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "poddisruptionbudget",
        &policy::POD_DISRUPTION_BUDGET,
    )
    .short(&["pdb"])
    .status()
    .generation(),
    namespaced(DISCOVERY, "EndpointSlice", "endpointslices", "endpointslice", &discovery::ENDPOINT_SLICE).generation(),
    cluster(
        AUTHENTICATION,
        "SelfSubjectReview",
        "selfsubjectreviews",
        "selfsubjectreview",
        &authentication::SELF_SUBJECT_REVIEW,
    )
    .answered(),
    cluster(AUTHENTICATION, "TokenReview", "tokenreviews", "tokenreview", &authentication::TOKEN_REVIEW).answered(),
    cluster(
        AUTHORIZATION,
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        &authorization::SELF_SUBJECT_ACCESS_REVIEW,
    )
    .answered(),
    cluster(
        AUTHORIZATION,
        "SubjectAccessReview",
        "subjectaccessreviews",
        "subjectaccessreview",
        &authorization::SUBJECT_ACCESS_REVIEW,
    )
    .answered(),
    namespaced(
        AUTHORIZATION,
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
        &authorization::LOCAL_SUBJECT_ACCESS_REVIEW,
    )
    .answered(),
    cluster(
        AUTHORIZATION,
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
        &authorization::SELF_SUBJECT_RULES_REVIEW,
    )
    .answered(),
    cluster(
        ADMISSION,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfiguration",
        &admission::MUTATING_WEBHOOK_CONFIGURATION,
    )
    .in_api_extensions()
    .generation(),
    cluster(
        ADMISSION,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        &admission::VALIDATING_WEBHOOK_CONFIGURATION,
    )
    .in_api_extensions()
    .generation(),
];

/// Every built-in kind.
pub fn kinds() -> &'static [BuiltinKind] {
    KINDS
}

/// The message of a request body: a built-in kind, or one that only subresources and options use.
pub(crate) fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = KINDS.iter().find(|row| row.kind == kind && row.group == group && row.version == version);
    if let Some(row) = found {
        return Some(row.message);
    }
    match (group, version, kind) {
        // Clients name whichever group they are talking to.
        (_, _, "DeleteOptions") => Some(&meta::DELETE_OPTIONS),
        ("policy", "v1", "Eviction") => Some(&policy::EVICTION),
        ("autoscaling", "v1", "Scale") => Some(&autoscaling::SCALE),
        ("authentication.k8s.io", "v1", "TokenRequest") => Some(&authentication::TOKEN_REQUEST),
        _ => None,
    }
}
