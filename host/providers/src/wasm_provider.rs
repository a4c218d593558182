//! The kind `WasmProvider` (`capwasm.dev/v1alpha1`, cluster-scoped): where a provider comes from and what it may do.

use capwasm_api::descriptor::Descriptor;
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
}

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Name of a file in the host's provider folder.
    pub file: String,
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
    let spec = Spec {
        source: Source { file: file.to_owned() },
        crd_groups: groups,
        grants,
        limits: Limits::default(),
        configuration,
    };
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
    use capwasm_api::descriptor::{KindDescriptor, KindPattern, Role, Wants};

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
                exclusive_by: capwasm_api::descriptor::ExclusiveBy::Object,
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
    fn the_crd_is_json_and_names_the_kind() {
        let crd = crd().unwrap();
        assert_eq!((crd["spec"]["group"].as_str(), crd["spec"]["names"]["kind"].as_str()), (Some(GROUP), Some(KIND)));
    }
}
