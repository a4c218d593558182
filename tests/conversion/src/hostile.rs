//! Objects and annotations that nobody well-meaning would send: an error or no effect, never a panic, nothing lost.

use std::collections::BTreeSet;

use capwasm_api::conversion::{DATA_ANNOTATION, OLD_DATA_ANNOTATION, convert_core};
use serde_json::{Value, json};

use super::generate::Random;
use super::kinds::{self, convert};
use super::round_trips::generator;

const OLD: &str = "cluster.x-k8s.io/v1beta1";
const NEW: &str = "cluster.x-k8s.io/v1beta2";

fn machine(version: &str, annotation: &str, text: &str) -> Value {
    json!({"apiVersion": version, "kind": "Machine",
        "metadata": {"name": "m", "namespace": "n", "annotations": {annotation: text, "mine": "x"}}, "spec": {"clusterName": "c"}})
}

#[test]
fn kept_data_that_cannot_be_read_stops_the_write_that_would_lose_it() {
    for text in ["", "{", "[]", "null", "7", "\"x\"", "{\"spec\":", "\u{0}"] {
        let error = convert_core(machine(OLD, DATA_ANNOTATION, text), NEW).unwrap_err();
        assert!(error.contains(DATA_ANNOTATION), "{text:?}: {error}");
    }
}

#[test]
fn kept_data_of_another_kind_has_no_effect() {
    for data in [
        json!({"kind": "Cluster", "spec": {"clusterName": "evil", "minReadySeconds": 1}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta9", "kind": "Machine", "spec": {"minReadySeconds": 1}}),
    ] {
        let stored = convert_core(machine(OLD, DATA_ANNOTATION, &data.to_string()), NEW).unwrap();
        assert_eq!(stored["spec"], json!({"clusterName": "c"}), "{data}");
        assert_eq!(stored["metadata"]["annotations"], json!({"mine": "x"}));
    }
}

#[test]
fn kept_data_changes_nothing_that_the_client_said_and_never_the_metadata() {
    let data = json!({"metadata": {"name": "evil", "finalizers": ["x"]}, "kind": "Machine", "apiVersion": NEW,
        "spec": {"clusterName": "evil", "minReadySeconds": 5}, "extra": 1});
    let stored = convert_core(machine(OLD, DATA_ANNOTATION, &data.to_string()), NEW).unwrap();
    assert_eq!(stored["spec"], json!({"clusterName": "c", "minReadySeconds": 5}));
    assert_eq!(stored["metadata"], json!({"name": "m", "namespace": "n", "annotations": {"mine": "x"}}));
}

#[test]
fn a_read_never_fails_for_what_stands_in_our_annotation_and_hands_it_back() {
    let outdated = json!({"apiVersion": OLD, "kind": "Machine", "from": {"spec": {"clusterName": "b"}}, "to": {"spec": {"clusterName": "a"}}}).to_string();
    let other = json!({"apiVersion": OLD, "kind": "Cluster", "from": {}, "to": {"spec": {"x": 1}}}).to_string();
    let shapeless = json!({"apiVersion": OLD, "kind": "Machine", "from": [], "to": 1}).to_string();
    for text in ["", "{", "[]", "null", "{}", &outdated, &other, &shapeless] {
        let stored = machine(NEW, OLD_DATA_ANNOTATION, text);
        let shown = convert_core(stored.clone(), OLD).unwrap();
        assert_eq!(shown["spec"]["clusterName"], "c", "{text:?}");
        assert_eq!(convert_core(shown, NEW).unwrap(), stored, "{text:?}");
    }
}

#[test]
fn values_of_the_wrong_type_are_refused_or_left_for_validation() {
    for (spec, expected) in [
        (json!({"nodeDrainTimeout": "soon"}), Some("nodeDrainTimeout: \"soon\" is not a duration")),
        (json!({"nodeDrainTimeout": 5}), Some("nodeDrainTimeout: a duration")),
        (json!({"nodeDrainTimeout": null}), None),
        (json!({"infrastructureRef": "x"}), None),
        (json!({"bootstrap": {"configRef": {"apiVersion": 7}}}), None),
        (json!([]), None),
        (json!("x"), None),
        (json!(null), None),
        (json!({"deletion": 1, "nodeDrainTimeout": "1s"}), Some("a parent of it is not an object")),
    ] {
        let object = json!({"apiVersion": OLD, "kind": "Machine", "metadata": {"name": "m"}, "spec": spec});
        match (convert_core(object, NEW), expected) {
            (Err(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            (Ok(_), None) => {}
            (result, expected) => panic!("{spec}: {result:?}, not {expected:?}"),
        }
    }
}

#[test]
fn what_is_no_known_kind_or_version_is_refused() {
    for (object, to) in [
        (json!(null), NEW),
        (json!([]), NEW),
        (json!({}), NEW),
        (json!({"apiVersion": 1, "kind": 2}), NEW),
        (json!({"apiVersion": OLD, "kind": "Secret"}), NEW),
        (json!({"apiVersion": "v1", "kind": "Machine"}), "v2"),
        (json!({"apiVersion": OLD, "kind": "Machine"}), "cluster.x-k8s.io/v1alpha4"),
        (json!({"apiVersion": OLD, "kind": "Machine"}), "v1beta2"),
        (json!({"apiVersion": "cluster.x-k8s.io/v0", "kind": "Machine"}), NEW),
        (json!({"apiVersion": OLD, "kind": "Machine"}), "addons.cluster.x-k8s.io/v1beta2"),
    ] {
        assert!(convert_core(object.clone(), to).is_err(), "{object} to {to}");
    }
}

/// Replaces random values by others of any type.
fn spoil(random: &mut Random, value: &mut Value) {
    let junk = [
        json!(null),
        json!([]),
        json!({}),
        json!("x"),
        json!(-1),
        json!([[{}]]),
        json!({"name": 1}),
        json!(1.5),
        json!(true),
    ];
    match value {
        Value::Object(map) => {
            for (_, child) in map.iter_mut() {
                spoil(random, child);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| spoil(random, item)),
        _ => {}
    }
    if random.chance(4) {
        *value = random.pick(&junk).clone();
    }
}

#[test]
fn spoiled_objects_lead_to_an_error_or_come_back_as_they_were() {
    for kind in kinds::all() {
        for (index, (version, _)) in kind.versions.iter().enumerate() {
            let to = &kind.versions[usize::from(index == 0)].0;
            for seed in 0..40 {
                let mut covered = BTreeSet::new();
                let mut object = generator(&kind.kind, version, seed, &mut covered).object(&kind, version);
                let mut random = Random(seed);
                for part in ["spec", "status"] {
                    if let Some(part) = object.get_mut(part) {
                        spoil(&mut random, part);
                    }
                }
                let Ok(other) = convert(&object, &kind.api_version(to)) else { continue };
                let Ok(back) = convert(&other, &kind.api_version(version)) else { continue };
                if index == 0 {
                    assert_eq!(back, object, "{} #{seed}", kind.kind);
                }
            }
        }
    }
}

#[test]
fn huge_kept_data_is_merged_in_reasonable_time() {
    let items: Vec<Value> =
        (0..2000).map(|n| json!({"name": format!("md-{n}"), "class": "k", "replicas": n})).collect();
    let new = json!({"apiVersion": NEW, "kind": "Cluster", "metadata": {"name": "c", "namespace": "n"},
        "spec": {"topology": {"classRef": {"name": "k"}, "version": "v1.34.0", "workers": {"machineDeployments": items}}},
        "status": {"deprecated": {}}});
    let mut shown = convert_core(new.clone(), OLD).unwrap();
    shown["spec"]["topology"]["workers"]["machineDeployments"][1999]["replicas"] = 1.into();
    let started = std::time::Instant::now();
    let stored = convert_core(shown, NEW).unwrap();
    assert_eq!(stored["spec"]["topology"]["workers"]["machineDeployments"][1999]["replicas"], 1);
    assert_eq!(stored["status"], new["status"]);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}
