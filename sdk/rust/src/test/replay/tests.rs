#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use std::panic::catch_unwind;

use serde_json::json;

use super::*;
use crate::provider::InfrastructureMachine;
use crate::{Algorithm, HttpRequest, MachineAnswer, Place};

/// Asks for a little of everything; `spec.lid` decides how it ends.
struct Boxes;

impl InfrastructureMachine for Boxes {
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem> {
        let token = cx.host.secret("cloud", "token")?;
        let answer = cx.host.http(
            &HttpRequest::new("PUT", "https://boxes.example/1").header("x-token", String::from_utf8_lossy(&token)),
        )?;
        let (public, _) = cx.host.new_signing_key(Algorithm::Ed25519)?;
        match object["spec"]["lid"].as_str() {
            Some("none") => panic!("a box needs a lid"),
            Some("more") => {
                cx.host.http(&HttpRequest::new("PUT", "https://boxes.example/1/lid"))?;
            }
            Some("waits") => return Err(Problem::waiting("NoLid", "somebody brings the lid")),
            Some("wrong") => return Err(Problem::invalid("BadLid", "no such lid")),
            _ => {}
        }
        cx.out.status(json!({"key": public}));
        cx.out.create("lid", Place::Management, json!({"kind": "Lid"}));
        Ok(MachineAnswer { provisioned: answer.status == 200, ..MachineAnswer::default() })
    }

    fn deprovision(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
        Ok(true)
    }
}

/// What the host writes for such a call.
fn recording(lid: &str, ended: Value) -> Value {
    let secret = json!({"named": {"namespace": null, "name": "cloud"}});
    let put = json!({
        "method": "PUT", "url": "https://boxes.example/1", "headers": [["x-token", "t0p"]], "body": {"text": ""}});
    let object = json!({"kind": "Box", "metadata": {"name": "b"}, "spec": {"lid": lid}});
    json!({
        "format": 1, "function": "infrastructure-machine.provision", "object": object.to_string(),
        "facts": {"nowMs": 7, "attempt": 2, "id": "i", "configuration": "", "related": {}, "results": []},
        "tape": [
            {"call": "secrets.open", "with": secret, "answer": {"given": "done"}},
            {"call": "secrets.reveal", "with": {"secret": secret, "key": "token"}, "answer": {"given": {"bytes": {"text": "t0p"}}}},
            {"call": "http.send", "with": put, "answer": {"given": {"response": {"status": 200, "headers": [], "body": {"text": ""}}}}},
            {"call": "pki.new-signing-key", "with": {"algorithm": "ed25519"}, "answer": {"given": {"keys": ["public", "private"]}}},
        ],
        "ended": ended,
    })
}

fn run_it(recording: &Value) -> Replay {
    let name = format!("capwasm-replay-{}-{:p}.json", std::process::id(), recording);
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, recording.to_string()).unwrap();
    let replay = run(&file, "infrastructure_machine", infrastructure_machine::<Boxes>);
    std::fs::remove_file(&file).unwrap();
    replay
}

fn trapped() -> Value {
    json!({"failed": {"trap": {"message": "unreachable", "backtrace": [], "stderr": "a box needs a lid"}}})
}

fn fails(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *catch_unwind(check).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn a_recorded_trap_fails_until_it_is_mended() {
    let still = fails(|| drop(run_it(&recording("none", trapped())).no_longer_fails()));
    assert!(still.contains("a box needs a lid"), "{still}");
    for mended in ["closed", "more", "waits"] {
        run_it(&recording(mended, trapped())).no_longer_fails();
    }
    let otherwise = fails(|| drop(run_it(&recording("wrong", trapped())).no_longer_fails()));
    assert!(otherwise.contains("BadLid"), "{otherwise}");
}

#[test]
fn a_recorded_answer_is_held_against_what_the_code_answers_now() {
    let replied = |status: &str| {
        let answer = json!({"Ok": {"machine": {
            "provisioned": true, "providerId": null, "addresses": [], "failureDomain": null}}});
        let create = json!({"create": {"key": "lid", "place": "management", "object": {"kind": "Lid"}}});
        json!({"replied": {"answer": answer, "outcome": {
            "status": [{"key": status}], "own": [], "conditions": [], "events": [], "operations": [create],
            "wakeAfter": null, "wakeWhenApplied": false}}})
    };
    let outcome = run_it(&recording("closed", replied("public"))).as_recorded();
    assert_eq!(outcome.operations.len(), 1);
    let differs = fails(move || drop(run_it(&recording("closed", replied("another"))).as_recorded()));
    assert!(differs.contains("the outcome (left) is not the recorded one"), "{differs}");
}

#[test]
fn another_request_than_the_recorded_one_is_told() {
    let mut other = recording("closed", trapped());
    other["tape"][2]["with"]["url"] = json!("https://boxes.example/2");
    let differs = fails(move || drop(run_it(&other).no_longer_fails()));
    assert!(
        differs.contains("http.send PUT https://boxes.example/1") && differs.contains("past_the_end: false"),
        "{differs}"
    );
}

#[test]
fn what_is_no_recording_of_this_interface_is_refused() {
    let mut other = recording("closed", trapped());
    other["function"] = json!("bootstrap.generate");
    let refused = fails(move || drop(run_it(&other).no_longer_fails()));
    assert!(refused.contains("is of another interface"), "{refused}");
    let mut other = recording("closed", trapped());
    other["format"] = json!(2);
    let refused = fails(move || drop(run_it(&other).no_longer_fails()));
    assert!(refused.contains("this kit reads format 1"), "{refused}");
}
