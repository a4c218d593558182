//! The kind `WasmProvider` (`capwasm.dev/v1alpha1`, cluster-scoped): where a provider comes from and what it may do.

pub mod history;

use capwasm_contract::descriptor::Descriptor;
use capwasm_runtime::{Grants, Limits, NamedEndpoint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// API group of our own kinds.
pub const GROUP: &str = "capwasm.dev";
/// The kind.
pub const KIND: &str = "WasmProvider";
/// Its `apiVersion`.
pub const API_VERSION: &str = "capwasm.dev/v1alpha1";
/// Held by the host while controllers of the provider run.
pub const FINALIZER: &str = "capwasm.dev/wasmprovider";

/// `spec` of a WasmProvider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Where the component comes from.
    pub source: Source,
    /// Whose signature the artifact has to carry.
    #[serde(default, skip_serializing_if = "Verification::asks_nothing")]
    pub verification: Verification,
    /// API groups in which its CRDs may be installed.
    #[serde(default)]
    pub crd_groups: Vec<String>,
    /// What it may do.
    #[serde(default)]
    pub grants: Grants,
    /// Limits of each call.
    #[serde(default)]
    pub limits: Limits,
    /// Handed to the provider with every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// Values of Secrets, put into the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configuration_from: Vec<FromSecret>,
    /// When another component takes the place of the one that serves.
    #[serde(default, skip_serializing_if = "Update::is_default")]
    pub update: Update,
    /// How many earlier components are kept ready to roll back to.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub history_limit: usize,
    /// Whether its calls are recorded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub record: bool,
    /// Whether its CRDs, and with them every object of its kinds, go with the WasmProvider.
    #[serde(default, rename = "removeCRDs", skip_serializing_if = "is_false")]
    pub remove_crds: bool,
}

impl Spec {
    /// What a component from this source is given unless somebody says more: nothing.
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

/// Where a component comes from.
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
    /// Secret of type `kubernetes.io/dockerconfigjson`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<SecretName>,
    /// Secret whose `ca.crt` is trusted besides the system's authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<SecretName>,
    /// HTTP without TLS. Loopback registries need not ask for it.
    #[serde(default, rename = "plainHTTP", skip_serializing_if = "is_false")]
    pub plain_http: bool,
}

/// Names a Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for SecretName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Whose signature the artifact has to carry. Without keys none is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Verification {
    /// cosign's public keys (PEM); a signature by one of them will do.
    pub public_keys: Vec<String>,
}

impl Verification {
    fn asks_nothing(&self) -> bool {
        self.public_keys.is_empty()
    }
}

/// A value of a Secret in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromSecret {
    /// The Secret.
    pub secret: SecretName,
    /// Key of its data, a text.
    pub key: String,
    /// JSON pointer to where the text stands in the configuration. Objects on the way are made.
    pub pointer: String,
}

/// When another component takes the place of the one that serves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// What has to happen before.
    pub policy: UpdatePolicy,
    /// Digest of the component that may take effect.
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

/// What has to happen before a component takes the place of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdatePolicy {
    /// Nothing.
    #[default]
    Immediate,
    /// A rehearsal on recorded calls shows no difference, or somebody approves.
    RehearseFirst,
    /// Somebody approves.
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

/// The kind's CustomResourceDefinition.
pub fn crd() -> Result<Value, serde_json::Error> {
    serde_json::from_str(include_str!("../crds/wasmproviders.json"))
}

/// The WasmProvider of a bundled provider: it is granted what it wants, with the named endpoints that the host was
/// started with; and what no provider wants by itself (origins, namespaces, TLS without verification) as `told`.
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

/// What a provider wants and was not granted, in words.
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
