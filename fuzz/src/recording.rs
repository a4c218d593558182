//! Files of recorded calls: refused, or read; and then written, redacted and played without a word that is not in them.
//!
//! Input: a file, or choices that change a good one.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use capwasm_contract::recording::{Answered, Ended, Entry, Exchange, Given, Request, SecretRef};
use capwasm_contract::{Algorithm, Answer, EtcdMember, Facts, Function, ObjectRef, Outcome, Pair, Refused, Subject};
use capwasm_runtime::fuzzing::play;
use capwasm_runtime::record::{Recording, Rehearsal, Replay, read, redact, to_json};
use capwasm_runtime::{Grants, HttpResponse, Limits};
use serde_json::Value;

use crate::json::mutate;

const SECRET: &str = "the-secret-of-the-recording";

/// Words that mean something in a recording.
const WORDS: [&str; 24] = [
    "call",
    "with",
    "answer",
    "given",
    "refused",
    "text",
    "base64",
    "response",
    "number",
    "done",
    "tape",
    "ended",
    "replied",
    "failed",
    "outcome",
    "operations",
    "secs",
    "nanos",
    "http.send",
    "lookup.get",
    "secrets.open",
    "format",
    "AAAA",
    "{}",
];

pub fn run(data: &[u8]) {
    check(data);
    if let Ok(changed) = changed(&mut Unstructured::new(data)) {
        check(changed.to_string().as_bytes());
    }
}

fn changed(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut file = serde_json::from_slice(&to_json(&good()).unwrap()).unwrap();
    for _ in 0..u.int_in_range(0..=4)? {
        mutate(u, &mut file, &WORDS)?;
    }
    Ok(file)
}

fn check(file: &[u8]) {
    let recording = match read(file) {
        Ok(recording) => recording,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = to_json(&recording).unwrap();
    let again = read(&*written).unwrap();
    let mut expected = recording.clone();
    // They have credentials.
    std::sync::Arc::make_mut(&mut expected.grants).endpoints.clear();
    assert_eq!(again, expected, "it is read otherwise than written");
    assert!(recording.bytes() < 64 * file.len() + 4_096, "it is thought larger than its file can make it");
    let redacted = redact(&recording).unwrap();
    assert!(redacted.inexact && read(&*to_json(&redacted).unwrap()).unwrap() == redacted);
    assert_eq!(redacted.tape.len(), recording.tape.len());
    plays(&recording);
}

fn plays(recording: &Recording) {
    let mut requests: Vec<Request> = recording.tape.iter().map(|entry| entry.request.clone()).collect();
    let whole = recording.tape.iter().all(|entry| entry.answer.is_some());
    let exact = play(recording, &Replay::Exact, &requests);
    assert!(exact.is_as_recorded(recording) || !whole, "its own requests are not as recorded: {exact:?}");
    requests.reverse();
    for how in [Replay::Exact, Replay::Rehearse(Rehearsal::default())] {
        let played = play(recording, &how, &requests);
        assert!(played.ended.is_some() || played.divergence.is_some(), "it neither ended nor diverged");
        assert!(played.divergence.is_none_or(|divergence| !divergence.to_string().is_empty()));
    }
}

/// A recording with a request of most kinds.
pub fn good() -> Recording {
    let target = ObjectRef { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: "n".into() };
    let secret = SecretRef::Named { namespace: None, name: "ca".into() };
    let exchange = Exchange {
        method: "POST".into(),
        url: "http://engine.endpoint/x?token=1".into(),
        headers: vec![("x-auth-token".into(), SECRET.into())],
        body: b"{\"password\":\"hunter2\"}"[..].into(),
        trust: None,
        deadline_ms: Some(5),
    };
    let response =
        HttpResponse { status: 200, headers: vec![("set-cookie".into(), "a=b".into())], body: vec![0xff, 0xfe].into() };
    let subject = Subject {
        common_name: "cn".into(),
        organizations: vec!["system:masters".into()],
        dns_names: Vec::new(),
        ip_addresses: Vec::new(),
    };
    let pair =
        Pair { certificate_pem: "-----BEGIN CERTIFICATE-----".into(), key_pem: "-----BEGIN PRIVATE KEY-----".into() };
    let tape: Vec<(Request, Option<Answered>)> = vec![
        (Request::LookupGet(target.clone()), Some(Answered::Given(Given::Text("{\"kind\":\"ConfigMap\"}".into())))),
        (Request::WorkloadGet(target), Some(Answered::Refused(Refused::not_found("no such object")))),
        (Request::SecretOpen(secret.clone()), Some(Answered::Given(Given::Done))),
        (
            Request::SecretReveal { secret, key: "tls.key".into() },
            Some(Answered::Given(Given::Bytes(SECRET.as_bytes().to_vec()))),
        ),
        (Request::HttpSend(exchange.clone()), Some(Answered::Given(Given::Response(response)))),
        (Request::EtcdMembers, Some(Answered::Given(Given::Members(vec![EtcdMember::default()])))),
        (
            Request::NewAuthority { common_name: "ca".into(), algorithm: Algorithm::EcdsaP256, days: 1 },
            Some(Answered::Given(Given::Pair(pair.clone()))),
        ),
        (
            Request::IssueClient { authority: pair.clone(), subject, algorithm: Algorithm::Ed25519, days: 1 },
            Some(Answered::Given(Given::Keys("public".into(), "private".into()))),
        ),
        (Request::NotAfterMs { certificate_pem: pair.certificate_pem }, Some(Answered::Given(Given::Number(1)))),
        (Request::HttpRecent { request: exchange, max_age_ms: 1 }, None),
    ];
    Recording {
        inexact: false,
        provider: "example".into(),
        version: "0.1.0".into(),
        digest: format!("sha256:{}", "0".repeat(64)),
        host: "0.1.0".into(),
        function: Function::MachineProvision,
        object: Arc::new(r#"{"metadata":{"name":"m"},"spec":{"password":"hunter2"}}"#.to_owned()),
        facts: Facts {
            now_ms: 1_900_000_000_000,
            configuration: r#"{"token":"abc"}"#.into(),
            related: [("cluster".to_owned(), vec!["{}".to_owned()])].into(),
            results: vec![("a".into(), Err(Refused::denied("no")))],
            ..Facts::default()
        },
        seed: 1,
        limits: Limits::default(),
        grants: Arc::new(Grants::default()),
        tape: tape.into_iter().map(|(request, answer)| Entry { request, answer }).collect(),
        ended: Ended::Replied { answer: Ok(Answer::Gone(true)), outcome: Outcome::default() },
    }
}
