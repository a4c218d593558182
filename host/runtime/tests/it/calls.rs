//! Calls that end well, and what a guest sees of the world.

use std::collections::BTreeMap;
use std::time::Duration;

use capwasm_contract::{Answer, ClusterAnswer, Fault, Function, MachineAnswer, PoolAnswer, Refused};
use capwasm_runtime::{Grants, Limits};
use serde_json::json;

use crate::support::{Bench, NOW_MS, seen};

#[tokio::test]
async fn every_role_answers_in_its_own_type() {
    let bench = Bench::new(Limits::default()).await;
    let answer = async |function| {
        let call = capwasm_runtime::Call { function, ..bench.call(json!({"do": "facts"}), Grants::default()) };
        bench.provider.call(call).await.unwrap().answer.unwrap()
    };
    let Answer::Cluster(ClusterAnswer { provisioned: true, endpoint: Some(endpoint), failure_domains }) =
        answer(Function::ClusterProvision).await
    else {
        panic!("no cluster")
    };
    assert_eq!((endpoint.port, failure_domains[0].name.as_str()), (6443, "a"));
    assert!(matches!(
        answer(Function::MachineProvision).await,
        Answer::Machine(MachineAnswer { provisioned: true, .. })
    ));
    let Answer::Pool(PoolAnswer { provisioned: true, provider_ids, replicas: 2 }) =
        answer(Function::PoolProvision).await
    else {
        panic!("no pool")
    };
    assert_eq!(provider_ids, ["fixture:////m-0", "fixture:////m-1"]);
    let Answer::Bootstrap(Some(data)) = answer(Function::BootstrapGenerate).await else { panic!("no data") };
    assert_eq!((data.format.as_str(), data.value.len()), ("cloud-config", 16));
    let Answer::ControlPlane(state) = answer(Function::ControlPlaneReconcile).await else { panic!("no state") };
    assert_eq!((state.replicas, state.ready, state.available, state.up_to_date), (3, 2, 1, 3));
    assert_eq!(answer(Function::ControllerReconcile).await, Answer::Reconciled);
    for (function, gone) in [
        (Function::ControllerDelete, true),
        (Function::ClusterDeprovision, true),
        (Function::MachineDeprovision, true),
        (Function::PoolDeprovision, true),
        (Function::BootstrapRelease, true),
        (Function::ControlPlaneDelete, false),
    ] {
        assert_eq!(answer(function).await, Answer::Gone(gone));
    }
}

#[tokio::test]
async fn a_guest_is_told_the_facts_of_its_call() {
    let bench = Bench::new(Limits::default()).await;
    let mut call = bench.call(json!({"do": "facts"}), Grants::default());
    call.facts.attempt = 3;
    call.facts.configuration = r#"{"a":1}"#.into();
    call.facts.related = BTreeMap::from([("cluster".to_owned(), vec!["{}".to_owned()])]);
    call.facts.results = vec![("one".into(), Ok(())), ("two".into(), Err(Refused::denied("no")))];
    let reply = bench.provider.call(call).await.unwrap();
    assert_eq!(
        seen(&reply),
        json!({
            "now": NOW_MS, "attempt": 3, "id": "call-1", "configuration": r#"{"a":1}"#, "related": ["{}"], "unknown": [],
            "results": 2
        })
    );
    assert!(reply.stats.peak_memory > 0 && reply.stats.result_bytes > 0 && reply.stats.duration > Duration::ZERO);
}

#[tokio::test]
async fn a_problem_keeps_what_was_collected_before_it() {
    let bench = Bench::new(Limits::default()).await;
    let problem = bench.machine(json!({"do": "wait"})).await.unwrap().answer.unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "NotYet"));
}

#[tokio::test]
async fn the_world_is_the_same_in_every_call_and_there_is_nothing_in_it() {
    let bench = Bench::new(Limits::default()).await;
    let first = bench.seen(json!({"do": "world"}), Grants::default()).await;
    assert_eq!(first, bench.seen(json!({"do": "world"}), Grants::default()).await);
    assert_eq!(first["now"], NOW_MS);
    assert_eq!(first["elapsed"], 1_000);
    for nothing in ["env", "args", "files", "dns"] {
        assert_eq!(first[nothing], 0, "{nothing}");
    }
    assert_eq!((&first["write"], &first["tcp"]), (&json!(false), &json!(false)));

    let mut other = bench.call(json!({"do": "world"}), Grants::default());
    other.seed = 2;
    assert_ne!(seen(&bench.provider.call(other).await.unwrap())["random"], first["random"]);
}

#[tokio::test]
async fn calls_run_beside_each_other_up_to_the_limits() {
    let bench = Bench::new(Limits { concurrency: 4, ..Limits::default() }).await;
    let calls = (0..40).map(|_| bench.machine(json!({"do": "facts"})));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
}
