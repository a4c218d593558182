//! The CRDs that a provider brings: labelled by the host, installed only where nobody else's are.

use capwasm_api::descriptor::Descriptor;
use capwasm_api::json;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Whose CRD it is.
pub const PROVIDER: &str = "capwasm.dev/provider";
/// What was installed, to see whether it differs without comparing schemas.
const DIGEST: &str = "capwasm.dev/crd-digest";
/// Contract versions, newest first.
const CONTRACTS: [&str; 2] = ["v1beta2", "v1beta1"];

/// What is to be done about one CRD.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is not there.
    Create(Value),
    /// It is this provider's and differs: a merge patch.
    Patch(Value),
    /// It is there, but not yet served.
    Wait,
    /// It is as it should be.
    Installed,
    /// It is not this provider's.
    Foreign(String),
}

/// Every CRD of a provider with the host's labels on it.
pub fn of_provider(descriptor: &Descriptor) -> Vec<Value> {
    descriptor.kinds.iter().map(|kind| labelled(&kind.crd, &descriptor.name)).collect()
}

/// Decides about one CRD.
pub fn decide(wanted: &Value, live: Option<&Value>) -> Step {
    let Some(live) = live else { return Step::Create(wanted.clone()) };
    let owner = json::label(live, PROVIDER);
    if owner != json::label(wanted, PROVIDER) {
        return Step::Foreign(match owner {
            Some(owner) => format!("CRD {} belongs to provider {owner:?}", json::name(live)),
            None => format!(
                "CRD {} was installed by somebody else; label it {PROVIDER}={} to hand it over",
                json::name(live),
                json::label(wanted, PROVIDER).unwrap_or_default()
            ),
        });
    }
    if json::annotation(live, DIGEST) != json::annotation(wanted, DIGEST) {
        return Step::Patch(json!({
            "metadata": {"labels": wanted.pointer("/metadata/labels"), "annotations": wanted.pointer("/metadata/annotations")},
            "spec": wanted.get("spec"),
        }));
    }
    let established = capwasm_api::conditions::is_true(live, "Established");
    if established { Step::Installed } else { Step::Wait }
}

/// The CRD with owner, contract labels and digest. Contract labels that the provider wrote are kept; without any, every
/// served version counts for the newest contract.
fn labelled(crd: &Value, provider: &str) -> Value {
    let mut crd = crd.clone();
    let digest = Sha256::digest(crd.get("spec").map(Value::to_string).unwrap_or_default());
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let told = CONTRACTS.iter().any(|contract| json::label(&crd, &format!("cluster.x-k8s.io/{contract}")).is_some());
    let versions: Vec<&str> = json::items(&crd, "/spec/versions")
        .iter()
        .filter(|version| json::flag(version, "/served") == Some(true))
        .filter_map(|version| json::text(version, "/name"))
        .collect();
    let versions = versions.join("_");
    let labels = json::map(&mut crd, &["metadata", "labels"]);
    labels.insert(PROVIDER.into(), provider.into());
    if !told {
        labels.insert(format!("cluster.x-k8s.io/{}", CONTRACTS[0]), versions.into());
    }
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
        let own = labelled(&json!({"metadata": {"labels": {"cluster.x-k8s.io/v1beta1": "v1"}}, "spec": {}}), "p");
        assert_eq!(own["metadata"]["labels"], json!({"cluster.x-k8s.io/v1beta1": "v1", PROVIDER: "p"}));
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
        assert!(matches!(decide(&wanted, None), Step::Create(_)));
        assert_eq!(decide(&wanted, Some(&wanted)), Step::Wait);
        assert_eq!(decide(&wanted, Some(&established)), Step::Installed);
        assert!(matches!(decide(&wanted, Some(&older)), Step::Patch(patch) if patch["spec"] == wanted["spec"]));
        assert!(matches!(decide(&wanted, Some(&foreign)), Step::Foreign(why) if why.contains("hand it over")));
    }
}
