#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::json;

use super::super::{default, of_kind, prune, validate};
use crate::builtin::{kinds, message_of};
use crate::tree::Tree;

#[test]
fn every_kind_has_a_schema_and_a_message() {
    for row in kinds() {
        let schema = of_kind(row.group, row.version, row.kind).unwrap_or_else(|| panic!("{}", row.kind));
        assert!(schema.property("metadata").is_some(), "{}", row.kind);
        assert!(schema.property("status").is_some() || !row.has_status, "{}", row.kind);
        let api_version = format!("{}/{}", row.group, row.version);
        assert!(message_of(api_version.trim_start_matches('/'), row.kind).is_some(), "{}", row.kind);
    }
    assert!(message_of("coordination.k8s.io/v1", "DeleteOptions").is_some());
    assert!(message_of("v2", "Namespace").is_none());
}

#[test]
fn typed_objects_are_pruned_defaulted_and_checked() {
    let schema = of_kind("", "v1", "Service").unwrap();
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "a", "labels": null, "odd": 1},
        "spec": {"ports": [{"port": 80, "targetPort": "http", "odd": true}], "selector": {"a": "b"}},
        "more": {},
    });
    let mut dropped = prune(schema, &mut service);
    dropped.sort();
    assert_eq!(dropped, ["metadata.odd", "more", "spec.ports[0].odd"]);
    default(schema, &mut service, &Tree::default()).unwrap();
    assert_eq!(service["spec"]["ports"], json!([{"port": 80, "targetPort": "http", "protocol": "TCP"}]));
    assert_eq!(service["metadata"], json!({"name": "a"}));
    assert_eq!(validate(schema, &service, None), []);
    service["spec"]["ports"][0]["port"] = json!("x");
    let errors = validate(schema, &service, None);
    assert_eq!(
        errors[0].to_string(),
        "spec.ports[0].port: Invalid value: \"string\": spec.ports[0].port in body must be of type integer: \"string\""
    );
}

#[test]
fn a_crd_keeps_schemas_of_any_depth() {
    let schema = of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition").unwrap();
    let mut crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"deep": {"default": null, "type": "string"}}}}}}}]}});
    let before = crd.clone();
    assert_eq!(prune(schema, &mut crd), Vec::<String>::new());
    assert_eq!(crd, before);
}

#[test]
fn what_real_manifests_contain_is_accepted() {
    let table = [
        (
            "a claim that names its type",
            "apps",
            "StatefulSet",
            json!({"spec": {"selector": {}, "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}}]}}),
        ),
        (
            "a variable twice",
            "",
            "Pod",
            json!({"spec": {"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}, {"name": "x", "value": "2"}]}]}}),
        ),
        (
            "a quantity as a number",
            "",
            "Pod",
            json!({"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}]}}),
        ),
        (
            "null for nothing",
            "",
            "Service",
            json!({"metadata": {"creationTimestamp": null}, "spec": {"ports": null, "selector": null}, "status": {"loadBalancer": {}}}),
        ),
        (
            "a port by name or number",
            "",
            "Service",
            json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8081}]}}),
        ),
        (
            "a role without rules",
            "rbac.authorization.k8s.io",
            "ClusterRole",
            json!({"metadata": {"name": "a"}, "rules": null}),
        ),
        (
            "a binding without group",
            "rbac.authorization.k8s.io",
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "a"}, "subjects": [{"kind": "ServiceAccount", "name": "a"}]}),
        ),
    ];
    for (name, group, kind, mut object) in table {
        let schema = of_kind(group, "v1", kind).unwrap();
        assert_eq!(prune(schema, &mut object), Vec::<String>::new(), "{name}");
        default(schema, &mut object, &Tree::default()).unwrap();
        assert_eq!(validate(schema, &object, None), [], "{name}");
    }
}

#[test]
fn what_no_server_takes_is_refused() {
    let table = [
        (
            "a container without a name",
            "",
            "Pod",
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "spec.containers[0].name: Required value",
        ),
        (
            "a deployment without selector",
            "apps",
            "Deployment",
            json!({"spec": {"replicas": 1}}),
            "spec.selector: Required value",
        ),
        (
            "data that is not base64",
            "",
            "Secret",
            json!({"data": {"a": "!"}}),
            "data.a: Invalid value: \"!\": data.a in body must be of type byte: \"!\"",
        ),
        (
            "labels that are numbers",
            "",
            "ConfigMap",
            json!({"metadata": {"labels": {"a": 1}}}),
            "metadata.labels.a: Invalid value: \"integer\": metadata.labels.a in body must be of type string: \"integer\"",
        ),
    ];
    for (name, group, kind, object, expected) in table {
        let schema = of_kind(group, "v1", kind).unwrap();
        let errors: Vec<String> = validate(schema, &object, None).iter().map(ToString::to_string).collect();
        assert_eq!(errors, [expected], "{name}");
    }
}
