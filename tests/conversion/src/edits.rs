//! A client of the older version changes what it was shown.

use std::collections::BTreeSet;

use capwasm_api::conversion::DATA_ANNOTATION;
use serde_json::Value;

use super::generate::Random;
use super::kinds;
use super::round_trips::{assert_same, bare, for_every_kind, generator, pretty, without_data};

/// One random change: a value replaced by that of another object, removed, or added.
fn edit(random: &mut Random, object: &mut Value, other: &Value) {
    let (Value::Object(map), Value::Object(source)) = (object, other) else { return };
    let keys: BTreeSet<String> = map.keys().chain(source.keys()).cloned().collect();
    let keys: Vec<String> =
        keys.into_iter().filter(|key| !["apiVersion", "kind", "metadata"].contains(&key.as_str())).collect();
    if keys.is_empty() {
        return;
    }
    let key = random.pick(&keys);
    match (map.get_mut(key), source.get(key)) {
        (Some(inner @ Value::Object(_)), Some(other @ Value::Object(_))) if random.chance(80) => {
            edit(random, inner, other);
        }
        (_, Some(value)) => {
            map.insert(key.clone(), value.clone());
        }
        (_, None) => {
            map.remove(key);
        }
    }
}

#[test]
fn what_a_client_of_the_older_version_changes_is_what_it_reads_afterwards() {
    for_every_kind(|kind| {
        let (hub, _) = kind.hub();
        for (older, _) in &kind.versions[1..] {
            for index in 0..100 {
                let mut covered = BTreeSet::new();
                let object = generator(&kind.kind, hub, index, &mut covered).object(kind, hub);
                let other = generator(&kind.kind, older, index + 7, &mut covered).object(kind, older);
                let mut sent = kinds::convert(&object, &kind.api_version(older)).unwrap();
                let mut random = Random(index);
                for _ in 0..=random.below(3) {
                    edit(&mut random, &mut sent, &other);
                }
                let what = format!("{} {older} #{index}", kind.kind);
                let stored = kinds::convert(&sent, &kind.api_version(hub))
                    .unwrap_or_else(|error| panic!("{what}: {error}\n{}", pretty(&sent)));
                let shown = kinds::convert(&stored, &kind.api_version(older)).unwrap();
                assert_same(&what, &bare(&without_data(&sent)), &bare(&without_data(&shown)));
                assert_same(&what, &stored, &kinds::convert(&shown, &kind.api_version(hub)).unwrap());
            }
        }
    });
}

#[test]
fn a_change_of_the_spec_leaves_the_status_and_what_is_hidden_in_it_alone() {
    for_every_kind(|kind| {
        let (hub, _) = kind.hub();
        for (older, _) in &kind.versions[1..] {
            for index in 0..60 {
                let mut covered = BTreeSet::new();
                let object = generator(&kind.kind, hub, index, &mut covered).object(kind, hub);
                let other = generator(&kind.kind, older, index + 3, &mut covered).object(kind, older);
                let mut sent = kinds::convert(&object, &kind.api_version(older)).unwrap();
                let (Some(spec), Some(other)) = (sent.get_mut("spec"), other.get("spec")) else { continue };
                edit(&mut Random(index), spec, other);
                sent["metadata"]["labels"]["new"] = "label".into();
                let stored = kinds::convert(&sent, &kind.api_version(hub)).unwrap();
                let what = format!("{} {older} #{index}", kind.kind);
                assert_same(&what, &object["status"], &stored["status"]);
                assert_eq!(stored["metadata"]["labels"]["new"], "label");
                assert!(
                    capwasm_object::meta::annotation(&stored, DATA_ANNOTATION).is_none(),
                    "{what}: it is not stored"
                );
            }
        }
    });
}

#[test]
fn a_new_label_changes_nothing_else() {
    for_every_kind(|kind| {
        let (hub, _) = kind.hub();
        for (older, _) in &kind.versions[1..] {
            for index in 0..40 {
                let mut covered = BTreeSet::new();
                let mut object = generator(&kind.kind, hub, index, &mut covered).object(kind, hub);
                let mut sent = kinds::convert(&object, &kind.api_version(older)).unwrap();
                for object in [&mut object, &mut sent] {
                    object["metadata"]["labels"]["new"] = "label".into();
                }
                let stored = kinds::convert(&sent, &kind.api_version(hub)).unwrap();
                assert_same(&format!("{} {older} #{index}", kind.kind), &object, &stored);
            }
        }
    });
}

/// Removes some fields of the spec and of what is right in it.
fn thin(random: &mut Random, spec: &mut Value, depth: usize) {
    // A list that was a map has other places when an entry is missing.
    const MAPS: [&str; 4] = ["failureDomains", "extraArgs", "kubeletExtraArgs", "matchLabels"];
    let Value::Object(map) = spec else { return };
    map.retain(|key, child| {
        if depth < 3 && !MAPS.contains(&key.as_str()) {
            thin(random, child, depth + 1);
        }
        !random.chance(30)
    });
}

/// Whether everything in `part` stands in `whole`.
fn additions(at: &str, part: &Value, whole: &Value, found: &mut Vec<String>) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (key, child) in part {
                additions(&format!("{at}.{key}"), child, whole.get(key).unwrap_or(&Value::Null), found);
            }
        }
        (part, whole) if part == whole || part.is_null() => {}
        _ => found.push(format!("{at}: {part}")),
    }
}

/// What server-side apply needs: an applied configuration is part of an object.
#[test]
fn what_is_missing_in_a_part_of_an_object_stays_missing() {
    for_every_kind(|kind| {
        let (hub, _) = kind.hub();
        for (older, _) in &kind.versions[1..] {
            for index in 0..60 {
                let mut covered = BTreeSet::new();
                let whole = generator(&kind.kind, older, index, &mut covered).object(kind, older);
                let mut part = whole.clone();
                thin(&mut Random(index), &mut part["spec"], 0);
                let [part, whole] =
                    [part, whole].map(|object| kinds::convert(&object, &kind.api_version(hub)).unwrap());
                let mut found = Vec::new();
                additions("spec", &bare(&part)["spec"], &bare(&whole)["spec"], &mut found);
                // v1beta1 takes it for granted, v1beta2 wants it said.
                found.retain(|line| !line.ends_with("rollout.strategy.type: \"RollingUpdate\""));
                // v1beta1 may name a flavor twice: without its id, the name counts.
                found.retain(|line| !line.contains("flavor.filter: "));
                assert!(found.is_empty(), "{} {older} #{index}: {found:#?}", kind.kind);
            }
        }
    });
}
