//! CRDs of providers: labelled by the host, never installed over anybody else's, with the versions that the API server
//! can serve.

mod narrowing;

use capwasm_api::contract::Contract;
use capwasm_contract::descriptor::Descriptor;
use capwasm_object::{json, meta};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use self::narrowing::narrowings;

/// Label of a CRD: name of the provider that it belongs to.
pub const PROVIDER: &str = "capwasm.dev/provider";
/// Label of a CRD: `clusterctl move` takes objects of its kind along.
const MOVED: &str = "clusterctl.cluster.x-k8s.io";
/// Annotation of a CRD: digest of what was installed, so that schemas need not be compared.
const DIGEST: &str = "capwasm.dev/crd-digest";

/// Which versions of a CRD can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving<'a> {
    /// All: the API server calls this process's converters directly.
    All,
    /// All: the API server calls the webhook with this `clientConfig`.
    Webhook(&'a Value),
    /// Only the storage version: there is no converter.
    Stored,
}

/// The CRD to install. One with a conversion of its own, or with a single version, is not changed.
pub fn served(crd: &Value, serving: Serving<'_>) -> Value {
    let mut crd = crd.clone();
    let several = served_versions(&crd).count() > 1;
    if !several || json::text(&crd, "/spec/conversion/strategy").is_some() {
        return crd;
    }
    match serving {
        Serving::All => {
            let service = json!({"namespace": "capwasm-system", "name": "capwasm", "path": "/convert"});
            convert_by(&mut crd, &json!({"service": service}));
        }
        Serving::Webhook(client_config) => convert_by(&mut crd, client_config),
        Serving::Stored => {
            for version in versions_mut(&mut crd).into_iter().flatten() {
                version["served"] = version["storage"].clone();
            }
        }
    }
    crd
}

fn convert_by(crd: &mut Value, client_config: &Value) {
    let webhook = json!({"clientConfig": client_config, "conversionReviewVersions": ["v1"]});
    json::set(crd, &["spec", "conversion"], json!({"strategy": "Webhook", "webhook": webhook}));
}

/// The `spec` to patch an installed CRD with: versions that it has or serves stay.
pub fn widened(wanted: &Value, live: &Value) -> Value {
    let mut widened = wanted.clone();
    let Some(versions) = versions_mut(&mut widened) else { return json!(wanted.get("spec")) };
    for kept in json::items(live, "/spec/versions") {
        match versions.iter_mut().find(|version| version["name"] == kept["name"]) {
            Some(version) if kept["served"] == true => version["served"] = true.into(),
            Some(_) => {}
            None => {
                let mut kept = kept.clone();
                kept["storage"] = false.into();
                versions.push(kept);
            }
        }
    }
    json!(widened.get("spec"))
}

fn versions_mut(crd: &mut Value) -> Option<&mut Vec<Value>> {
    crd.pointer_mut("/spec/versions")?.as_array_mut()
}

fn served_versions(crd: &Value) -> impl Iterator<Item = &str> {
    json::items(crd, "/spec/versions")
        .iter()
        .filter(|version| json::flag(version, "/served") == Some(true))
        .filter_map(|version| json::text(version, "/name"))
}

/// The next step for one CRD.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The CRD does not exist.
    Create(Value),
    /// A merge patch: the CRD differs.
    Patch(Value),
    /// The CRD exists and is not established yet.
    Wait,
    Installed,
    /// Somebody else's CRD; the message.
    Foreign(String),
    /// The CRD would lose a version, field or value; the message.
    Narrows(String),
}

/// CRDs of a provider with the host's labels, as they are to be installed.
pub fn of_provider(descriptor: &Descriptor, serving: Serving<'_>) -> Vec<Value> {
    let labelled = |crd| labelled(&served(crd, serving), &descriptor.name);
    descriptor.kinds.iter().map(|kind| labelled(&kind.crd)).collect()
}

/// Decides about one CRD. If the component `served` before, its CRD is sufficient, and one that was widened since then
/// stays.
pub fn decide(wanted: &Value, live: Option<&Value>, served: bool) -> Step {
    let Some(live) = live else { return Step::Create(wanted.clone()) };
    let owner = meta::label(live, PROVIDER);
    if owner != meta::label(wanted, PROVIDER) {
        return Step::Foreign(match owner {
            Some(owner) => format!("CRD {} belongs to provider {owner:?}", meta::name(live)),
            None => format!(
                "CRD {} was installed by somebody else; label it {PROVIDER}={} to hand it over",
                meta::name(live),
                meta::label(wanted, PROVIDER).unwrap_or_default()
            ),
        });
    }
    if meta::annotation(live, DIGEST) != meta::annotation(wanted, DIGEST) {
        let lost = narrowings(live, wanted);
        if lost.is_empty() {
            return Step::Patch(json!({
                "metadata": {"labels": wanted.pointer("/metadata/labels"), "annotations": wanted.pointer("/metadata/annotations")},
                "spec": widened(wanted, live),
            }));
        }
        if !served {
            return Step::Narrows(format!("CRD {} would be narrowed: {}", meta::name(live), lost.join("; ")));
        }
    }
    let established = capwasm_api::conditions::is_true(live, "Established");
    if established { Step::Installed } else { Step::Wait }
}

/// The CRD with labels and digest. Contract labels of the provider are kept as far as their versions are served;
/// without any, all served versions implement the newest contract.
fn labelled(crd: &Value, provider: &str) -> Value {
    let mut crd = crd.clone();
    let keys = Contract::NEWEST_FIRST.map(Contract::label);
    let told: Vec<(&String, String)> =
        keys.iter().filter_map(|key| Some((key, meta::label(&crd, key)?.to_owned()))).collect();
    let served: Vec<String> = served_versions(&crd).map(str::to_owned).collect();
    let labels = json::map(&mut crd, &["metadata", "labels"]);
    labels.insert(PROVIDER.into(), provider.into());
    labels.entry(MOVED).or_insert_with(|| "".into());
    if told.is_empty() {
        labels.insert(Contract::V1Beta2.label(), served.join("_").into());
    }
    // Core speaks the version that a label names, so a label must name none that cannot be asked for here.
    for (key, versions) in told {
        let spoken: Vec<&str> = versions.split('_').filter(|version| served.iter().any(|s| s == version)).collect();
        if spoken.is_empty() {
            labels.remove(key);
        } else {
            labels.insert(key.clone(), spoken.join("_").into());
        }
    }
    let digest = Sha256::digest(json!([crd["metadata"]["labels"], crd.get("spec")]).to_string());
    let digest = hex::encode(&digest[..8]);
    json::map(&mut crd, &["metadata", "annotations"]).insert(DIGEST.into(), digest.into());
    crd
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn crd() -> Value {
        labelled(
            &json!({"kind": "CustomResourceDefinition", "metadata": {"name": "as.b.c"},
                "spec": {"versions": [{"name": "v1beta2", "served": true}, {"name": "v1beta1", "served": true}]}}),
            "docker-infra",
        )
    }

    /// C4: the version of a provider kind is found by these labels.
    #[test]
    fn contract_labels_are_added_unless_the_provider_wrote_its_own() {
        assert_eq!(crd()["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"], "v1beta2_v1beta1");
        let (old, new) = ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2");
        let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage});
        let told = json!({"metadata": {"labels": {old: "v1beta1", new: "v1beta2"}},
            "spec": {"versions": [version("v1beta1", true), version("v1beta2", false)]}});
        let all = labelled(&served(&told, Serving::All), "p");
        assert_eq!(all["metadata"]["labels"], json!({old: "v1beta1", new: "v1beta2", PROVIDER: "p", MOVED: ""}));
        let stored = labelled(&served(&told, Serving::Stored), "p");
        assert_eq!(
            stored["metadata"]["labels"],
            json!({old: "v1beta1", PROVIDER: "p", MOVED: ""}),
            "v1beta2 is not served there"
        );
    }

    fn several() -> Value {
        let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage});
        json!({"metadata": {"name": "as.b.c"}, "spec": {"versions": [version("v1beta2", true), version("v1beta1", false)]}})
    }

    #[test]
    fn several_versions_are_served_where_they_can_be_converted_only() {
        let all = served(&several(), Serving::All);
        assert_eq!(all["spec"]["conversion"]["strategy"], "Webhook");
        assert_eq!(served_versions(&all).collect::<Vec<_>>(), ["v1beta2", "v1beta1"]);
        let stored = served(&several(), Serving::Stored);
        assert_eq!(stored["spec"].get("conversion"), None);
        assert_eq!(served_versions(&stored).collect::<Vec<_>>(), ["v1beta2"]);
        let mut same = several();
        same["spec"]["conversion"] = json!({"strategy": "None"});
        let mut one = several();
        one["spec"]["versions"][1]["served"] = false.into();
        for crd in [same, one] {
            assert_eq!((served(&crd, Serving::All), served(&crd, Serving::Stored)), (crd.clone(), crd));
        }
    }

    #[test]
    fn a_webhook_converts_where_the_api_server_is_another_process() {
        let config = json!({"service": null, "url": "https://a/convert", "caBundle": "UEVN"});
        let crd = served(&several(), Serving::Webhook(&config));
        assert_eq!(crd["spec"]["conversion"]["webhook"]["clientConfig"], config);
        assert_eq!(served_versions(&crd).count(), 2);
    }

    #[test]
    fn what_an_installed_definition_serves_is_never_narrowed() {
        let wanted = served(&several(), Serving::Stored);
        let mut live = several();
        live["spec"]["versions"][0] = json!({"name": "v1alpha4", "served": false, "storage": true});
        let spec = json!({"spec": widened(&wanted, &live)});
        assert_eq!(served_versions(&spec).collect::<Vec<_>>(), ["v1beta2", "v1beta1"]);
        let storage = |version: &Value| version["storage"].as_bool().unwrap();
        let kept: Vec<bool> = json::items(&spec, "/spec/versions").iter().map(storage).collect();
        assert_eq!(kept, [true, false, false], "one version is stored; the old one stays known");
    }

    #[test]
    fn crds_are_created_patched_waited_for_or_left_alone() {
        let wanted = crd();
        let mut established = wanted.clone();
        established["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        let mut older = established.clone();
        older["metadata"]["annotations"][DIGEST] = "other".into();
        let mut foreign = established.clone();
        foreign["metadata"]["labels"] = json!({});
        let mut wider = older.clone();
        wider["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"properties": {"a": {}}});
        assert!(matches!(decide(&wanted, None, false), Step::Create(_)));
        assert_eq!(decide(&wanted, Some(&wanted), false), Step::Wait);
        assert_eq!(decide(&wanted, Some(&established), false), Step::Installed);
        assert!(matches!(decide(&wanted, Some(&older), false), Step::Patch(patch) if patch["spec"] == wanted["spec"]));
        assert!(matches!(decide(&wanted, Some(&foreign), false), Step::Foreign(why) if why.contains("hand it over")));
        assert!(
            matches!(decide(&wanted, Some(&wider), false), Step::Narrows(why) if why.contains("v1beta2.a is gone"))
        );
        assert_eq!(decide(&wanted, Some(&wider), true), Step::Installed, "a rollback reverts nothing");
    }
}
