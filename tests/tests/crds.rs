//! The CustomResourceDefinitions of all providers on a real kube-apiserver, which refuses what an estimate of ours might let pass:
//! schemas that are not structural, rules that do not compile, and rules that could cost too much.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use capwasm_tests::api_server::{ADMIN, ApiServer};
use capwasm_tests::{binary, wait};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, PostParams};

#[tokio::test]
async fn a_real_api_server_accepts_all_crds_with_the_costs_of_their_rules() {
    let test = "crds::a_real_api_server_accepts_all_crds_with_the_costs_of_their_rules";
    let Some(server) = ApiServer::start(test).await else { return };
    let folder = binary::provider_dir();
    let printed = binary::output(&["crds", "--provider-dir", folder.to_str().unwrap()]);
    let definitions: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&printed).unwrap();
    let rules = printed.matches("x-kubernetes-validations:").count();
    assert!(definitions.len() > 25 && rules > 50, "{} kinds with {rules} sets of rules", definitions.len());

    let api: Api<CustomResourceDefinition> = Api::all(server.client(ADMIN).await);
    let mut refused = Vec::new();
    for definition in &definitions {
        if let Err(error) = api.create(&PostParams::default(), definition).await {
            refused.push(format!("{}: {error}", definition.name_any()));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
    for definition in &definitions {
        wait::until(&format!("{} is served", definition.name_any()), async || {
            let found = api.get(&definition.name_any()).await.map_err(|error| error.to_string())?;
            let conditions = found.status.unwrap().conditions.unwrap_or_default();
            let is = |kind: &str| conditions.iter().any(|it| it.type_ == kind && it.status == "True");
            assert!(!is("NonStructuralSchema") && !is("KubernetesAPIApprovalPolicyConformant"), "{conditions:?}");
            if is("Established") && is("NamesAccepted") { Ok(()) } else { Err(format!("{conditions:?}")) }
        })
        .await;
    }
}

#[tokio::test]
async fn a_real_api_server_refuses_a_rule_that_could_cost_too_much() {
    let test = "crds::a_real_api_server_refuses_a_rule_that_could_cost_too_much";
    let Some(server) = ApiServer::start(test).await else { return };
    let api: Api<CustomResourceDefinition> = Api::all(server.client(ADMIN).await);
    let names = serde_json::json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [
        {"rule": "self.all(a, self.all(b, self.all(c, a + b != c)))", "message": "of a test"},
    ]});
    let definition = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "costs.of-a-test.example"},
        "spec": {"group": "of-a-test.example", "scope": "Namespaced", "names": {"kind": "Cost", "plural": "costs"}, "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"names": names}}},
        }]},
    }))
    .unwrap();
    let refused = api.create(&PostParams::default(), &definition).await.unwrap_err();
    assert!(refused.to_string().contains("estimated rule cost exceeds budget"), "{refused}");
}
