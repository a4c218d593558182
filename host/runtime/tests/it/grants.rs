//! Every capability is denied until it is granted, and the refusal names the grant.

use capwasm_api::descriptor::KindPattern;
use capwasm_runtime::{Grants, Limits, Operation};
use serde_json::{Value, json};

use crate::support::Bench;

fn kinds(group: &str, kind: &str) -> Vec<KindPattern> {
    vec![KindPattern { group: group.into(), kind: kind.into() }]
}

#[tokio::test]
async fn reads_need_a_grant() {
    let bench = Bench::new(Limits::default()).await;
    let pod = json!({"do": "get", "apiVersion": "v1", "kind": "Pod", "name": "p", "labels": "a=b"});
    let changed = |key: &str, value: &str| {
        let mut spec = pod.clone();
        spec[key] = json!(value);
        spec
    };
    let reads = || Grants { reads: kinds("", "Pod"), ..Grants::default() };
    let workload = || Grants { workload_reads: kinds("", "Pod"), ..Grants::default() };
    let denied = |message: &str| json!({"refused": "Refusal::Denied", "reason": "NotGranted", "message": message});
    let pod_denied = |grant: &str| denied(&format!("Pod of group \"\" is not granted; add it to spec.grants.{grant}"));
    let found =
        |namespace: Value| json!({"ok": json!({"kind": "Pod", "name": "p", "namespace": namespace}).to_string()});
    let rows = [
        ("get", pod.clone(), Grants::default(), pod_denied("reads")),
        ("get with the workload's grant", pod.clone(), workload(), pod_denied("reads")),
        ("get granted", pod.clone(), reads(), found(Value::Null)),
        ("own namespace", changed("namespace", "mine"), reads(), found(json!("mine"))),
        (
            "another namespace",
            changed("namespace", "other"),
            reads(),
            denied("namespace \"other\" is not the object's own; grant it in spec.grants.namespaces"),
        ),
        ("list", changed("do", "list"), Grants::default(), pod_denied("reads")),
        ("list granted", changed("do", "list"), reads(), json!({"ok": ["Pod a=b"]})),
        ("workload", changed("do", "workload-get"), reads(), pod_denied("workloadReads")),
        ("workload granted", changed("do", "workload-get"), workload(), found(Value::Null)),
    ];
    for (name, spec, grants, expected) in rows {
        assert_eq!(bench.seen(spec, grants).await, expected, "{name}");
    }
}

#[tokio::test]
async fn secrets_need_a_grant_by_name_and_bootstrap_data_does_not() {
    let bench = Bench::new(Limits::default()).await;
    let secret = |name: &str, key: &str| json!({"do": "secret", "name": name, "key": key});
    let granted = || Grants { secrets: vec!["*-ca".into()], ..Grants::default() };
    let refusal = |seen: Value| seen["refused"].clone();
    assert_eq!(refusal(bench.seen(secret("c-ca", "tls.crt"), Grants::default()).await), "Refusal::Denied");
    assert_eq!(refusal(bench.seen(secret("other", "tls.crt"), granted()).await), "Refusal::Denied");
    assert_eq!(refusal(bench.seen(secret("missing-ca", "tls.crt"), granted()).await), "Refusal::NotFound");
    assert_eq!(refusal(bench.seen(secret("c-ca", "tls.key"), granted()).await), "Refusal::NotFound");
    assert_eq!(bench.seen(secret("c-ca", "tls.crt"), granted()).await, json!({"ok": b"pem"}));
    let own = bench.seen(json!({"do": "bootstrap-data"}), Grants::default()).await;
    assert_eq!(own, json!({"ok": b"#!"}));
}

#[tokio::test]
async fn keys_need_a_grant() {
    let bench = Bench::new(Limits::default()).await;
    let seen = bench.seen(json!({"do": "keys"}), Grants::default()).await;
    assert_eq!(seen["error"]["refused"], "Refusal::Denied");
    let seen = bench.seen(json!({"do": "keys"}), Grants { pki: true, ..Grants::default() }).await;
    assert_eq!((&seen["made"], seen["token"].as_str().unwrap().len()), (&json!(1), 16));
}

#[tokio::test]
async fn writes_without_a_grant_fail_in_their_place() {
    let bench = Bench::new(Limits::default()).await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let spec = json!({"do": "write", "object": object, "apiVersion": "v1", "kind": "Node", "name": "n"});
    let operations = async |grants| bench.granted(spec.clone(), grants).await.unwrap().outcome.operations;
    let refused = |operation: &Operation| matches!(operation, Operation::Refused { .. });
    assert!(operations(Grants::default()).await.iter().all(refused));
    let granted = Grants { writes: kinds("", "ConfigMap"), workload_writes: kinds("", "Node"), ..Grants::default() };
    let operations = operations(granted).await;
    assert!(matches!(&operations[0], Operation::Create { key, .. } if key == "one"), "{operations:?}");
    assert!(matches!(&operations[1], Operation::Delete { key, .. } if key == "two"), "{operations:?}");
}
