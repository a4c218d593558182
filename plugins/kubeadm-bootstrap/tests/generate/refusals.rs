//! What is waited for, and what is refused.

use capwasm_sdk::{Fault, Place, object};
use serde_json::json;

use crate::world::{Cut, World, cluster, config, machine, without_provider};

/// A Secret that is there but empty is not made anew: that would be another cluster's.
#[test]
fn an_empty_certificate_is_a_clear_error() {
    for (what, control_plane, initialized) in
        [("the first", true, false), ("a further", true, true), ("a worker", false, true)]
    {
        let mut world =
            World::new(config(json!({})), machine("m", control_plane), without_provider(cluster(initialized)))
                .with_certificates();
        world.host = std::mem::take(&mut world.host).secret("quick-ca", "tls.crt", "");
        let problem = (0..3).find_map(|_| {
            let (result, _) = world.call();
            world.pass(Cut::Nothing);
            result.err().filter(|problem| problem.fault == Fault::Invalid)
        });
        let problem = problem.unwrap_or_else(|| panic!("{what}: no error"));
        assert_eq!(problem.reason, "CertificateEmpty", "{what}");
        assert!(problem.message.contains("quick-ca"), "{what}: {}", problem.message);
        let condition = object::condition(&world.config, "CertificatesAvailable").unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("Unknown"), &json!("InternalError")),
            "{what}"
        );
        assert!(world.objects(Place::Management, "Secret").is_empty(), "{what}");
    }
}

#[test]
fn what_is_not_there_yet_is_waited_for() {
    let mut no_endpoint = cluster(true);
    object::merge(&mut no_endpoint, &json!({"spec": {"controlPlaneEndpoint": null}}));
    let mut down = World::new(
        config(
            json!({"joinConfiguration": {"discovery": {"bootstrapToken": {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "e:1", "caCertHashes": ["h"]}}}}),
        ),
        machine("w", false),
        cluster(true),
    );
    down.host.set_workload_down(true);
    let mut alone = World::new(config(json!({})), machine("w", false), cluster(true));
    alone.host.set_related("machine", vec![]);
    let held = World::new(config(json!({})), machine("m", true), cluster(false));
    let lock = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quick-lock", "namespace": "default"}, "data": {"lock-information": "{\"machineName\":\"m\"}"}});
    held.host.put(Place::Management, lock);
    for (what, world, reason) in [
        ("no Machine", alone, "WaitingForMachine"),
        (
            "a worker before initialization",
            World::new(config(json!({})), machine("w", false), cluster(false)),
            "WaitingForControlPlaneInitialized",
        ),
        (
            "no endpoint",
            World::new(config(json!({})), machine("w", false), no_endpoint).with_certificates(),
            "WaitingForEndpoint",
        ),
        ("no CA", World::new(config(json!({})), machine("w", false), cluster(true)), "WaitingForCertificates"),
        ("no certificates", held, "WaitingForCertificates"),
        ("no workload API", down, "NotConnected"),
    ] {
        let (result, outcome) = world.call();
        let problem = result.unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, reason), "{what}");
        assert!(outcome.operations.is_empty(), "{what}");
        let condition = outcome.condition_named("DataSecretAvailable").unwrap();
        assert_eq!((condition.status, condition.reason.as_str()), (Some(false), "NotAvailable"), "{what}");
    }
}

#[test]
fn malformed_objects_are_refused_with_the_place_of_the_mistake() {
    for (what, spec, machine, reason, part) in [
        ("a format of another's", json!({"format": "talos"}), machine("m", true), "InvalidConfiguration", "talos"),
        (
            "a field that the version lacks",
            json!({"initConfiguration": {"nodeRegistration": {"imagePullSerial": false}}}),
            {
                let mut m = machine("m", true);
                m["spec"]["version"] = json!("v1.30.0");
                m
            },
            "UnsupportedByKubernetesVersion",
            "imagePullSerial",
        ),
        ("files of the wrong shape", json!({"files": "x"}), machine("m", true), "InvalidConfiguration", "spec"),
        ("a file that is a number", json!({"files": [1]}), machine("m", true), "InvalidConfiguration", "spec"),
        (
            "commands that are numbers",
            json!({"preKubeadmCommands": [1]}),
            machine("m", true),
            "InvalidConfiguration",
            "spec",
        ),
        ("a spec that is a list", json!(["x"]), machine("m", true), "InvalidConfiguration", "spec"),
        (
            "an old version",
            json!({}),
            {
                let mut m = machine("m", true);
                m["spec"]["version"] = json!("v1.21.0");
                m
            },
            "UnsupportedKubernetesVersion",
            "v1.21.0",
        ),
        (
            "no version at all",
            json!({}),
            {
                let mut m = machine("m", true);
                m["spec"]["version"] = json!("newest");
                m
            },
            "InvalidKubernetesVersion",
            "newest",
        ),
    ] {
        let (result, outcome) = World::new(config(spec), machine, cluster(false)).call();
        let problem = result.unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Invalid, reason), "{what}");
        assert!(problem.message.contains(part), "{what}: {}", problem.message);
        assert!(outcome.operations.is_empty(), "{what}");
    }
    for object in [
        json!(null),
        json!({}),
        json!({"spec": null, "status": 3, "metadata": []}),
        json!({"spec": {"files": null, "clusterConfiguration": null}}),
    ] {
        let world = World::new(object, machine("m", true), cluster(false));
        assert_eq!(world.call().0.unwrap_err().fault, Fault::Waiting, "the lock is asked for");
    }
    let hollow = World::new(
        config(json!({})),
        json!({}),
        json!({"spec": {"clusterNetwork": {"pods": 1}, "controlPlaneEndpoint": []}}),
    );
    assert!(hollow.call().0.is_err());
}
