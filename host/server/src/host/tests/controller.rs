//! Kinds that are none of Cluster API's roles, through a real component.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

const FINALIZER: &str = "fixturelease.infrastructure.fixture.example";

fn named(kind: &str, name: &str, spec: serde_json::Value) -> kube::api::DynamicObject {
    object(json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind, "metadata": {"name": name}, "spec": spec}))
}

async fn secret(world: &World, namespace: &str, name: &str, of_type: &str, value: &str) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": of_type,
        "data": {"value": STANDARD.encode(value)}});
    api(&world.client, "", "v1", "Secret", namespace).create(&PostParams::default(), &object(secret)).await.unwrap();
}

/// A kind of its own version beside others, with what belongs to it, from the first pass to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_of_its_own_is_reconciled_without_an_owner_and_goes_when_nothing_is_left() {
    let world = world().await;
    let host = providers(&world, Some(world.conversions.clone())).await;
    let create = PostParams::default();
    let read = json!([{"group": GROUP, "kind": "FixtureIdentity"}]);
    let grant = Patch::Merge(json!({"spec": {"grants": {"reads": read, "secrets": ["clouds"]}}}));
    let wasm_providers = api(&world.client, "capwasm.dev", "v1alpha1", "WasmProvider", "");
    wasm_providers.patch("fixture", &PatchParams::default(), &grant).await.unwrap();

    let infrastructure = json!({"apiGroup": GROUP, "kind": "FixtureCluster", "name": "i"});
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"paused": true, "infrastructureRef": infrastructure}});
    world.core("v1beta2", "Cluster").create(&create, &object(cluster)).await.unwrap();
    let fixture =
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixtureCluster", "metadata": {"name": "i"}});
    api(&world.client, GROUP, "v1beta2", "FixtureCluster", "default").create(&create, &object(fixture)).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}});
    api(&world.client, "", "v1", "Namespace", "").create(&create, &object(namespace)).await.unwrap();
    secret(&world, "elsewhere", "clouds", "Opaque", "shared").await;
    secret(&world, "default", "data", "cluster.x-k8s.io/secret", "#cloud-config").await;
    secret(&world, "default", "private", "Opaque", "password").await;
    let identities = api(&world.client, GROUP, "v1alpha1", "FixtureIdentity", "");
    identities.create(&create, &named("FixtureIdentity", "who", json!({"secret": "clouds"}))).await.unwrap();

    let leases = api(&world.client, GROUP, "v1alpha1", "FixtureLease", "default");
    let spec = json!({"identityRef": "who", "userDataRef": {"name": "data"}, "hold": true});
    let mut lease = named("FixtureLease", "l", spec);
    lease.labels_mut().insert("cluster.x-k8s.io/cluster-name".to_owned(), "c".to_owned());
    leases.create(&create, &lease).await.unwrap();
    let now = async |name: &str| serde_json::to_value(leases.get_opt(name).await.unwrap()).unwrap();
    let held = |object: &serde_json::Value| json::items(object, "/metadata/finalizers").len();
    until("it says that its Cluster is paused", async || {
        capwasm_api::conditions::is_true(&now("l").await, "Paused").then_some(())
    })
    .await;
    let paused = now("l").await;
    assert_eq!((held(&paused), &paused["status"]["ready"], paused["status"].get("seen")), (0, &json!(false), None));

    let resume = Patch::Merge(json!({"spec": {"paused": false}}));
    world.core("v1beta2", "Cluster").patch("c", &PatchParams::default(), &resume).await.unwrap();
    let denied = until("it is reconciled", async || {
        let object = now("l").await;
        object.pointer("/status/seen/identity/ok").is_some().then_some(object)
    })
    .await;
    let seen = &denied["status"]["seen"];
    assert_eq!(seen["version"], format!("{GROUP}/v1alpha1"));
    assert_eq!((&seen["cluster"], &seen["infrastructure"]), (&json!(["c"]), &json!(["i"])));
    assert_eq!(seen["machine"], json!([]));
    assert_eq!((&seen["data"]["ok"], &seen["identity"]["ok"]), (&json!("#cloud-config"), &json!("clouds")));
    assert_eq!(seen["elsewhere"]["refused"], "Refusal::Denied", "the namespace is not granted");
    assert_eq!(json::items(&denied, "/metadata/finalizers"), [json!(FINALIZER)]);
    let ready = capwasm_api::conditions::get(&denied, "Ready").unwrap();
    assert_eq!((ready.status.as_str(), &denied["status"]["ready"]), ("True", &json!(true)));
    let conditions = json::items(&denied, "/status/conditions");
    let leased = conditions.iter().find(|condition| condition["type"] == "Leased").unwrap();
    assert_eq!((&leased["severity"], &leased["reason"]), (&json!("Info"), &json!("Resting")));

    let grant = Patch::Merge(json!({"spec": {"grants": {"namespaces": ["elsewhere"]}}}));
    wasm_providers.patch("fixture", &PatchParams::default(), &grant).await.unwrap();
    until("the namespace is granted", async || {
        (now("l").await["status"]["seen"]["elsewhere"]["ok"] == "shared").then_some(())
    })
    .await;
    let other = Patch::Merge(json!({"spec": {"userDataRef": {"name": "private"}}}));
    leases.patch("l", &PatchParams::default(), &other).await.unwrap();
    until("what is no bootstrap data is not opened as such", async || {
        (now("l").await["status"]["seen"]["data"]["refused"] == "Refusal::Denied").then_some(())
    })
    .await;

    leases.delete("l", &DeleteParams::default()).await.unwrap();
    until("it says that it is being deleted", async || {
        let ready = capwasm_api::conditions::get(&now("l").await, "Ready")?;
        (ready.reason == "Deleting").then_some(())
    })
    .await;
    assert_eq!(held(&now("l").await), 1, "something is left");
    let release = Patch::Merge(json!({"spec": {"hold": null}}));
    leases.patch("l", &PatchParams::default(), &release).await.unwrap();
    until("it is gone", async || leases.get_opt("l").await.unwrap().is_none().then_some(())).await;
    assert!(identities.get("who").await.unwrap().metadata.finalizers.is_none(), "data is left alone");
    host.stop().await;
}

/// Of a problem the object says why, in conditions as its schema has them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_problem_of_a_kind_without_contract_is_told_in_its_own_conditions() {
    let world = world().await;
    let host = providers(&world, Some(world.conversions.clone())).await;
    let leases = api(&world.client, GROUP, "v1alpha1", "FixtureLease", "default");
    leases.create(&PostParams::default(), &named("FixtureLease", "w", json!({"do": "wait"}))).await.unwrap();
    let condition = until("it says what it waits for", async || {
        let object = serde_json::to_value(leases.get("w").await.unwrap()).unwrap();
        json::items(&object, "/status/conditions").iter().find(|condition| condition["type"] == "Ready").cloned()
    })
    .await;
    assert_eq!(
        (&condition["status"], &condition["severity"], &condition["reason"]),
        (&json!("False"), &json!("Info"), &json!("NotYet"))
    );
    host.stop().await;
}
