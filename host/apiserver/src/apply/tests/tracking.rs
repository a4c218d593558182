#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::super::{ApplyError, Conflict};
use super::{apply, object, owners, schema, update};

const NOW: &str = "2026-02-02T02:02:02Z";
const LATER: &str = "2026-03-03T03:03:03Z";

#[test]
fn applying_the_same_again_changes_nothing() {
    let schema = schema();
    let wanted = object(json!({"a": "1", "keyed": [{"name": "x", "value": 1}], "set": ["s"], "map": {"k": "v"}}));
    let first = apply(None, &wanted, Some(&schema), "m", false, None, NOW).unwrap();
    let second = apply(Some(&first), &wanted, Some(&schema), "m", false, None, LATER).unwrap();
    assert_eq!(first, second);
    let mut third = second.clone();
    update(Some(&second), &mut third, Some(&schema), "u", None, LATER);
    assert_eq!(third, second);
}

#[test]
fn what_was_there_before_belongs_to_an_owner_of_its_own() {
    let schema = schema();
    let live = object(json!({"a": "1", "b": "1"}));
    let result = apply(Some(&live), &object(json!({"a": "1"})), Some(&schema), "m", false, None, NOW).unwrap();
    assert_eq!(
        owners(&result),
        [
            ("m/Apply".to_owned(), json!({"f:a": {}})),
            ("before-first-apply/Update".to_owned(), json!({".": {}, "f:a": {}, "f:b": {}}))
        ]
    );
    let conflict = apply(Some(&live), &object(json!({"a": "2"})), Some(&schema), "m", false, None, NOW).unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using x/v1: .spec.a"
    );
}

#[test]
fn conflicts_are_told_as_kubectl_shows_them() {
    let schema = schema();
    let mut live = apply(None, &object(json!({"a": "1", "b": "1"})), Some(&schema), "m", false, None, NOW).unwrap();
    for (manager, subresource, spec) in [
        ("kubectl", None, json!({"a": "1", "b": "1", "map": {"x": "1"}})),
        ("kubelet", Some("scale"), json!({"a": "1", "b": "1", "map": {"x": "1"}, "set": ["s"]})),
    ] {
        let mut new = object(spec);
        new["metadata"] = live["metadata"].clone();
        update(Some(&live), &mut new, Some(&schema), manager, subresource, NOW);
        live = new;
    }
    let table = [
        ("who applied is no more than a name", json!({"a": "2"}), "1 conflict: conflict with \"m\": .spec.a"),
        (
            "who wrote in another way did it through a version",
            json!({"map": {"x": "2"}}),
            "1 conflict: conflict with \"kubectl\" using x/v1: .spec.map.x",
        ),
        ("who owns another item does not mind", json!({"set": ["t"]}), ""),
        (
            "fields stand below their writer",
            json!({"a": "2", "b": "2"}),
            "2 conflicts: conflicts with \"m\":\n- .spec.a\n- .spec.b",
        ),
        (
            "writers stand in order",
            json!({"b": "2", "map": {"x": "2"}}),
            "2 conflicts: conflicts with \"kubectl\" using x/v1:\n- .spec.map.x\nconflicts with \"m\":\n- .spec.b",
        ),
    ];
    for (name, spec, expected) in table {
        let told = apply(Some(&live), &object(spec), Some(&schema), "o", false, None, LATER).err();
        let told = told.map_or_else(String::new, |error| error.to_string().replace("Apply failed with ", ""));
        assert_eq!(told, expected, "{name}");
    }
    let conflict = Conflict {
        manager: "kubelet".to_owned(),
        api_version: "v1".to_owned(),
        subresource: "status".to_owned(),
        field: ".status".to_owned(),
    };
    assert_eq!(conflict.to_string(), "conflict with \"kubelet\" with subresource \"status\" using v1");
}

#[test]
fn untracked_objects_stay_untracked_by_updates_and_can_be_reset() {
    let schema = schema();
    let live = object(json!({"a": "1"}));
    let mut new = object(json!({"a": "2"}));
    update(Some(&live), &mut new, Some(&schema), "u", None, NOW);
    assert_eq!(new.pointer("/metadata/managedFields"), None);
    let tracked = apply(None, &object(json!({"a": "1"})), Some(&schema), "m", false, None, NOW).unwrap();
    for reset in [json!([]), json!([{}])] {
        let mut new = tracked.clone();
        new["metadata"]["managedFields"] = reset;
        update(Some(&tracked), &mut new, Some(&schema), "u", None, NOW);
        assert_eq!(new.pointer("/metadata/managedFields"), None);
    }
}

#[test]
fn a_client_that_leaves_managed_fields_out_keeps_them_and_may_rewrite_them() {
    let schema = schema();
    let live = apply(None, &object(json!({"a": "1"})), Some(&schema), "m", false, None, NOW).unwrap();
    let mut without = object(json!({"a": "1", "b": "2"}));
    update(Some(&live), &mut without, Some(&schema), "u", None, LATER);
    assert_eq!(
        owners(&without),
        [("m/Apply".to_owned(), json!({"f:a": {}})), ("u/Update".to_owned(), json!({"f:b": {}}))]
    );
    let mut rewritten = live.clone();
    rewritten["metadata"]["managedFields"][0]["manager"] = json!("renamed");
    update(Some(&live), &mut rewritten, Some(&schema), "u", None, LATER);
    assert_eq!(owners(&rewritten)[0].0, "renamed/Apply");
    let mut broken = live.clone();
    broken["metadata"]["managedFields"] = json!([{"operation": "Sneeze"}]);
    update(Some(&live), &mut broken, Some(&schema), "u", None, LATER);
    assert_eq!(owners(&broken), owners(&live));
}

#[test]
fn identity_and_bookkeeping_belong_to_nobody() {
    let mut created = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {
        "name": "o", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": NOW,
        "labels": {"l": "1"}, "finalizers": ["f"], "ownerReferences": [{"uid": "q", "kind": "K", "name": "w", "apiVersion": "v1"}],
    }});
    update(None, &mut created, Some(&schema()), "u", None, NOW);
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(
        *fields,
        json!({"f:metadata": {
            "f:finalizers": {".": {}, "v:\"f\"": {}}, "f:labels": {".": {}, "f:l": {}}, "f:ownerReferences": {".": {}, "k:{\"uid\":\"q\"}": {}},
        }})
    );
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!(
        (&entry["fieldsType"], &entry["time"], &entry["apiVersion"]),
        (&json!("FieldsV1"), &json!(NOW), &json!("x/v1"))
    );
}

#[test]
fn the_status_subresource_owns_only_status() {
    let schema = schema();
    let live = apply(None, &object(json!({"a": "1"})), Some(&schema), "m", false, None, NOW).unwrap();
    let mut new = live.clone();
    new["status"] = json!({"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]});
    update(Some(&live), &mut new, Some(&schema), "m", Some("status"), LATER);
    let entry = &new["metadata"]["managedFields"][1];
    assert_eq!(entry["subresource"], "status");
    assert_eq!(
        entry["fieldsV1"],
        json!({"f:status": {".": {}, "f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}, "f:type": {}}}, "f:phase": {}}})
    );
    let mut applied = object(json!({}));
    applied["status"] = json!({"conditions": [{"type": "Other", "status": "True"}]});
    let applied = apply(Some(&new), &applied, Some(&schema), "s", false, Some("status"), LATER).unwrap();
    assert_eq!(
        applied["status"]["conditions"],
        json!([{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}])
    );
    assert_eq!(applied["spec"], json!({"a": "1"}));
}

#[test]
fn too_many_writers_become_one_ancient_owner() {
    let schema = schema();
    let mut live = apply(None, &object(json!({"map": {"own": "1"}})), Some(&schema), "m", false, None, NOW).unwrap();
    for index in 0..15 {
        let mut new = live.clone();
        new["spec"]["map"][format!("k{index:02}")] = json!("v");
        update(
            Some(&live),
            &mut new,
            Some(&schema),
            &format!("u{index:02}"),
            None,
            &format!("2026-02-02T02:03:{index:02}Z"),
        );
        live = new;
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 11);
    let ancient = owners.iter().find(|(name, _)| name == "ancient-changes/Update").unwrap();
    assert_eq!(
        ancient.1,
        json!({"f:map": {"f:k00": {}, "f:k01": {}, "f:k02": {}, "f:k03": {}, "f:k04": {}, "f:k05": {}}})
    );
}

#[test]
fn statements_that_do_not_fit_the_schema_are_refused() {
    let schema = schema();
    let table = [
        ("a repeated key", json!({"keyed": [{"name": "x"}, {"name": "x"}]})),
        ("an item without its key", json!({"keyed": [{"value": 1}]})),
        ("an item that is no object", json!({"keyed": ["x"]})),
        ("a repeated member", json!({"set": ["x", "x"]})),
    ];
    for (name, spec) in table {
        for live in [None, Some(object(json!({"a": "1"})))] {
            let result = apply(live.as_ref(), &object(spec.clone()), Some(&schema), "m", false, None, NOW);
            assert!(matches!(result, Err(ApplyError::Malformed(_))), "{name}: {result:?}");
        }
    }
    let mut stated = object(json!({}));
    stated["metadata"]["managedFields"] = json!([{"manager": "m"}]);
    assert_eq!(apply(None, &stated, Some(&schema), "m", false, None, NOW), Err(ApplyError::ManagedFieldsStated));
}

#[test]
fn a_live_list_with_repeated_keys_does_not_stop_an_apply() {
    let schema = schema();
    let mut live = object(json!({"keyed": [{"name": "x", "value": 1}, {"name": "x", "value": 2}, {"name": "y"}]}));
    update(None, &mut live, Some(&schema), "u", None, NOW);
    let result = apply(
        Some(&live),
        &object(json!({"keyed": [{"name": "y", "value": 3}]})),
        Some(&schema),
        "m",
        false,
        None,
        LATER,
    )
    .unwrap();
    let names: Vec<&Value> = result["spec"]["keyed"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["x", "x", "y"]);
}

#[test]
fn a_list_that_became_atomic_is_owned_as_a_whole_by_whoever_owned_an_item() {
    let schema = schema();
    let mut live = object(json!({"list": ["x"]}));
    live["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Apply", "apiVersion": "x/v1", "time": NOW, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:list": {"v:\"x\"": {}}}}}]);
    let mut new = live.clone();
    new["spec"]["a"] = json!("1");
    update(Some(&live), &mut new, Some(&schema), "u", None, LATER);
    assert_eq!(owners(&new)[0].1, json!({"f:list": {}}));
}

#[test]
fn without_a_schema_maps_are_granular_and_lists_are_not() {
    let live = apply(None, &object(json!({"p": {"q": [1], "r": 2}})), None, "m", false, None, NOW).unwrap();
    let result = apply(Some(&live), &object(json!({"p": {"q": [2]}})), None, "m", false, None, LATER).unwrap();
    assert_eq!(result["spec"], json!({"p": {"q": [2]}}));
}
