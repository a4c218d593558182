//! The kind `WasmProvider` (`capwasm.dev/v1alpha1`, cluster-scoped): source, grants and updates of a provider.

pub mod history;

use capwasm_contract::descriptor::Descriptor;
use capwasm_runtime::{Grants, Limits, NamedEndpoint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// API group of the host's own kinds.
pub const GROUP: &str = "capwasm.dev";
/// Kind of the CRD.
pub const KIND: &str = "WasmProvider";
/// `apiVersion` of a WasmProvider.
pub const API_VERSION: &str = "capwasm.dev/v1alpha1";
/// Set by the host while controllers of the provider run.
pub const FINALIZER: &str = "capwasm.dev/wasmprovider";

/// `spec` of a WasmProvider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// File or artifact that has the component.
    pub source: Source,
    /// Signatures that the component must have.
    #[serde(default, skip_serializing_if = "Verification::asks_nothing")]
    pub verification: Verification,
    /// API groups in which its CRDs may be installed.
    #[serde(default)]
    pub crd_groups: Vec<String>,
    /// Capabilities of its calls.
    #[serde(default)]
    pub grants: Grants,
    /// Limits of each call, and of concurrent calls.
    #[serde(default)]
    pub limits: Limits,
    /// JSON that every call gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// Values of Secrets that are added to the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configuration_from: Vec<FromSecret>,
    /// When an update takes effect.
    #[serde(default, skip_serializing_if = "Update::is_default")]
    pub update: Update,
    /// Number of earlier components kept for rollbacks.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub history_limit: usize,
    /// Whether calls are recorded to files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub record: bool,
    /// Whether deleting the WasmProvider deletes its CRDs, and with them all objects of its kinds.
    #[serde(default, rename = "removeCRDs", skip_serializing_if = "is_false")]
    pub remove_crds: bool,
}

impl Spec {
    /// A spec without grants.
    pub fn of(source: Source) -> Self {
        Spec {
            source,
            verification: Verification::default(),
            crd_groups: Vec::new(),
            grants: Grants::default(),
            limits: Limits::default(),
            configuration: None,
            configuration_from: Vec::new(),
            update: Update::default(),
            history_limit: two(),
            record: false,
            remove_crds: false,
        }
    }
}

/// Source of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// Name of a file in the host's provider folder.
    File(String),
    /// An artifact of a registry.
    Oci(OciSource),
}

/// An artifact of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// `registry/repository:tag` or `registry/repository@sha256:…`.
    pub reference: String,
    /// Secret of type `kubernetes.io/dockerconfigjson` with credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<SecretName>,
    /// Secret whose `ca.crt` is trusted besides the system's authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<SecretName>,
    /// Allows HTTP without TLS; not needed for registries on loopback.
    #[serde(default, rename = "plainHTTP", skip_serializing_if = "is_false")]
    pub plain_http: bool,
}

/// Reference to a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretName {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
}

impl std::fmt::Display for SecretName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Signatures that are required; without keys, none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Verification {
    /// Public keys of cosign (PEM); a signature by one of them suffices.
    pub public_keys: Vec<String>,
}

impl Verification {
    fn asks_nothing(&self) -> bool {
        self.public_keys.is_empty()
    }
}

/// Value of a Secret for the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromSecret {
    /// Secret with the value.
    pub secret: SecretName,
    /// Key in the Secret's `data`; the value is UTF-8.
    pub key: String,
    /// JSON pointer of the value in the configuration. Missing objects are created.
    pub pointer: String,
}

/// When an update takes effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// Condition for an update.
    pub policy: UpdatePolicy,
    /// Digest of the component that is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    /// Digest of the component that serves, whatever the source has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
}

impl Update {
    fn is_default(&self) -> bool {
        *self == Update::default()
    }
}

/// Condition for an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdatePolicy {
    /// An update takes effect at once.
    #[default]
    Immediate,
    /// A rehearsal on recorded calls shows no difference, or the update is approved.
    RehearseFirst,
    /// The update is approved.
    Manual,
}

fn two() -> usize {
    2
}

fn is_two(limit: &usize) -> bool {
    *limit == two()
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// CustomResourceDefinition of WasmProvider.
pub fn crd() -> Result<Value, serde_json::Error> {
    serde_json::from_str(include_str!("../crds/wasmproviders.json"))
}

/// WasmProvider of a bundled provider. It is granted what the descriptor wants, with the named endpoints of the host,
/// and `told`: origins, namespaces and TLS without verification, which no descriptor can want.
pub fn bundled(
    descriptor: &Descriptor,
    file: &str,
    endpoints: &[(String, NamedEndpoint)],
    told: Grants,
    configuration: Option<Value>,
) -> Result<Value, serde_json::Error> {
    let wants = &descriptor.wants;
    let grants = Grants {
        endpoints: endpoints.iter().filter(|(name, _)| wants.endpoints.contains(name)).cloned().collect(),
        reads: wants.reads.clone(),
        writes: wants.writes.clone(),
        workload_reads: wants.workload_reads.clone(),
        workload_writes: wants.workload_writes.clone(),
        secrets: wants.secrets.clone(),
        pki: wants.pki,
        etcd: wants.etcd,
        ..told
    };
    let mut groups: Vec<String> = descriptor.kinds.iter().map(|kind| kind.group.clone()).collect();
    groups.sort();
    groups.dedup();
    let spec = Spec { crd_groups: groups, grants, configuration, ..Spec::of(Source::File(file.to_owned())) };
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": descriptor.name},
        "spec": serde_json::to_value(spec)?,
    }))
}

/// Wanted capabilities without grants, as text for people.
pub fn missing_grants(descriptor: &Descriptor, spec: &Spec) -> Vec<String> {
    let mut missing = spec.grants.missing(&descriptor.wants);
    let groups = descriptor.kinds.iter().map(|kind| &kind.group).filter(|group| !spec.crd_groups.contains(group));
    missing.extend(groups.map(|group| format!("crdGroups: {group}")));
    missing.sort();
    missing.dedup();
    missing
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_contract::descriptor::{KindDescriptor, KindPattern, Role, Wants};

    fn descriptor() -> Descriptor {
        Descriptor {
            name: "p".into(),
            version: "1".into(),
            contract: "0.1".into(),
            kinds: vec![KindDescriptor {
                role: Role::InfrastructureCluster,
                group: "infrastructure.example".into(),
                kind: "A".into(),
                version: "v1".into(),
                finalizers: vec![],
                own: vec![],
                may_wait: vec![],
                exclusive_by: capwasm_contract::descriptor::ExclusiveBy::Object,
                bootstrap_data: None,
                admission: false,
                crd: json!({}),
            }],
            wants: Wants {
                endpoints: vec!["docker".into()],
                reads: vec![KindPattern { group: "g".into(), kind: "K".into() }],
                pki: true,
                ..Wants::default()
            },
        }
    }

    #[test]
    fn a_bundled_provider_is_granted_what_it_wants() {
        let docker = NamedEndpoint::unix("/run/docker.sock");
        let other = NamedEndpoint::unix("/run/other.sock");
        let endpoints = [("docker".to_owned(), docker), ("unwanted".to_owned(), other)];
        let object = bundled(&descriptor(), "p.wasm", &endpoints, Grants::default(), None).unwrap();
        let spec: Spec = serde_json::from_value(object["spec"].clone()).unwrap();
        assert_eq!(missing_grants(&descriptor(), &spec), Vec::<String>::new());
        assert_eq!(spec.grants.endpoints.keys().collect::<Vec<_>>(), ["docker"]);
        assert_eq!((spec.grants.origins, spec.grants.insecure_tls), (Vec::new(), false), "nobody told");
        let told = Grants {
            origins: vec!["https://cloud.example:5000".parse().unwrap()],
            insecure_tls: true,
            secrets: vec!["*".into()],
            ..Grants::default()
        };
        let object = bundled(&descriptor(), "p.wasm", &endpoints, told.clone(), None).unwrap();
        let spec: Spec = serde_json::from_value(object["spec"].clone()).unwrap();
        assert_eq!((spec.grants.origins, spec.grants.insecure_tls), (told.origins, true));
        assert_eq!(spec.grants.secrets, Vec::<String>::new(), "what it does not want, it does not get");
        assert_eq!(object["spec"]["grants"]["insecureTLS"], true);
    }

    #[test]
    fn each_missing_grant_is_named() {
        let spec: Spec = serde_json::from_value(json!({"source": {"file": "p.wasm"}})).unwrap();
        let missing = missing_grants(&descriptor(), &spec);
        assert_eq!(missing, ["crdGroups: infrastructure.example", "endpoints: docker", "pki: true", "reads: K.g"]);
    }

    #[test]
    fn what_is_not_said_is_not_written_and_sources_are_one_of_two() {
        let spec = Spec::of(Source::File("p.wasm".into()));
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(written["source"], json!({"file": "p.wasm"}));
        for absent in ["verification", "update", "historyLimit", "record", "removeCRDs", "configurationFrom"] {
            assert_eq!(written.get(absent), None, "{absent}");
        }
        assert_eq!(serde_json::from_value::<Spec>(written).unwrap(), spec);
        let oci = json!({"source": {"oci": {"reference": "r.example/p:1", "plainHTTP": true,
            "pullSecret": {"namespace": "n", "name": "s"}}}, "update": {"policy": "RehearseFirst"}});
        let spec: Spec = serde_json::from_value(oci).unwrap();
        let Source::Oci(oci) = spec.source else { panic!("{:?}", spec.source) };
        assert_eq!((oci.plain_http, oci.pull_secret.unwrap().to_string().as_str()), (true, "n/s"));
        assert_eq!((spec.update.policy, spec.history_limit), (UpdatePolicy::RehearseFirst, 2));
        for wrong in [json!({}), json!({"file": "a.wasm", "oci": {"reference": "r"}})] {
            assert!(serde_json::from_value::<Spec>(json!({"source": wrong})).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_crd_is_json_and_names_the_kind() {
        let crd = crd().unwrap();
        assert_eq!((crd["spec"]["group"].as_str(), crd["spec"]["names"]["kind"].as_str()), (Some(GROUP), Some(KIND)));
    }
}
