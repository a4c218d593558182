//! `conversion.convert`: the same answer every time, from the object alone.

use capwasm_contract::Failure;
use capwasm_runtime::{Limits, PureError};
use serde_json::{Value, json};

use crate::support::Bench;

const V1BETA1: &str = "infrastructure.fixture.example/v1beta1";
const V1BETA2: &str = "infrastructure.fixture.example/v1beta2";

fn pool(what: &str) -> String {
    json!({
        "apiVersion": V1BETA2, "kind": "FixturePool", "metadata": {"name": "p", "namespace": "mine"},
        "spec": {"do": what, "placement": {"zone": "a", "rack": "7"}}
    })
    .to_string()
}

async fn convert(bench: &Bench, objects: Vec<String>, to: &str) -> Result<Vec<Value>, PureError> {
    let converted = bench.provider.convert(objects, to).await?;
    assert!(converted.stats.peak_memory > 0 && converted.stats.duration > std::time::Duration::ZERO);
    Ok(converted.answer.unwrap().iter().map(|text| serde_json::from_str(text).unwrap()).collect())
}

#[tokio::test]
async fn objects_come_back_in_order_and_lose_nothing_on_the_way_there_and_back() {
    let bench = Bench::new(Limits::default()).await;
    assert!(bench.provider.converts());
    let older = convert(&bench, vec![pool(""), pool("other")], V1BETA1).await.unwrap();
    let seen: Vec<_> = older.iter().map(|object| (&object["apiVersion"], &object["spec"]["zone"])).collect();
    assert_eq!(seen, [(&json!(V1BETA1), &json!("a")), (&json!(V1BETA1), &json!("a"))]);
    assert_eq!(older[1]["spec"]["do"], "other");
    assert_eq!(older[0]["metadata"]["annotations"], json!({"fixture.example/rack": "7"}));
    let newer = convert(&bench, older.iter().map(Value::to_string).collect(), V1BETA2).await.unwrap();
    assert_eq!(newer[0]["spec"]["placement"], json!({"zone": "a", "rack": "7"}));
}

#[tokio::test]
async fn a_conversion_reads_nothing_and_is_the_same_every_time() {
    let bench = Bench::new(Limits::default()).await;
    let once = convert(&bench, vec![pool("read")], V1BETA1).await.unwrap();
    let again = convert(&bench, vec![pool("read")], V1BETA1).await.unwrap();
    assert_eq!(once, again);
    let seen: Value = serde_json::from_str(once[0]["metadata"]["annotations"]["seen"].as_str().unwrap()).unwrap();
    assert_eq!((&seen["now"], &seen["read"]["refused"]), (&json!(0), &json!("Refusal::Denied")));
    assert_eq!((&seen["world"]["files"], &seen["world"]["tcp"]), (&json!(0), &json!(false)));
}

#[tokio::test]
async fn a_conversion_that_fails_fails_alone_and_says_why() {
    let bench = Bench::new(Limits::default()).await;
    let error = async |what: &str| convert(&bench, vec![pool(what)], V1BETA1).await.unwrap_err();
    let refused = bench.provider.convert(vec![pool("refuse")], V1BETA1).await.unwrap();
    assert_eq!(refused.answer.unwrap_err().reason, "Unsayable");
    assert!(matches!(error("act").await, PureError::Contract { problem, .. } if problem.contains("outcome")));
    assert!(matches!(error("lose").await, PureError::Contract { problem, .. } if problem.contains("0 objects for 1")));
    let failure = async |what: &str| match error(what).await {
        PureError::Call(error) => error.failure,
        other => panic!("{other}"),
    };
    assert!(matches!(failure("panic").await, Failure::Trap { .. }));
    // On a busy machine the wall clock comes first.
    let stopped = failure("loop").await;
    assert!(matches!(stopped, Failure::Cpu { .. } | Failure::Wall { .. }), "its own limits are tight: {stopped}");
    assert!(convert(&bench, vec![pool("")], V1BETA1).await.is_ok());
    bench.still_works().await;
}

/// Others wait for the answer, and nothing happens meanwhile that the guest could wait for.
#[tokio::test]
async fn a_conversion_or_an_admission_that_sleeps_answers_at_once_and_finds_its_clock_put_forward() {
    let bench = Bench::new(Limits::default()).await;
    let converted = convert(&bench, vec![pool("sleep")], V1BETA1).await.unwrap();
    assert_eq!(converted[0]["metadata"]["annotations"]["slept"], "3600");
    let mut object: Value = serde_json::from_str(&pool("")).unwrap();
    object["metadata"]["annotations"] = json!({"fixture.example/admit": "sleep"});
    let defaulted = bench.provider.default_object(object.to_string(), None).await.unwrap().answer.unwrap();
    let defaulted: Value = serde_json::from_str(&defaulted).unwrap();
    assert_eq!(defaulted["metadata"]["annotations"]["slept"], "3600");
}
