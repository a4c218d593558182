//! A recorded call replays with the same result and without a host; differences are reported.

use std::sync::Arc;
use std::time::Duration;

use capwasm_contract::Failure;
use capwasm_contract::descriptor::KindPattern;
use capwasm_contract::recording::{Ended, Request};
use capwasm_runtime::record::{self, Recorder, Recording, Rehearsal, Replay};
use capwasm_runtime::{Call, Capabilities, Grants, HttpClient, Limits, NamedEndpoint};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::Bench;

#[derive(Default)]
pub struct Kept {
    calls: Mutex<Vec<Recording>>,
    lost: Mutex<usize>,
}

impl Recorder for Kept {
    fn take(&self, recording: Recording) {
        self.calls.lock().push(recording);
    }

    fn lost(&self) {
        *self.lost.lock() += 1;
    }
}

/// All capabilities.
fn grants(address: std::net::SocketAddr) -> Grants {
    let any = || {
        ["ConfigMap", "Node", "Pod", "Secret"]
            .map(|kind| KindPattern { group: String::new(), kind: kind.into() })
            .to_vec()
    };
    let engine = NamedEndpoint::url(format!("http://{address}"));
    Grants {
        endpoints: [("engine".to_owned(), engine)].into(),
        reads: any(),
        writes: any(),
        workload_reads: any(),
        secrets: vec!["*".into()],
        namespaces: vec!["other".into()],
        pki: true,
        etcd: true,
        ..Grants::default()
    }
}

async fn recorded(bench: &Bench, spec: Value, grants: Grants) -> Recording {
    let kept = Arc::new(Kept::default());
    let call = Call { recorder: Some(kept.clone()), ..bench.call(spec, grants) };
    // How it ends is in the recording.
    let _ = bench.provider.call(call).await;
    let mut calls = kept.calls.lock();
    assert_eq!(calls.len(), 1);
    calls.remove(0)
}

/// The recording after writing and reading its file.
fn filed(recording: &Recording) -> Recording {
    record::read(&*record::to_json(recording).unwrap()).unwrap()
}

#[tokio::test]
async fn every_call_comes_to_the_same_again_from_its_file() {
    let limits = Limits { cpu_time_ms: 300, wall_time_ms: 1_500, memory_bytes: 16 << 20, ..Limits::default() };
    let bench = Bench::new(limits).await;
    let address = crate::http::tcp().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let http = |path: &str| json!({"do": "http", "method": "GET", "url": format!("http://engine.endpoint{path}")});
    // The calls, and how many requests each makes.
    let calls = [
        (json!({"do": "facts"}), 0),
        (json!({"do": "world"}), 0),
        (json!({"do": "get", "apiVersion": "v1", "kind": "ConfigMap", "name": "n"}), 1),
        (json!({"do": "get", "apiVersion": "v1", "kind": "ConfigMap", "namespace": "denied", "name": "n"}), 1),
        (json!({"do": "list", "apiVersion": "v1", "kind": "ConfigMap", "labels": "a=b"}), 1),
        (json!({"do": "workload-get", "apiVersion": "v1", "kind": "Node", "name": "n"}), 1),
        (json!({"do": "serving-certificate", "namespace": "kube-system", "name": "etcd-a", "port": 2379}), 1),
        (json!({"do": "etcd", "id": 1}), 3),
        (json!({"do": "secret", "name": "ca", "key": "tls.crt"}), 2),
        (json!({"do": "secret", "name": "missing-ca", "key": "tls.crt"}), 1),
        (json!({"do": "secret-in", "namespace": "other", "name": "ca", "key": "nothing"}), 2),
        (json!({"do": "bootstrap-data"}), 2),
        (http("/count"), 1),
        (
            json!({"do": "http", "method": "GET", "url": "http://engine.endpoint/count", "maxAge": 60_000, "times": 3}),
            3,
        ),
        (json!({"do": "http", "method": "GET", "url": "https://nowhere.example/", "insecure": true}), 1),
        (json!({"do": "keys", "count": 2}), 3),
        (json!({"do": "write", "object": object, "apiVersion": "v1", "kind": "Pod", "name": "p"}), 0),
        (json!({"do": "wait"}), 0),
        (json!({"do": "panic"}), 0),
        (json!({"do": "bomb"}), 0),
        (json!({"do": "huge-status"}), 0),
        (json!({"do": "loop"}), 0),
        (json!({"do": "sleep"}), 0),
    ];
    for (spec, requests) in calls {
        let recording = filed(&recorded(&bench, spec.clone(), grants(address)).await);
        assert_eq!(recording.tape.len(), requests, "{spec}");
        let replayed = bench.provider.replay(&recording, &Replay::Exact).await.unwrap();
        assert!(replayed.is_as_recorded(&recording), "{spec}: {replayed:?}\nrecorded {:?}", recording.ended);
        assert_eq!(replayed.requests, requests, "{spec}");
    }
}

#[tokio::test]
async fn a_call_that_ended_while_it_waited_ends_there_again_at_once() {
    let bench = Bench::new(Limits { wall_time_ms: 300, ..Limits::default() }).await;
    let address = crate::http::tcp().await;
    let spec = json!({"do": "http", "method": "GET", "url": "http://engine.endpoint/slow", "deadline": 60_000});
    let grants = grants(address);
    // Longer than the call may take; the client's own limit would answer otherwise.
    let client = HttpClient::new(&grants, &Limits { wall_time_ms: 60_000, ..Limits::default() }).unwrap();
    let kept = Arc::new(Kept::default());
    let mut call = Call { recorder: Some(kept.clone()), ..bench.call(spec, grants) };
    call.capabilities.http = Arc::new(client);
    bench.provider.call(call).await.unwrap_err();
    let recording = filed(&kept.calls.lock()[0]);
    assert!(matches!(recording.ended, Ended::Failed(Failure::Wall { .. })), "{:?}", recording.ended);
    assert_eq!(recording.tape[0].answer, None);
    let started = std::time::Instant::now();
    let replayed = bench.provider.replay(&recording, &Replay::Exact).await.unwrap();
    assert!(replayed.is_as_recorded(&recording), "{replayed:?}");
    assert!(started.elapsed() < Duration::from_secs(30), "it waited");
}

#[tokio::test]
async fn a_file_has_no_credential_of_an_endpoint_and_of_a_secret_only_what_was_revealed() {
    let bench = Bench::new(Limits::default()).await;
    let mut grants = grants(crate::http::tcp().await);
    grants.endpoints.values_mut().for_each(|engine| {
        engine.headers.insert("authorization".into(), "Bearer of-the-host".into());
    });
    let spec = json!({"do": "http", "method": "GET", "url": "http://engine.endpoint/"});
    // The server of the test says what it was sent.
    let recording = recorded(&bench, spec, grants.clone()).await;
    let written = String::from_utf8(record::to_json(&recording).unwrap()).unwrap();
    assert_eq!(written.matches("of-the-host").count(), 2, "by the answer, and the status made of it: {written}");
    let recording = recorded(&bench, json!({"do": "secret", "name": "ca", "key": "another"}), grants).await;
    let written = String::from_utf8(record::to_json(&recording).unwrap()).unwrap();
    assert!(!written.contains("tls.crt"), "{written}");
}

#[tokio::test]
async fn another_call_is_told_apart_by_its_first_other_request() {
    let bench = Bench::new(Limits::default()).await;
    let spec = json!({"do": "get", "apiVersion": "v1", "kind": "ConfigMap", "name": "before"});
    let recording = recorded(&bench, spec, grants(crate::http::tcp().await)).await;
    let changed =
        |to: &str| Recording { object: Arc::new(recording.object.replace("before", to)), ..recording.clone() };
    let replayed = bench.provider.replay(&changed("after"), &Replay::Exact).await.unwrap();
    let divergence = replayed.divergence.unwrap();
    assert_eq!(
        divergence.to_string(),
        "request 1: lookup.get v1/ConfigMap after was asked; recorded is lookup.get v1/ConfigMap before"
    );
    assert!(matches!(divergence.asked, Some(Request::LookupGet(_))));
    let quiet = Recording { object: Arc::new(recording.object.replace("\"get\"", "\"facts\"")), ..recording.clone() };
    let replayed = bench.provider.replay(&quiet, &Replay::Exact).await.unwrap();
    assert!(!replayed.is_as_recorded(&recording));
    assert_eq!(
        replayed.divergence.unwrap().to_string(),
        "request 1: the call ended; recorded is lookup.get v1/ConfigMap before"
    );
}

#[tokio::test]
async fn another_component_reads_live_what_is_not_recorded_and_has_no_effect() {
    let bench = Bench::new(Limits::default()).await;
    let address = crate::http::tcp().await;
    let get = |name: &str| json!({"do": "get", "apiVersion": "v1", "kind": "ConfigMap", "name": name});
    let recording = recorded(&bench, get("before"), grants(address)).await;
    let object = Arc::new(recording.object.replace("before", "after"));
    let other = Recording { object, ..recording };
    let call = bench.call(json!({}), Grants::default());
    let live = Some(Capabilities { http: Arc::new(HttpClient::denied()), ..call.capabilities });
    let with = |live| Replay::Rehearse(Rehearsal { live, ..Rehearsal::default() });
    let Ended::Replied { outcome, .. } =
        bench.provider.replay(&other, &with(live.clone())).await.unwrap().ended.unwrap()
    else {
        panic!("no reply")
    };
    assert!(outcome.status[0]["seen"]["ok"].as_str().unwrap().contains("after"), "{outcome:?}");
    let stopped = bench.provider.replay(&other, &with(None)).await.unwrap();
    assert!(stopped.ended.is_none() && stopped.divergence.is_some());

    let remove = recorded(&bench, json!({"do": "facts"}), grants(address)).await;
    let effect = Recording { object: Arc::new(remove.object.replace("facts", "etcd")), ..remove };
    let stopped = bench.provider.replay(&effect, &with(live)).await.unwrap();
    assert_eq!(stopped.divergence.unwrap().to_string(), "request 2: etcd.remove 0 was asked; it is not recorded");
}

#[tokio::test]
async fn a_tape_that_is_too_long_is_lost_and_the_call_is_not() {
    let limits =
        Limits { response_bytes: 32 << 20, result_bytes: 64 << 20, memory_bytes: 256 << 20, ..Limits::default() };
    let bench = Bench::new(limits).await;
    let spec = json!({"do": "http", "method": "GET", "url": "http://engine.endpoint/big", "times": 2});
    let kept = Arc::new(Kept::default());
    let call = Call { recorder: Some(kept.clone()), ..bench.call(spec, grants(crate::http::tcp().await)) };
    bench.provider.call(call).await.unwrap().answer.unwrap();
    assert_eq!((kept.calls.lock().len(), *kept.lost.lock()), (0, 1));
}

#[tokio::test]
async fn a_redacted_recording_has_no_secret_says_so_and_still_replays_where_it_can() {
    let bench = Bench::new(Limits::default()).await;
    let address = crate::http::tcp().await;
    let configuration = json!({"clouds": {"password": "p4ssw0rd-of-it", "tokenTTL": "15m-or-so"}}).to_string();
    let make = async |spec: Value| {
        let kept = Arc::new(Kept::default());
        let mut call = Call { recorder: Some(kept.clone()), ..bench.call(spec, grants(address)) };
        call.facts.configuration = configuration.clone();
        bench.provider.call(call).await.unwrap();
        kept.calls.lock().remove(0)
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"a": "plain-secret-text"}, "data": {"b": "ZW5jb2RlZC1zZWNyZXQ="}});
    let recordings = [
        (make(json!({"do": "keys", "count": 1})).await, vec!["PRIVATE KEY-----\\n"]),
        (
            make(json!({"do": "write", "object": secret})).await,
            vec!["plain-secret-text", "ZW5jb2RlZC1zZWNyZXQ", "encoded-secret"],
        ),
        (
            make(json!({"do": "secret-in", "namespace": "other", "name": "ca", "key": "tls.crt"})).await,
            vec!["pem of other"],
        ),
    ];
    for (recording, secrets) in recordings {
        let text = |recording: &Recording| String::from_utf8(record::to_json(recording).unwrap()).unwrap();
        let (before, redacted) = (text(&recording), record::redact(&recording).unwrap());
        let after = text(&redacted);
        assert!(before.contains("p4ssw0rd-of-it") && !after.contains("p4ssw0rd-of-it"), "{after}");
        assert!(after.contains("15m-or-so"), "{after}");
        for secret in secrets {
            assert!(!after.contains(secret), "{secret} is in {after}");
        }
        assert!(redacted.inexact && filed(&redacted).inexact);
        let replayed = bench.provider.replay(&redacted, &Replay::Exact).await.unwrap();
        assert!(replayed.divergence.is_none(), "{replayed:?}");
    }
}
