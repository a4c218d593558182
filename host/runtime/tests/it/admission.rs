//! `admission`: defaults and rules, from the object and the stored one alone.

use capwasm_contract::{Failure, Fault};
use capwasm_runtime::{Limits, PureError};
use serde_json::{Value, json};

use crate::support::Bench;

fn pool(admit: &str, placement: Value) -> String {
    json!({
        "apiVersion": "infrastructure.fixture.example/v1beta2", "kind": "FixturePool",
        "metadata": {"name": "p", "namespace": "mine", "annotations": {"fixture.example/admit": admit}},
        "spec": {"placement": placement}
    })
    .to_string()
}

#[tokio::test]
async fn defaults_are_filled_in_and_the_stored_object_is_at_hand() {
    let bench = Bench::new(Limits::default()).await;
    assert!(bench.provider.admits());
    let zone = async |old: Option<String>| {
        let reply = bench.provider.default_object(pool("zone", json!({"rack": "7"})), old).await.unwrap();
        let text = reply.answer.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["spec"]["placement"].take()
    };
    assert_eq!(zone(None).await, json!({"rack": "7", "zone": "z"}));
    assert_eq!(zone(Some(pool("", json!({"zone": "a"})))).await, json!({"rack": "7", "zone": "a"}));
}

#[tokio::test]
async fn an_object_is_refused_in_the_providers_words_or_let_through_with_warnings() {
    let bench = Bench::new(Limits::default()).await;
    let validate = async |object: String, old: Option<String>| {
        let reply = bench.provider.validate_object(object, old).await.unwrap();
        assert!(reply.stats.peak_memory > 0, "what it cost is told of a refusal too");
        reply.answer
    };
    let refused = async |object: String, old| {
        let problem = validate(object, old).await.unwrap_err();
        (problem.fault, problem.message)
    };
    let (a, b) = (pool("zone", json!({"zone": "a"})), pool("zone", json!({"zone": "b"})));
    assert_eq!(validate(a.clone(), Some(a.clone())).await.unwrap(), Vec::<String>::new());
    let (fault, message) = refused(b, Some(a)).await;
    assert!(fault == Fault::Invalid && message.contains("spec.placement.zone"), "{message}");
    assert_eq!(refused(pool("forbid", json!({})), None).await.0, Fault::Terminal);
    assert_eq!(validate(pool("warn", json!({})), None).await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_admission_that_fails_fails_alone_and_says_why() {
    let bench = Bench::new(Limits::default()).await;
    let error = async |admit: &str| bench.provider.default_object(pool(admit, json!({})), None).await.unwrap_err();
    assert!(matches!(error("act").await, PureError::Contract { problem, .. } if problem.contains("outcome")));
    let failure = async |admit: &str| match error(admit).await {
        PureError::Call(error) => error.failure,
        other => panic!("{other}"),
    };
    assert!(matches!(failure("panic").await, Failure::Trap { .. }));
    // On a busy machine the wall clock comes first.
    let stopped = failure("loop").await;
    assert!(matches!(stopped, Failure::Cpu { .. } | Failure::Wall { .. }), "its own limits are tight: {stopped}");
    assert!(bench.provider.default_object(pool("", json!({})), None).await.is_ok());
    bench.still_works().await;
}
