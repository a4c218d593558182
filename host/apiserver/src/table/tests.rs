#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::{Value, json};

use super::jsonpath::JsonPath;
use super::{IncludeObject, columns_for, human_duration, render};

const NOW: &str = "2026-01-10T00:00:00Z";

/// Column names with the cells of one object as text.
fn cells(group: &str, kind: &str, crd_columns: Option<&Value>, object: Value) -> Vec<(String, String)> {
    let columns = columns_for(group, "v1", kind, crd_columns);
    let table = render(&columns, &[object], NOW, true, IncludeObject::None);
    let names =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap().to_owned());
    let cells = table["rows"][0]["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned));
    names.zip(cells).collect()
}

#[test]
fn durations_read_as_kubectl_writes_them() {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3600;
    const DAY: i64 = 86_400;
    let table = [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (59, "59s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY + 3 * HOUR, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (800 * DAY, "2y70d"),
        (9 * 365 * DAY + DAY, "9y"),
    ];
    for (seconds, expected) in table {
        assert_eq!(human_duration(seconds), expected, "{seconds}");
    }
}

#[test]
fn paths_find_what_printer_columns_ask_for() {
    let object = json!({
        "spec": {"n": 3, "list": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "on": true},
        "metadata": {"annotations": {"x.io/y": "z"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
    });
    let table = [
        (".spec.n", vec![json!(3)]),
        ("{.spec.n}", vec![json!(3)]),
        ("$.spec.n", vec![json!(3)]),
        (".spec.none", vec![]),
        (".spec.list[0].k", vec![json!("a")]),
        (".spec.list[-1].k", vec![json!("b")]),
        (".spec.list[9].k", vec![]),
        (".spec.list[*].k", vec![json!("a"), json!("b")]),
        (".spec['n']", vec![json!(3)]),
        (".metadata.annotations.x\\.io/y", vec![json!("z")]),
        (".metadata.annotations['x.io/y']", vec![json!("z")]),
        (".metadata.annotations['x\\.io/y']", vec![json!("z")]),
        (".status.conditions[?(@.type==\"Ready\")].status", vec![json!("True")]),
        (".status.conditions[?(@.type=='Other')].status", vec![json!("False")]),
        (".status.conditions[?(@.type != 'Other')].status", vec![json!("True")]),
        (".spec.list[?(@.v>1)].k", vec![json!("b")]),
        (".spec.list[?(@.v<=1)].k", vec![json!("a")]),
        (".spec.list[?(@.v)].k", vec![json!("a"), json!("b")]),
        (".spec.list[?(@.k==1)].k", vec![]),
    ];
    for (path, expected) in table {
        let found: Vec<Value> =
            JsonPath::parse(path).unwrap_or_else(|| panic!("{path}")).find(&object).into_iter().cloned().collect();
        assert_eq!(found, expected, "{path}");
    }
    let nested = format!(".a{}", "[?(@.a".repeat(5000));
    for path in [
        "",
        ".",
        "..a",
        ".a[",
        ".a[x]",
        ".a[?(b)]",
        ".a[?(@.b==)]",
        ".a]",
        ".a\\",
        ".a['b",
        "[?(@.a[?(@.b)])]",
        &nested,
    ] {
        assert!(JsonPath::parse(path).is_none(), "{path:.40}");
    }
}

#[test]
fn custom_columns_print_by_their_type() {
    let columns = json!([
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Load", "type": "number", "jsonPath": ".status.load"},
        {"name": "Paused", "type": "boolean", "jsonPath": ".spec.paused"},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Odd", "type": "date", "jsonPath": ".spec.odd"},
        {"name": "All", "type": "string", "jsonPath": ".spec.names[*]", "priority": 1},
        {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
        {"name": "Gone", "type": "string", "jsonPath": ".spec.gone"},
        {"name": "Broken", "type": "string", "jsonPath": "..x"},
    ]);
    let object = json!({
        "metadata": {"name": "a", "creationTimestamp": "2026-01-09T00:00:00Z"},
        "spec": {"replicas": 3, "paused": true, "odd": "soon", "names": ["x", "y"], "map": {"k": 1}},
        "status": {"load": 0.5, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let found = cells("x.io", "Thing", Some(&columns), object);
    let expected = [
        ("Name", "a"),
        ("Ready", "True"),
        ("Replicas", "3"),
        ("Load", "0.5"),
        ("Paused", "true"),
        ("Since", "24h"),
        ("Odd", "<invalid>"),
        ("All", "x y"),
        ("Map", "{\"k\":1}"),
        ("Gone", "null"),
        ("Broken", "null"),
    ];
    assert_eq!(found, expected.map(|(name, cell)| (name.to_owned(), cell.to_owned())));
}

#[test]
fn built_in_kinds_print_as_kubectl_users_know_them() {
    let meta = |name: &str| json!({"name": name, "creationTimestamp": "2026-01-09T23:59:00Z"});
    let table: Vec<(&str, &str, Value, Vec<&str>)> = vec![
        ("", "Namespace", json!({"metadata": meta("a"), "status": {"phase": "Active"}}), vec!["a", "Active", "60s"]),
        (
            "",
            "Secret",
            json!({"metadata": meta("a"), "type": "Opaque", "data": {"x": "", "y": ""}}),
            vec!["a", "Opaque", "2", "60s"],
        ),
        (
            "",
            "ConfigMap",
            json!({"metadata": meta("a"), "data": {"x": ""}, "binaryData": {"y": ""}}),
            vec!["a", "2", "60s"],
        ),
        ("", "ServiceAccount", json!({"metadata": meta("a")}), vec!["a", "0", "60s"]),
        (
            "",
            "Event",
            json!({"metadata": meta("e"), "type": "Normal", "reason": "R", "message": " m\n", "involvedObject": {"kind": "Pod", "name": "p"}, "source": {"component": "c", "host": "h"}, "count": 4, "lastTimestamp": "2026-01-09T23:58:00Z"}),
            vec!["2m", "Normal", "R", "pod/p", "", "c, h", "m", "60s", "4", "e"],
        ),
        (
            "events.k8s.io",
            "Event",
            json!({"metadata": meta("e"), "type": "Normal", "reason": "R", "note": "m", "regarding": {"kind": "Pod", "name": "p"}, "reportingController": "c", "eventTime": "2026-01-09T23:58:00.000000Z"}),
            vec!["2m", "Normal", "R", "pod/p", "", "c", "m", "2m", "1", "e"],
        ),
        (
            "",
            "Node",
            json!({"metadata": {"name": "n", "creationTimestamp": "2026-01-09T23:59:00Z", "labels": {"node-role.kubernetes.io/control-plane": ""}}, "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.36.0"}, "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}),
            vec![
                "n",
                "Ready,SchedulingDisabled",
                "control-plane",
                "60s",
                "v1.36.0",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>",
            ],
        ),
        (
            "coordination.k8s.io",
            "Lease",
            json!({"metadata": meta("l"), "spec": {"holderIdentity": "me"}}),
            vec!["l", "me", "60s"],
        ),
        (
            "",
            "Service",
            json!({"metadata": meta("s"), "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}], "selector": {"a": "b"}}}),
            vec!["s", "LoadBalancer", "10.0.0.9", "<pending>", "80:30080/TCP,53/UDP", "60s", "a=b"],
        ),
        (
            "",
            "Pod",
            json!({"metadata": meta("p"), "spec": {"containers": [{}, {}], "nodeName": "n"}, "status": {"phase": "Running", "containerStatuses": [{"ready": true, "restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"finishedAt": "2026-01-09T23:59:30Z"}}}, {"ready": false, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
            vec!["p", "1/2", "CrashLoopBackOff", "3 (30s ago)", "60s", "<none>", "n", "<none>", "<none>"],
        ),
        (
            "",
            "Pod",
            json!({"metadata": {"name": "p", "deletionTimestamp": NOW}, "spec": {"containers": [{}]}, "status": {"phase": "Running"}}),
            vec!["p", "0/1", "Terminating", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"],
        ),
        (
            "",
            "Pod",
            json!({"metadata": meta("p"), "spec": {"initContainers": [{}, {}], "containers": [{}]}, "status": {"phase": "Pending", "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}, {"state": {"running": {}}}]}}),
            vec!["p", "0/1", "Init:1/2", "0", "60s", "<none>", "<none>", "<none>", "<none>"],
        ),
        (
            "apps",
            "Deployment",
            json!({"metadata": meta("d"), "spec": {"replicas": 3}, "status": {"readyReplicas": 1}}),
            vec!["d", "1/3", "0", "0", "60s"],
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            json!({"metadata": meta("c")}),
            vec!["c", "2026-01-09T23:59:00Z"],
        ),
        ("x.io", "Thing", json!({"metadata": meta("t")}), vec!["t", "60s"]),
    ];
    for (group, kind, object, expected) in table {
        let found: Vec<String> = cells(group, kind, None, object).into_iter().map(|(_, cell)| cell).collect();
        assert_eq!(found, expected, "{kind}");
    }
}

#[test]
fn cells_of_broken_objects_do_not_fail() {
    for group_and_kind in [
        ("", "Pod"),
        ("", "Node"),
        ("", "Service"),
        ("", "Event"),
        ("", "Secret"),
        ("", "Endpoints"),
        ("apps", "DaemonSet"),
    ] {
        for object in [
            json!(null),
            json!([]),
            json!({"metadata": 1, "spec": [], "status": "x", "data": 1}),
            json!({"status": {"containerStatuses": [1], "conditions": {}}}),
        ] {
            cells(group_and_kind.0, group_and_kind.1, None, object);
        }
    }
}

#[test]
fn rows_carry_what_was_asked_for() {
    let columns = columns_for("", "v1", "ConfigMap", None);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}});
    let row = |include| render(&columns, std::slice::from_ref(&object), NOW, false, include)["rows"][0].clone();
    assert_eq!(row(IncludeObject::None).get("object"), None);
    assert_eq!(row(IncludeObject::Object)["object"], object);
    assert_eq!(
        row(IncludeObject::Metadata)["object"],
        json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}})
    );
    let later = render(&columns, &[], NOW, false, IncludeObject::Metadata);
    assert_eq!((&later["columnDefinitions"], &later["rows"]), (&json!([]), &json!([])));
}
