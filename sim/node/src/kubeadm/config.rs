//! kubeadm's configuration documents, `kubeadm.k8s.io/v1beta4` and the older `v1beta3`, which is read as what it means in
//! v1beta4. Pure.
//!
//! A document of an unknown apiVersion or kind, a second document of one kind, and a field of a wrong type are errors; an
//! unknown field is a warning, as in kubeadm.

mod v1beta3;
mod values;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub use values::{Version, duration};

const GROUP_VERSION: &str = "kubeadm.k8s.io/v1beta4";

type Unknown = BTreeMap<String, Value>;

/// The documents of one file.
#[derive(Debug, Default)]
pub struct Documents {
    /// `ClusterConfiguration`, and the same as JSON.
    pub cluster: Option<(ClusterConfiguration, Value)>,
    /// `InitConfiguration`.
    pub init: Option<InitConfiguration>,
    /// `JoinConfiguration`.
    pub join: Option<JoinConfiguration>,
    /// `KubeletConfiguration`, passed on as it is.
    pub kubelet: Option<Value>,
    /// `KubeProxyConfiguration`, passed on as it is.
    pub kube_proxy: Option<Value>,
    /// A line for each field that is not known.
    pub warnings: Vec<String>,
}

/// A name and a value; flags may repeat, so they are a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Argument {
    /// Flag without dashes.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// What concerns the whole cluster.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterConfiguration {
    /// Version to deploy.
    pub kubernetes_version: String,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Stable `host:port` of the control plane.
    pub control_plane_endpoint: String,
    /// Directory of the certificates on the node.
    pub certificates_dir: String,
    /// Registry of the control plane's images.
    pub image_repository: String,
    /// Key type of generated certificates.
    pub encryption_algorithm: String,
    /// Subnets of Pods and Services, and the DNS domain.
    pub networking: Networking,
    /// Static pod of the API server.
    pub api_server: ApiServer,
    /// Static pod of the controller manager.
    pub controller_manager: Component,
    /// Static pod of the scheduler.
    pub scheduler: Component,
    /// Where etcd runs, and how.
    pub etcd: Etcd,
    /// Feature gates of kubeadm, by name.
    pub feature_gates: BTreeMap<String, bool>,
    /// The CoreDNS addon, and its image.
    pub dns: Addon,
    /// The kube-proxy addon, and whether it is installed.
    pub proxy: Addon,
    /// How long issued certificates are good for, a Go duration.
    pub certificate_validity_period: Option<String>,
    /// How long generated authorities are good for, a Go duration.
    #[serde(rename = "caCertificateValidityPeriod")]
    pub ca_certificate_validity_period: Option<String>,
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// Subnets and DNS domain.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Networking {
    /// CIDRs of Services, comma-separated.
    pub service_subnet: String,
    /// CIDRs of pods, comma-separated.
    pub pod_subnet: String,
    /// DNS domain of Services.
    pub dns_domain: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// A static pod's settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Component {
    /// Flags besides, or instead of, kubeadm's own.
    pub extra_args: Vec<Argument>,
    /// Paths of the host that the pod sees as well.
    pub extra_volumes: Vec<HostPath>,
    /// Environment variables, as of a Pod.
    pub extra_envs: Vec<Value>,
    #[serde(flatten)]
    unknown: Unknown,
}

/// The API server's settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiServer {
    /// Additional names of the serving certificate.
    #[serde(rename = "certSANs")]
    pub cert_sans: Vec<String>,
    /// Flags besides, or instead of, kubeadm's own.
    pub extra_args: Vec<Argument>,
    /// Paths of the host that the pod sees as well.
    pub extra_volumes: Vec<HostPath>,
    /// Environment variables, as of a Pod.
    pub extra_envs: Vec<Value>,
    #[serde(flatten)]
    unknown: Unknown,
}

/// A path of the node in a static pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostPath {
    /// Name of the volume.
    pub name: String,
    /// Path on the node.
    pub host_path: String,
    /// Path in the pod.
    pub mount_path: String,
    /// Whether it is read-only there.
    pub read_only: bool,
    /// `DirectoryOrCreate` and the like.
    pub path_type: String,
}

/// An addon's image, and whether it is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Addon {
    /// Registry of its image; the control plane's when empty.
    pub image_repository: String,
    /// Tag of its image; the one that belongs to the version when empty.
    pub image_tag: String,
    /// Whether it is not installed.
    pub disabled: bool,
}

/// etcd, inside the cluster or outside.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Etcd {
    /// Members on the control-plane nodes; the default.
    pub local: Option<LocalEtcd>,
    /// An etcd that somebody else runs.
    pub external: Option<ExternalEtcd>,
}

/// A member of etcd on each control-plane node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalEtcd {
    /// Registry of its image; the control plane's when empty.
    pub image_repository: String,
    /// Tag of its image; the one that belongs to the version when empty.
    pub image_tag: String,
    /// Directory of its data on the node.
    pub data_dir: String,
    /// Flags besides, or instead of, kubeadm's own.
    pub extra_args: Vec<Argument>,
    /// Environment variables, as of a Pod.
    pub extra_envs: Vec<Value>,
    /// Additional names of the serving certificate.
    #[serde(rename = "serverCertSANs")]
    pub server_cert_sans: Vec<String>,
    /// Additional names of the certificate between members.
    #[serde(rename = "peerCertSANs")]
    pub peer_cert_sans: Vec<String>,
    #[serde(flatten)]
    unknown: Unknown,
}

/// An etcd that somebody else runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExternalEtcd {
    /// URLs of its members.
    pub endpoints: Vec<String>,
    /// Path of its CA.
    pub ca_file: String,
    /// File with the API server's client certificate.
    pub cert_file: String,
    /// File with that certificate's key.
    pub key_file: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// Where patches of generated files lie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Patches {
    /// Path of the directory; empty for none.
    pub directory: String,
}

/// What concerns the first control-plane node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InitConfiguration {
    /// Tokens to create.
    pub bootstrap_tokens: Vec<BootstrapToken>,
    /// How the node registers with the API server.
    pub node_registration: NodeRegistration,
    /// Where its API server listens.
    #[serde(rename = "localAPIEndpoint")]
    pub local_api_endpoint: LocalEndpoint,
    /// Phases to leave out.
    pub skip_phases: Vec<String>,
    /// How long kubeadm waits for what.
    pub timeouts: Timeouts,
    certificate_key: String,
    /// Patches of static pods.
    pub patches: Patches,
    dry_run: bool,
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// A token that nodes join with.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BootstrapToken {
    /// `id.secret`.
    pub token: String,
    /// What it is for.
    pub description: String,
    /// How long it is good for, a Go duration.
    pub ttl: Option<String>,
    /// RFC 3339.
    pub expires: Option<String>,
    /// `signing`, `authentication`.
    pub usages: Vec<String>,
    /// Groups of who uses it.
    pub groups: Vec<String>,
}

/// How a node registers with the API server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeRegistration {
    /// Node name; the host name when empty.
    pub name: String,
    /// Socket of the container runtime.
    pub cri_socket: String,
    /// Taints; `None`: the role's default, empty: none.
    pub taints: Option<Vec<Taint>>,
    /// Flags of the kubelet besides kubeadm's own.
    pub kubelet_extra_args: Vec<Argument>,
    /// Preflight checks that may fail.
    pub ignore_preflight_errors: Vec<String>,
    image_pull_policy: String,
    image_pull_serial: Option<bool>,
    #[serde(flatten)]
    unknown: Unknown,
}

impl NodeRegistration {
    /// The last value of a kubelet flag.
    pub fn kubelet_argument(&self, name: &str) -> Option<&str> {
        self.kubelet_extra_args
            .iter()
            .rev()
            .find(|argument| argument.name == name)
            .map(|argument| argument.value.as_str())
    }
}

/// A taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule`, `NoExecute`.
    pub effect: String,
}

/// Address and port of one API server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalEndpoint {
    /// IP address; the node's when empty.
    pub advertise_address: String,
    /// 6443 when missing.
    pub bind_port: Option<u16>,
}

/// Timeouts, as Go durations.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Timeouts {
    /// For the API server to answer.
    pub control_plane_component_health_check: Option<String>,
    /// For finding and checking the cluster.
    pub discovery: Option<String>,
    /// For the kubelet's certificate.
    pub tls_bootstrap: Option<String>,
    #[serde(rename = "kubernetesAPICall")]
    kubernetes_api_call: Option<String>,
    kubelet_health_check: Option<String>,
    etcd_api_call: Option<String>,
    upgrade_manifests: Option<String>,
    #[serde(flatten)]
    unknown: Unknown,
}

/// What concerns a node that joins.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JoinConfiguration {
    /// How the node registers with the API server.
    pub node_registration: NodeRegistration,
    /// Where the worker keeps the cluster CA.
    pub ca_cert_path: String,
    /// How to find and trust the cluster.
    pub discovery: Discovery,
    /// Present when the node becomes a control-plane node.
    pub control_plane: Option<JoinControlPlane>,
    /// Phases to leave out.
    pub skip_phases: Vec<String>,
    /// How long kubeadm waits for what.
    pub timeouts: Timeouts,
    /// Patches of static pods.
    pub patches: Patches,
    dry_run: bool,
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// How to find and trust the cluster.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Discovery {
    /// By token and CA hash.
    pub bootstrap_token: Option<TokenDiscovery>,
    /// By a kubeconfig, from a path or URL.
    pub file: Option<FileDiscovery>,
    /// Token of the kubelet's certificate request, when it is another one.
    pub tls_bootstrap_token: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// Discovery by token.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TokenDiscovery {
    /// `id.secret`.
    pub token: String,
    /// `host:port`.
    pub api_server_endpoint: String,
    /// `sha256:<hex>` of CA public keys.
    pub ca_cert_hashes: Vec<String>,
    /// Takes the cluster's CA as it comes, without a hash.
    #[serde(rename = "unsafeSkipCAVerification")]
    pub unsafe_skip_ca_verification: bool,
    #[serde(flatten)]
    unknown: Unknown,
}

/// Discovery by file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FileDiscovery {
    /// Path or URL.
    pub kube_config_path: String,
    #[serde(flatten)]
    unknown: Unknown,
}

/// A further control-plane node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JoinControlPlane {
    /// Where its API server listens.
    #[serde(rename = "localAPIEndpoint")]
    pub local_api_endpoint: LocalEndpoint,
    /// Key to download certificates with.
    pub certificate_key: String,
    #[serde(flatten)]
    unknown: Unknown,
}

impl Documents {
    /// Parses a multi-document file.
    ///
    /// # Errors
    /// A sentence in kubeadm's manner.
    pub fn parse(text: &str) -> Result<Documents, String> {
        let values: Vec<Value> =
            serde_saphyr::from_multiple(text).map_err(|error| format!("error converting YAML to JSON: {error}"))?;
        let mut documents = Documents::default();
        let mut patience = None;
        for mut value in values.into_iter().filter(|value| !value.is_null()) {
            drop_nulls(&mut value);
            if value["apiVersion"] == v1beta3::GROUP_VERSION {
                let older = v1beta3::read(value)?;
                documents.warnings.extend(older.warnings);
                patience = patience.or(older.control_plane_timeout);
                value = older.document;
            }
            documents.add(value)?;
        }
        if let Some(patience) = patience {
            let init = documents.init.get_or_insert_default();
            init.timeouts.control_plane_component_health_check.get_or_insert(patience);
        }
        Ok(documents)
    }

    fn add(&mut self, value: Value) -> Result<(), String> {
        let field = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (field("apiVersion"), field("kind"));
        if version.is_empty() || kind.is_empty() {
            return Err(
                "invalid configuration: kind and apiVersion is mandatory information that must be specified".to_owned()
            );
        }
        let twice = || Err(format!("invalid configuration: kind {kind:?} is specified twice"));
        match (version.as_str(), kind.as_str()) {
            (GROUP_VERSION, "ClusterConfiguration") => {
                let parsed: ClusterConfiguration = typed(&kind, &value)?;
                self.note(&kind, &[&parsed.unknown, &parsed.networking.unknown, &parsed.api_server.unknown]);
                self.note(&kind, &[&parsed.controller_manager.unknown, &parsed.scheduler.unknown]);
                self.note(&kind, &parsed.etcd.local.iter().map(|local| &local.unknown).collect::<Vec<_>>());
                self.note(&kind, &parsed.etcd.external.iter().map(|external| &external.unknown).collect::<Vec<_>>());
                if self.cluster.replace((parsed, value)).is_some() { twice() } else { Ok(()) }
            }
            (GROUP_VERSION, "InitConfiguration") => {
                let parsed: InitConfiguration = typed(&kind, &value)?;
                self.note(&kind, &[&parsed.unknown, &parsed.node_registration.unknown, &parsed.timeouts.unknown]);
                if self.init.replace(parsed).is_some() { twice() } else { Ok(()) }
            }
            (GROUP_VERSION, "JoinConfiguration") => {
                let parsed: JoinConfiguration = typed(&kind, &value)?;
                self.note(&kind, &[&parsed.unknown, &parsed.node_registration.unknown, &parsed.timeouts.unknown]);
                self.note(&kind, &[&parsed.discovery.unknown]);
                let nested = [
                    parsed.discovery.bootstrap_token.as_ref().map(|token| &token.unknown),
                    parsed.discovery.file.as_ref().map(|file| &file.unknown),
                    parsed.control_plane.as_ref().map(|control_plane| &control_plane.unknown),
                ];
                self.note(&kind, &nested.into_iter().flatten().collect::<Vec<_>>());
                if self.join.replace(parsed).is_some() { twice() } else { Ok(()) }
            }
            ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration") => {
                if self.kubelet.replace(value).is_some() {
                    twice()
                } else {
                    Ok(())
                }
            }
            ("kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration") => {
                if self.kube_proxy.replace(value).is_some() { twice() } else { Ok(()) }
            }
            (version, kind) if version.starts_with("kubeadm.k8s.io/") && version != GROUP_VERSION => Err(format!(
                "your configuration file uses an API spec that this kubeadm does not know: {version:?} (kind: {kind:?}); it knows {GROUP_VERSION} and {}",
                v1beta3::GROUP_VERSION
            )),
            (version, kind) => Err(format!("no kind {kind:?} is registered for version {version:?}")),
        }
    }

    fn note(&mut self, kind: &str, unknown: &[&Unknown]) {
        for name in unknown.iter().flat_map(|fields| fields.keys()) {
            self.warnings.push(format!(
                "error unmarshaling configuration {kind}: strict decoding error: unknown field \"{name}\""
            ));
        }
    }
}

/// Removes fields that are null: for Go they are the same as absent ones.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn typed<T: serde::de::DeserializeOwned>(kind: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value)
        .map_err(|error| format!("error unmarshaling configuration schema.GroupVersionKind {kind}: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn documents_are_told_apart_by_version_and_kind() {
        let text = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.34.0\n---\n\
                    apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration:\n  taints: []\n  \
                    kubeletExtraArgs:\n  - name: provider-id\n    value: docker:////a\n";
        let documents = Documents::parse(text).unwrap();
        assert_eq!(documents.cluster.unwrap().0.kubernetes_version, "v1.34.0");
        let node = documents.init.unwrap().node_registration;
        assert_eq!(node.taints, Some(vec![]));
        assert_eq!(node.kubelet_argument("provider-id"), Some("docker:////a"));
        assert!(documents.warnings.is_empty());
    }

    #[test]
    fn wrong_documents_are_refused_with_the_reason() {
        let rows = [
            ("kind: InitConfiguration", "kind and apiVersion is mandatory"),
            ("apiVersion: kubeadm.k8s.io/v1beta2\nkind: InitConfiguration", "API spec that this kubeadm does not know"),
            ("apiVersion: kubeadm.k8s.io/v1beta4\nkind: Nonsense", "no kind \"Nonsense\" is registered"),
            ("apiVersion: apps/v1\nkind: Deployment", "no kind \"Deployment\" is registered for version \"apps/v1\""),
            ("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nbootstrapTokens: 7", "error unmarshaling"),
            (
                "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer: {extraArgs: {a: b}}",
                "error unmarshaling",
            ),
            ("a: [", "error converting YAML to JSON"),
        ];
        for (text, expected) in rows {
            let error = Documents::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_unknown_field_is_a_warning() {
        let documents =
            Documents::parse("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nfoo: 1").unwrap();
        assert_eq!(documents.warnings.len(), 1);
        assert!(documents.warnings[0].contains("unknown field \"foo\""));
    }
}
