//! Every capability is denied until it is granted, and the refusal names the grant.

use capwasm_contract::Operation;
use capwasm_contract::descriptor::KindPattern;
use capwasm_runtime::{Grants, Limits};
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
        (
            "list of another namespace",
            json!({"do": "list", "apiVersion": "v1", "kind": "Pod", "namespace": "other"}),
            reads(),
            denied("namespace \"other\" is not the object's own; grant it in spec.grants.namespaces"),
        ),
        (
            "list of all namespaces",
            json!({"do": "list", "apiVersion": "v1", "kind": "Pod", "namespace": ""}),
            Grants { namespaces: vec!["*".into()], ..reads() },
            denied("namespace \"\" is not the object's own; grant it in spec.grants.namespaces"),
        ),
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
async fn a_secret_of_another_namespace_needs_both_the_name_and_the_namespace_granted() {
    let bench = Bench::new(Limits::default()).await;
    let secret = |namespace: &str, name: &str| json!({"do": "secret-in", "namespace": namespace, "name": name, "key": "tls.crt"});
    let granted = |namespaces: &[&str]| Grants {
        secrets: vec!["*-ca".into()],
        namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
        ..Grants::default()
    };
    let of = |namespace: &str| json!({"ok": format!("pem of {namespace}").as_bytes()});
    assert_eq!(bench.seen(secret("shared", "c-ca"), granted(&["shared"])).await, of("shared"));
    assert_eq!(bench.seen(secret("mine", "c-ca"), granted(&[])).await, of("mine"), "the object's own");
    let only_namespace = Grants { secrets: Vec::new(), ..granted(&["*"]) };
    let rows = [
        ("no namespace granted", secret("shared", "c-ca"), granted(&[]), "Denied"),
        ("another namespace granted", secret("shared", "c-ca"), granted(&["other"]), "Denied"),
        ("the name not granted", secret("shared", "clouds"), granted(&["shared"]), "Denied"),
        ("no name granted", secret("shared", "c-ca"), only_namespace, "Denied"),
        ("the empty namespace", secret("", "c-ca"), granted(&["*"]), "Denied"),
        ("a path for a namespace", secret("a/secrets/b?c=", "c-ca"), granted(&["*"]), "Invalid"),
    ];
    for (name, spec, grants, expected) in rows {
        let seen = bench.seen(spec, grants).await;
        assert_eq!(seen["refused"], format!("Refusal::{expected}"), "{name}: {seen}");
    }
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
async fn etcd_needs_a_grant_and_its_requests_are_counted() {
    let bench = Bench::new(Limits { requests: 3, ..Limits::default() }).await;
    let granted = || Grants { etcd: true, ..Grants::default() };
    let denied = bench.seen(json!({"do": "etcd", "id": 2}), Grants::default()).await;
    for act in ["members", "remove", "moveLeader"] {
        assert_eq!(denied[act]["refused"], "Refusal::Denied", "{act}");
    }
    let seen = bench.seen(json!({"do": "etcd", "id": 2}), granted()).await;
    assert_eq!(seen, json!({"members": {"ok": ["1 one leader"]}, "remove": {"ok": true}, "moveLeader": {"ok": true}}));
    let seen = bench.seen(json!({"do": "etcd", "id": 1}), granted()).await;
    assert_eq!(seen["remove"], json!({"refused": "Refusal::Invalid", "reason": "Leader", "message": "it leads"}));
    let few = Bench::new(Limits { requests: 2, ..Limits::default() }).await;
    let seen = few.seen(json!({"do": "etcd", "id": 2}), granted()).await;
    assert_eq!((&seen["remove"]["ok"], &seen["moveLeader"]["reason"]), (&json!(true), &json!("TooManyRequests")));
}

#[tokio::test]
async fn serving_certificates_need_the_grant_to_read_pods() {
    let bench = Bench::new(Limits { requests: 1, ..Limits::default() }).await;
    let spec = json!({"do": "serving-certificate", "namespace": "kube-system", "name": "p", "port": 6443});
    let seen = bench.seen(spec.clone(), Grants { reads: kinds("", "Pod"), ..Grants::default() }).await;
    assert_eq!(seen["refused"], "Refusal::Denied");
    let granted = Grants { workload_reads: kinds("", "Pod"), ..Grants::default() };
    assert_eq!(bench.seen(spec, granted).await, json!({"ok": "certificate of kube-system/p:6443"}));
}

/// What would become another path of the API server is refused before anybody is asked.
#[tokio::test]
async fn names_lead_to_nothing_but_the_object_that_they_name() {
    let bench = Bench::new(Limits::default()).await;
    let all = || Grants {
        reads: kinds("", "Pod"),
        writes: kinds("", "ConfigMap"),
        workload_reads: kinds("", "Pod"),
        workload_writes: kinds("", "Pod"),
        secrets: vec!["*-ca".into()],
        namespaces: vec!["*".into()],
        ..Grants::default()
    };
    let pod = |act: &str, namespace: &str, name: &str| json!({"do": act, "apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "port": 1});
    let rows = [
        pod("get", "mine", "p/log"),
        pod("get", "other/secrets/s?x=", "p"),
        pod("workload-get", "kube-system/secrets/s?x=", "p"),
        pod("workload-get", "kube-system", "../secrets/s"),
        pod("serving-certificate", "kube-system", "p/exec?command=id&x="),
        pod("list", "mine/secrets/s?x=", "p"),
        json!({"do": "get", "apiVersion": "/v1", "kind": "Pod", "name": "p"}),
        json!({"do": "list", "apiVersion": "/v1", "kind": "Pod"}),
        json!({"do": "workload-get", "apiVersion": "/v1", "kind": "Pod", "name": "p"}),
        json!({"do": "secret", "name": "../x-ca", "key": "tls.crt"}),
        json!({"do": "secret", "name": "admin?x=-ca", "key": "tls.crt"}),
    ];
    for spec in rows {
        let seen = bench.seen(spec.clone(), all()).await;
        assert_eq!((&seen["refused"], &seen["reason"]), (&json!("Refusal::Invalid"), &json!("BadName")), "{spec}");
    }
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "a/secrets/b?c="}});
    let spec = json!({"do": "write", "object": object, "apiVersion": "v1", "kind": "Pod", "namespace": "a", "name": "p/eviction"});
    let operations = bench.granted(spec, all()).await.unwrap().outcome.operations;
    assert!(operations.iter().all(|operation| matches!(operation, Operation::Refused { .. })), "{operations:?}");
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
