//! Bootstrap tokens, of machines and of pools, until everybody has joined.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{ObjectRef, Place, object};
use serde_json::{Value, json};

use crate::world::{Cut, World, cluster, config, machine};

fn pool(replicas: u64, nodes: u64, data_secret: Option<&str>) -> Value {
    let refs: Vec<_> = (0..nodes).map(|n| json!({"name": format!("n{n}")})).collect();
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"replicas": replicas, "template": {"spec": {"version": "v1.36.0", "bootstrap": {"dataSecretName": data_secret}}}},
        "status": {"nodeRefs": refs},
    })
}

/// The token of a pool is prolonged until all its machines have joined, and then replaced at half of its life, and the
/// data with it.
#[test]
fn a_pools_data_follows_its_token() {
    let mut world = World::new(config(json!({})), json!({}), cluster(true)).with_certificates();
    world.host.set_related("machine", Vec::new());
    world.host.set_related("machine-pool", vec![pool(2, 0, None)]);
    let store = |world: &mut World, data: &str| {
        world.host = std::mem::take(&mut world.host).secret("c", "value", data);
    };
    let token_of = |world: &World| {
        object::text(&world.config, "/spec/joinConfiguration/discovery/bootstrapToken/token").to_owned()
    };
    let first = world.pass(Cut::Nothing).expect("data at once");
    let old = token_of(&world);
    assert!(first.contains(&old) && first.contains("uninitialized"));
    assert_eq!(world.pass(Cut::Nothing).as_deref(), Some(first.as_str()), "a Secret that is not there is written anew");
    store(&mut world, &first);
    assert_eq!(world.pass(Cut::Nothing), None, "the data stays while nothing changed");

    world.host.set_now_ms(1_700_000_300_000);
    assert_eq!(world.pass(Cut::Nothing), None);
    assert_eq!(token_of(&world), old, "a token that is waited on is prolonged");
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T22:33:20Z")
    );

    world.host.set_related("machine-pool", vec![pool(2, 2, Some("c"))]);
    assert_eq!(world.pass(Cut::Nothing), None, "all have joined, and more than half of the life is left");
    assert_eq!(token_of(&world), old);
    world.host.set_now_ms(1_700_000_300_000 + 8 * 60_000);
    // The first try is lost after the token was written, before the workload cluster and the Secret heard of it.
    world.pass(Cut::Operations);
    let new = token_of(&world);
    assert_ne!(new, old);
    let second = world.pass(Cut::Nothing).expect("new data");
    let new = if second.contains(&new) { new } else { token_of(&world) };
    assert!(second.contains(&new) && !second.contains(&old));
    assert!(world.objects(Place::Workload, "Secret").iter().any(|secret| object::name(secret).ends_with(&new[..6])));
    store(&mut world, &second);
    assert_eq!(world.pass(Cut::Nothing), None, "and it rests again");
    assert!(world.call().1.wake_after.is_some(), "until it is looked at again");
}

#[test]
fn the_token_of_a_pool_stays_good_when_its_spec_no_longer_makes_data() {
    let mut world = World::new(config(json!({})), json!({}), cluster(true)).with_certificates();
    world.host.set_related("machine", Vec::new());
    world.host.set_related("machine-pool", vec![pool(2, 0, None)]);
    world.pass(Cut::Nothing).expect("data at once");
    object::merge(&mut world.config, &json!({"spec": {"files": [{"path": "/a"}, {"path": "/a"}]}}));
    world.host.set_now_ms(1_700_000_300_000);
    assert_eq!(world.pass(Cut::Nothing), None);
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T22:33:20Z")
    );
}

#[test]
fn the_token_of_a_pool_that_replaces_its_machines_is_prolonged() {
    let mut world = World::new(config(json!({})), json!({}), cluster(true)).with_certificates();
    world.host.set_related("machine", Vec::new());
    world.host.set_related("machine-pool", vec![pool(2, 0, None)]);
    world.pass(Cut::Nothing).expect("data at once");
    let mut replacing = pool(2, 2, Some("c"));
    object::merge(&mut replacing, &json!({"status": {"replicas": 4}}));
    world.host.set_related("machine-pool", vec![replacing]);
    world.host.set_now_ms(1_700_000_000_000 + 10 * 60_000);
    world.pass(Cut::Nothing);
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T22:38:20Z"),
        "those that are new join with it"
    );
}

#[test]
fn a_token_is_prolonged_until_the_machine_has_a_node() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.until_data();
    world.host.set_now_ms(1_700_000_300_000);
    let (result, outcome) = world.call();
    assert_eq!(result.unwrap(), None, "the data stays as it is");
    assert!(outcome.wake_after.is_some() && outcome.operations.len() == 1);
    world.pass(Cut::Nothing);
    let expiration = &world.objects(Place::Workload, "Secret")[0]["data"]["expiration"];
    assert_eq!(*expiration, STANDARD.encode("2023-11-14T22:33:20Z"));

    world.host.set_workload_down(true);
    let (result, outcome) = world.call();
    assert_eq!(result.unwrap(), None, "data that was handed out stays handed out");
    assert!(outcome.conditions.iter().all(|condition| condition.status == Some(true)) && outcome.wake_after.is_some());
    world.host.set_workload_down(false);

    let mut joined = machine("w0", false);
    object::merge(&mut joined, &json!({"status": {"nodeRef": {"name": "w0"}}}));
    world.host.set_related("machine", vec![joined]);
    let (result, outcome) = world.call();
    assert_eq!((result.unwrap(), outcome.wake_after, outcome.operations.len()), (None, None, 0));
}

/// A token that the cluster's cleaner took before the machine joined is made again, the same one.
#[test]
fn a_token_that_vanished_is_made_again() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.pass(Cut::Nothing).expect("data at once");
    let secret = world.objects(Place::Workload, "Secret").remove(0);
    world
        .host
        .remove(Place::Workload, &ObjectRef::new("v1", "Secret", object::name(&secret)).in_namespace("kube-system"));
    assert_eq!(world.pass(Cut::Nothing), None, "the data stays");
    let again = world.objects(Place::Workload, "Secret");
    assert_eq!((again.len(), &again[0]["data"]["token-secret"]), (1, &secret["data"]["token-secret"]));
}

#[test]
fn the_life_of_tokens_is_the_providers_configuration() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.host = std::mem::take(&mut world.host).configuration(json!({"bootstrapTokenTTLSeconds": 3600}));
    let (_, outcome) = world.call();
    assert_eq!(outcome.wake_after, Some(std::time::Duration::from_secs(1200)));
    world.until_data();
    assert_eq!(
        world.objects(Place::Workload, "Secret")[0]["data"]["expiration"],
        STANDARD.encode("2023-11-14T23:13:20Z")
    );
    world.host = std::mem::take(&mut world.host).configuration(json!({"bootstrapTokenTTLSeconds": "1h"}));
    let fresh = World { host: std::mem::take(&mut world.host), config: config(json!({})) };
    assert_eq!(fresh.call().0.unwrap_err().reason, "InvalidProviderConfiguration");
}
