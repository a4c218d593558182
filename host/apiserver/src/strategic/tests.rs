#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::{StrategicError, merge};
use crate::schema::of_kind;

#[test]
fn patches_merge_by_the_keys_of_the_schema() {
    let pod = |spec: Value| json!({"spec": spec});
    let table: Vec<(&str, Value, Value, Value)> = vec![
        (
            "maps merge and null deletes",
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
            json!({"metadata": {"labels": {"a": null, "c": "3"}}}),
            json!({"metadata": {"labels": {"b": "2", "c": "3"}}}),
        ),
        (
            "an item is found by its key",
            pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]})),
            pod(json!({"containers": [{"name": "b", "image": "2"}]})),
            pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]})),
        ),
        (
            "a new item is appended without directives and nulls",
            pod(json!({"containers": [{"name": "a"}]})),
            pod(json!({"containers": [{"name": "b", "image": null, "env": [{"name": "x", "$patch": "merge"}]}]})),
            pod(json!({"containers": [{"name": "a"}, {"name": "b", "env": [{"name": "x"}]}]})),
        ),
        (
            "an item is deleted",
            pod(json!({"containers": [{"name": "a"}, {"name": "b"}]})),
            pod(json!({"containers": [{"name": "a", "$patch": "delete"}]})),
            pod(json!({"containers": [{"name": "b"}]})),
        ),
        (
            "a list is replaced by directive",
            pod(json!({"containers": [{"name": "a"}, {"name": "b"}]})),
            pod(json!({"containers": [{"$patch": "replace"}, {"name": "c"}]})),
            pod(json!({"containers": [{"name": "c"}]})),
        ),
        (
            "a list without merge key is replaced",
            pod(json!({"containers": [{"name": "a", "args": ["1", "2"]}]})),
            pod(json!({"containers": [{"name": "a", "args": ["3"]}]})),
            pod(json!({"containers": [{"name": "a", "args": ["3"]}]})),
        ),
        (
            "a map is replaced by directive",
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}}),
            json!({"metadata": {"labels": {"b": "2"}}}),
        ),
        (
            "a map is emptied by directive",
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "delete"}}}),
            json!({"metadata": {"labels": {}}}),
        ),
        (
            "scalars are added once",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"finalizers": ["b", "c"]}}),
            json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
        ),
        (
            "scalars are deleted",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            json!({"metadata": {"finalizers": ["b"]}}),
        ),
        (
            "scalars are ordered",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$setElementOrder/finalizers": ["c", "a"], "finalizers": ["c"]}}),
            json!({"metadata": {"finalizers": ["c", "a", "b"]}}),
        ),
        (
            "items are ordered, others keep their place",
            pod(json!({"containers": [{"name": "server"}, {"name": "a"}, {"name": "b"}]})),
            pod(
                json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "1"}]}),
            ),
            pod(json!({"containers": [{"name": "server"}, {"name": "b"}, {"name": "a", "image": "1"}]})),
        ),
        (
            "an order without the list",
            pod(json!({"containers": [{"name": "a"}, {"name": "b"}]})),
            pod(json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})),
            pod(json!({"containers": [{"name": "b"}, {"name": "a"}]})),
        ),
        (
            "an order and a deletion",
            pod(json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]})),
            pod(
                json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "b", "$patch": "delete"}]}),
            ),
            pod(json!({"containers": [{"name": "c"}, {"name": "a"}]})),
        ),
        (
            "volumes retain only the source of the patch",
            pod(json!({"volumes": [{"name": "v", "emptyDir": {}}]})),
            pod(json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]})),
            pod(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})),
        ),
        (
            "ports merge by port",
            pod(json!({"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]})),
            pod(
                json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]}]}),
            ),
            pod(
                json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81}]}]}),
            ),
        ),
        (
            "conditions merge by type",
            json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}]}}),
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}]}}),
        ),
        (
            "a scalar takes the place of a map",
            pod(json!({"nodeName": {"odd": 1}})),
            pod(json!({"nodeName": "n"})),
            pod(json!({"nodeName": "n"})),
        ),
        (
            "a map takes the place of nothing",
            json!({}),
            json!({"metadata": {"labels": {"a": "1", "b": null}}}),
            json!({"metadata": {"labels": {"a": "1"}}}),
        ),
        (
            "an empty patch changes nothing",
            json!({"spec": {"nodeName": "n"}}),
            json!({}),
            json!({"spec": {"nodeName": "n"}}),
        ),
    ];
    let schema = of_kind("", "v1", "Pod").unwrap();
    for (name, live, patch, expected) in table {
        assert_eq!(merge(&live, &patch, schema), Ok(expected), "{name}");
    }
}

#[test]
fn patches_that_make_no_sense_are_refused() {
    let schema = of_kind("", "v1", "Pod").unwrap();
    let table = [
        (json!([]), StrategicError::NotAnObject),
        (json!({"$patch": "explode"}), StrategicError::Directive("explode".to_owned())),
        (json!({"$patch": 1}), StrategicError::Directive("1".to_owned())),
        (json!({"spec": {"containers": [{"image": "x"}]}}), StrategicError::MissingKey("name".to_owned())),
        (json!({"spec": {"containers": ["x"]}}), StrategicError::NotAnObjectItem("containers".to_owned())),
        (json!({"spec": {"$retainKeys": ["a"], "nodeName": "n"}}), StrategicError::NotRetained("nodeName".to_owned())),
        (json!({"spec": {"$retainKeys": 1}}), StrategicError::DirectiveValue("$retainKeys".to_owned())),
        (
            json!({"metadata": {"$setElementOrder/finalizers": "x"}}),
            StrategicError::DirectiveValue("$setElementOrder/finalizers".to_owned()),
        ),
    ];
    for (patch, error) in table {
        assert_eq!(merge(&json!({"spec": {"containers": []}}), &patch, schema), Err(error), "{patch}");
    }
}
