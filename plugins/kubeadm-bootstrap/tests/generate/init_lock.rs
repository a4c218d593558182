//! One machine initializes, whoever comes second and whatever is lost on the way.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::{Place, object};
use serde_json::json;

use crate::world::{Cut, World, cluster, config, machine, without_provider};

/// R3: one lock, one token and one set of key pairs, wherever a pass is lost.
#[test]
fn a_pass_that_is_lost_at_any_point_leads_to_the_same_end() {
    type Case = (&'static str, fn() -> World);
    let cases: [Case; 3] = [
        ("init with a provider", || {
            World::new(config(json!({})), machine("m0", true), cluster(false)).with_certificates()
        }),
        ("init without a provider", || {
            World::new(config(json!({})), machine("m0", true), without_provider(cluster(false)))
        }),
        ("join", || World::new(config(json!({})), machine("m1", true), cluster(true)).with_certificates()),
    ];
    for (what, make) in cases {
        for lost in 0..5 {
            for cut in [Cut::Everything, Cut::Operations, Cut::Data] {
                let mut world = make();
                let data = (0..12)
                    .find_map(|pass| world.pass(if pass == lost { cut } else { Cut::Nothing }))
                    .unwrap_or_else(|| panic!("{what}: no data after pass {lost} was lost ({cut:?})"));
                let locks = world.objects(Place::Management, "ConfigMap");
                let tokens = world.objects(Place::Workload, "Secret");
                if what == "join" {
                    assert_eq!((locks.len(), tokens.len()), (0, 1), "{what} {lost} {cut:?}");
                    assert!(data.contains(object::text(
                        &world.config,
                        "/spec/joinConfiguration/discovery/bootstrapToken/token"
                    )));
                } else {
                    assert_eq!((locks.len(), tokens.len()), (1, 0), "{what} {lost} {cut:?}");
                }
                if what == "init without a provider" {
                    let secrets = world.objects(Place::Management, "Secret");
                    assert_eq!(secrets.len(), 5, "{what} {lost} {cut:?}");
                    for secret in secrets.iter().filter(|secret| object::name(secret) != "quick-kubeconfig") {
                        let key = STANDARD.decode(object::text(secret, "/data/tls.key")).unwrap();
                        let key = String::from_utf8(key).unwrap();
                        assert!(
                            data.contains(key.lines().nth(1).unwrap_or(key.trim())),
                            "{what}: the data has the stored key"
                        );
                    }
                }
            }
        }
    }
}

/// R6a: one machine initializes.
#[test]
fn of_two_control_plane_machines_only_the_holder_of_the_lock_initializes() {
    let mut first = World::new(config(json!({})), machine("m0", true), cluster(false)).with_certificates();
    assert_eq!(first.pass(Cut::Nothing), None, "the lock is created, not yet held");
    let lock = first.objects(Place::Management, "ConfigMap").remove(0);
    let mut second = World::new(config(json!({})), machine("m1", true), cluster(false)).with_certificates();
    second.host.put(Place::Management, lock.clone());
    second.host.put(Place::Management, machine("m0", true));
    for _ in 0..3 {
        assert_eq!(second.pass(Cut::Nothing), None);
    }
    assert_eq!(second.call().0.unwrap_err().reason, "InitLockHeld");
    assert_eq!(object::text(&lock, "/data/lock-information"), r#"{"machineName":"m0"}"#);
    assert_eq!(lock["metadata"]["ownerReferences"][0]["kind"], "Cluster");
    assert!(first.pass(Cut::Nothing).is_some());

    let mut survivor = World::new(config(json!({})), machine("m1", true), cluster(false)).with_certificates();
    survivor.host.put(Place::Management, lock);
    assert!(survivor.until_data().contains("kubeadm init"), "the lock of a vanished Machine is cleared and taken");
    let locks = survivor.objects(Place::Management, "ConfigMap");
    assert_eq!(object::text(&locks[0], "/data/lock-information"), r#"{"machineName":"m1"}"#);
}

#[test]
fn joining_clears_the_init_lock() {
    let mut world = World::new(config(json!({})), machine("w0", false), cluster(true)).with_certificates();
    world.host.put(Place::Management, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quick-lock", "namespace": "default", "uid": "l"}, "data": {}}));
    world.until_data();
    assert!(world.objects(Place::Management, "ConfigMap").is_empty());
}
