#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use futures::TryStreamExt;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;
use crate::testing::{GROUP, object, pool, refusal, world};

/// Both kinds of runtime: the one of the binary hands its threads over, the other blocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_version_is_served_by_the_provider_and_refused_without_it() {
    let world = world().await.with_crds().await;
    let (new, old) = (world.pools("v1beta2"), world.pools("v1beta1"));
    let spec = json!({"placement": {"zone": "a", "rack": "7"}});
    new.create(&PostParams::default(), &pool("v1beta2", "p", spec)).await.unwrap();
    let (code, message) = refusal(old.get("p").await);
    assert!(code == 503 && message.contains("provider \"fixture\" is not loaded"), "{code} {message}");
    assert_eq!(refusal(old.create(&PostParams::default(), &pool("v1beta1", "q", json!({"zone": "b"}))).await).0, 503);

    world.conversions.serve(&world.provider);
    let seen = old.get("p").await.unwrap();
    assert_eq!(seen.data["spec"], json!({"zone": "a"}));
    let merge = Patch::Merge(json!({"spec": {"zone": "b"}}));
    old.patch("p", &PatchParams::default(), &merge).await.unwrap();
    let rack = json!({"placement": {"zone": "b", "rack": "7"}});
    assert_eq!(new.get("p").await.unwrap().data["spec"], rack, "what the client could not see is kept");

    let status = Patch::Merge(json!({"status": {"replicas": 2}}));
    old.patch_status("p", &PatchParams::default(), &status).await.unwrap();
    let apply = Patch::Apply(json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "FixturePool",
        "metadata": {"name": "p", "labels": {"applied": "yes"}}, "spec": {"zone": "c"}}));
    let applied = old.patch("p", &PatchParams::apply("tester").force(), &apply).await.unwrap();
    assert_eq!(applied.data["spec"], json!({"zone": "c"}));
    let stored = new.get("p").await.unwrap();
    assert_eq!(stored.data["spec"], json!({"placement": {"zone": "c", "rack": "7"}}));
    assert_eq!((&stored.data["status"]["replicas"], &stored.labels()["applied"]), (&json!(2), &"yes".to_owned()));
    assert_eq!(stored.annotations().get("fixture.example/rack"), None, "it goes with the version that needs it");

    old.create(&PostParams::default(), &pool("v1beta1", "q", json!({"zone": "d"}))).await.unwrap();
    let zones = |list: Vec<DynamicObject>| -> Vec<Value> {
        list.iter().map(|pool| pool.data["spec"]["zone"].clone()).collect()
    };
    assert_eq!(zones(old.list(&ListParams::default()).await.unwrap().items), [json!("c"), json!("d")]);
    let mut watch = std::pin::pin!(old.watch(&Default::default(), "0").await.unwrap());
    let Some(kube::api::WatchEvent::Added(seen)) = watch.try_next().await.unwrap() else { panic!("an event") };
    assert_eq!((seen.name_any(), &seen.data["spec"]["zone"]), ("p".to_owned(), &json!("c")));

    world.conversions.leave("fixture");
    assert_eq!(refusal(old.list(&ListParams::default()).await).0, 503);
    assert_eq!(new.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn a_provider_that_cannot_convert_fails_the_request_with_its_own_words() {
    let world = world().await.with_crds().await;
    world.conversions.serve(&world.provider);
    let (new, old) = (world.pools("v1beta2"), world.pools("v1beta1"));
    for (name, expected) in [
        ("refuse", "there is no word for it"),
        ("relabel", "when asked for FixturePool"),
        ("panic", "trapped"),
        ("lose", "0 objects for 1"),
    ] {
        new.create(&PostParams::default(), &pool("v1beta2", name, json!({"do": name}))).await.unwrap();
        let (code, message) = refusal(old.get(name).await);
        assert!(code == 500 && message.contains(expected) && message.contains("fixture"), "{name}: {code} {message}");
    }
    assert_eq!(new.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

/// Upstream's defaults and rules hold for clients of either version.
#[tokio::test]
async fn core_kinds_are_converted_natively_and_admitted_in_the_stored_version() {
    let world = world().await.with_crds().await;
    world.conversions.serve(&world.provider);
    let (new, old) = (world.core("v1beta2", "Cluster"), world.core("v1beta1", "Cluster"));
    let cluster = |name: &str, namespace: &str| {
        object(json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"infrastructureRef": {
                "apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixtureCluster", "name": "i", "namespace": namespace}}}))
    };
    old.create(&PostParams::default(), &cluster("c", "default")).await.unwrap();
    let stored = new.get("c").await.unwrap();
    assert_eq!(
        stored.data["spec"]["infrastructureRef"],
        json!({"apiGroup": GROUP, "kind": "FixtureCluster", "name": "i"})
    );
    let shown = old.get("c").await.unwrap();
    let reference = &shown.data["spec"]["infrastructureRef"];
    assert_eq!((&reference["apiVersion"], &reference["name"]), (&json!(format!("{GROUP}/v1beta2")), &json!("i")));

    let deployments = world.core("v1beta1", "MachineDeployment");
    let deployment = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": {"name": "d"}, "spec": {"clusterName": "c", "selector": {}, "template": {"spec": {
            "clusterName": "c", "version": "1.34.0", "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": {"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixtureMachineTemplate", "name": "t"}}}}});
    deployments.create(&PostParams::default(), &object(deployment)).await.unwrap();
    let stored = world.core("v1beta2", "MachineDeployment").get("d").await.unwrap();
    let labels = &stored.data["spec"]["selector"]["matchLabels"];
    assert_eq!(labels["cluster.x-k8s.io/deployment-name"], "d", "defaults are computed");
    assert_eq!(stored.data["spec"]["template"]["spec"]["version"], "v1.34.0");
    let lone = Patch::Merge(json!({"spec": {"clusterName": "other"}}));
    let (code, message) = refusal(deployments.patch("d", &PatchParams::default(), &lone).await);
    assert!((400..500).contains(&code), "what must not change does not change through v1beta1 either: {message}");
}
