#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod controller;
mod etcd;
mod keys;
mod slots;

use capwasm_object::json;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;
use crate::testing::{GROUP, World, api, object, pool, refusal, until, world};

/// Controllers of providers on the world's server, with the fixture provider and its grants.
async fn providers(world: &World, conversions: Option<Arc<Conversions>>) -> Host {
    let options =
        Options { core: false, conversions, ..Options::new(world.folder.path().join("plugins"), world.folder.path()) };
    install::crd(&world.client, &wasm_provider::crd().unwrap()).await.unwrap();
    let endpoints = [("engine".to_owned(), NamedEndpoint::unix("/nowhere.sock"))];
    let wanted =
        wasm_provider::bundled(world.provider.descriptor(), "fixture.wasm", &endpoints, Grants::default(), None)
            .unwrap();
    install::wasm_provider(&world.client, &wanted).await.unwrap();
    let files = ProviderFiles::open(&options.provider_dir).unwrap();
    let host = controllers(&world.client, world.runtime.clone(), files, &options, &world.diagnostics.registry)
        .await
        .unwrap()
        .run();
    host.serving(&world.client, "fixture").await.unwrap().unwrap();
    host
}

/// From the MachinePool's replicas to `spec.providerIDList`, through a real component, in either version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_waits_for_its_data_follows_its_machine_pool_and_goes_when_nothing_is_left() {
    let world = world().await;
    let host = providers(&world, Some(world.conversions.clone())).await;
    let create = PostParams::default();
    let merge = |value| Patch::Merge(value);
    let (clusters, machine_pools) = (world.core("v1beta2", "Cluster"), world.core("v1beta2", "MachinePool"));
    let infrastructure = json!({"apiGroup": GROUP, "kind": "FixtureCluster", "name": "i"});
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"infrastructureRef": infrastructure}});
    clusters.create(&create, &object(cluster)).await.unwrap();
    let ready = merge(json!({"status": {"initialization": {"infrastructureProvisioned": true}}}));
    clusters.patch_status("c", &PatchParams::default(), &ready).await.unwrap();
    let machine_pool = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": {"name": "mp"},
        "spec": {"clusterName": "c", "replicas": 3, "template": {"spec": {"clusterName": "c", "bootstrap": {},
            "infrastructureRef": {"apiGroup": GROUP, "kind": "FixturePool", "name": "p"}}}}});
    let mut machine_pool_object = object(machine_pool);
    machine_pool_object.data["spec"]["template"]["spec"]["bootstrap"] =
        json!({"configRef": {"apiGroup": GROUP, "kind": "FixtureConfig", "name": "b"}});
    let owner = machine_pools.create(&create, &machine_pool_object).await.unwrap();
    let (new, old) = (world.pools("v1beta2"), world.pools("v1beta1"));
    let mut wanted = pool("v1beta2", "p", json!({"placement": {"zone": "a"}}));
    wanted.metadata.owner_references = Some(
        serde_json::from_value(json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": "mp",
            "uid": owner.uid().unwrap()}]))
        .unwrap(),
    );
    new.create(&create, &wanted).await.unwrap();
    let seen = async || serde_json::to_value(new.get_opt("p").await.unwrap()).unwrap();
    until("it says what it waits for", async || {
        let reason = capwasm_api::conditions::get(&seen().await, "Ready")?.reason;
        (reason == "WaitingForBootstrapData").then_some(())
    })
    .await;

    let data = merge(json!({"spec": {"template": {"spec": {"bootstrap": {"dataSecretName": "s"}}}}}));
    machine_pools.patch("mp", &PatchParams::default(), &data).await.unwrap();
    let ids = |count: usize| -> Value { (0..count).map(|index| json!(format!("fixture:////p-{index}"))).collect() };
    let follows = async |count: usize| {
        until("the instances are counted", async || {
            let object = seen().await;
            let written = object["spec"]["providerIDList"] == ids(count) && object["status"]["replicas"] == count;
            written.then_some(object)
        })
        .await
    };
    let stands = follows(3).await;
    assert_eq!(stands["status"]["initialization"]["provisioned"], true);
    assert_eq!(json::items(&stands, "/metadata/finalizers"), [json!(format!("fixturepool.{GROUP}"))]);
    assert_eq!(old.get("p").await.unwrap().data["spec"], json!({"zone": "a", "providerIDList": ids(3)}));
    let fewer = merge(json!({"spec": {"replicas": 1}}));
    machine_pools.patch("mp", &PatchParams::default(), &fewer).await.unwrap();
    follows(1).await;

    new.create(&create, &pool("v1beta2", "lone", json!({"placement": {"zone": "b"}}))).await.unwrap();
    new.delete("p", &DeleteParams::default()).await.unwrap();
    until("it is gone", async || new.get_opt("p").await.unwrap().is_none().then_some(())).await;
    let wasm_providers = api(&world.client, "capwasm.dev", "v1alpha1", "WasmProvider", "");
    wasm_providers.delete("fixture", &DeleteParams::default()).await.unwrap();
    until("the provider is gone", async || wasm_providers.get_opt("fixture").await.unwrap().is_none().then_some(()))
        .await;
    let (code, message) = refusal(old.get("lone").await);
    assert!(code == 503 && message.contains("provider \"fixture\" is not loaded"), "{code} {message}");
    assert!(new.get("lone").await.is_ok(), "the stored version needs nobody");
    host.stop().await;
}

/// A server that asks nobody to convert serves what it stores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_converts_only_the_stored_version_is_served() {
    let world = world().await;
    let host = providers(&world, None).await;
    assert_eq!(world.pools("v1beta2").list(&ListParams::default()).await.unwrap().items.len(), 0);
    assert_eq!(refusal(world.pools("v1beta1").list(&ListParams::default()).await).0, 404);
    let crds = api(&world.client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "");
    let crd = crds.get(&format!("fixturepools.{GROUP}")).await.unwrap();
    assert_eq!(crd.labels()["cluster.x-k8s.io/v1beta2"], "v1beta2", "labels as the provider wrote them");
    assert_eq!(crd.labels().get("cluster.x-k8s.io/v1beta1"), None, "but for versions that are not served");
    assert_eq!(crd.data["spec"]["conversion"]["strategy"], "None");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crd_of_a_provider_that_somebody_deletes_comes_back() {
    let world = world().await;
    let host = providers(&world, Some(world.conversions.clone())).await;
    let crds = api(&world.client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "");
    let name = format!("fixtureleases.{GROUP}");
    let before = crds.get(&name).await.unwrap().uid();
    crds.delete(&name, &DeleteParams::default()).await.unwrap();
    until("it comes back", async || crds.get_opt(&name).await.unwrap().filter(|crd| crd.uid() != before)).await;
    host.stop().await;
}
