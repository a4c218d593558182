#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use capwasm_api::conditions;
use capwasm_api::contract::Contract;
use capwasm_contract::descriptor::Role;

use capwasm_contract::{Answer, BootstrapData, Fault, MachineAnswer, ObjectRef, Outcome, Problem, Refused};
use capwasm_reconcile::{Action, Verdict};
use serde_json::{Value, json};

use super::testing::{cluster, kind, object, plan_of, write};
use super::{Ending, Waiting};

/// C15: nothing is claimed before the provider says so; C17: what latched stays.
#[test]
fn what_latched_is_never_taken_back() {
    let first = write(
        Role::InfrastructureCluster,
        Contract::V1Beta2,
        &object(),
        Ok(cluster(false, "10.0.0.1")),
        &Outcome::default(),
    );
    let mut first = first.desired.unwrap();
    assert_eq!(first.pointer("/status/initialization"), None);
    assert!(conditions::is_false(&first, "Ready"));
    first["status"]["initialization"] = json!({"provisioned": true});
    let second = write(
        Role::InfrastructureCluster,
        Contract::V1Beta2,
        &first,
        Ok(cluster(false, "10.9.9.9")),
        &Outcome::default(),
    );
    let second = second.desired.unwrap();
    assert_eq!(second["spec"]["controlPlaneEndpoint"]["host"], "10.0.0.1");
    assert_eq!(second["status"]["initialization"]["provisioned"], true);

    let mut machine = object();
    machine["spec"]["providerID"] = "docker:////first".into();
    let answer = Answer::Machine(MachineAnswer {
        provisioned: true,
        provider_id: Some("docker:////other".into()),
        addresses: vec![],
        failure_domain: None,
    });
    let machine = write(Role::InfrastructureMachine, Contract::V1Beta2, &machine, Ok(answer), &Outcome::default())
        .desired
        .unwrap();
    assert_eq!(machine["spec"]["providerID"], "docker:////first");
}

#[test]
fn a_problem_keeps_what_the_outcome_collected_and_decides_the_retry() {
    let outcome = Outcome {
        status: vec![json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": null}, "conditions": ["no"]})],
        own: vec![json!({"spec": {"size": 4, "other": 5}})],
        wake_after: Some(Duration::from_secs(3)),
        ..Outcome::default()
    };
    let problem = |fault| Problem { fault, reason: "Because".into(), message: "why".into(), retry_after: None };
    for (fault, backoff) in [
        (Fault::Waiting, None),
        (Fault::Transient, Some(true)),
        (Fault::Invalid, Some(false)),
        (Fault::Terminal, Some(false)),
    ] {
        let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Err(problem(fault)), &outcome);
        let found = match &plan.verdict {
            Verdict::Waiting => None,
            Verdict::Failed { backoff, .. } => Some(*backoff),
            Verdict::Done => panic!("{fault:?} is not done"),
        };
        assert_eq!(found, backoff, "{fault:?}");
        assert_eq!(plan.wake_after, Some(Duration::from_secs(3)));
        assert_eq!(
            plan.events.first().map(|event| event.reason.as_str()),
            Some("PathNotOwned"),
            "spec.other is not declared"
        );
        let desired = plan.desired.unwrap();
        assert_eq!((&desired["status"]["a"], &desired["spec"]), (&json!({"b": 1}), &json!({"size": 4})));
        let ready = conditions::get(&desired, "Ready").unwrap();
        assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("Because", "why"));
    }
}

#[test]
fn an_operation_that_is_not_granted_stops_those_after_it_and_holds_the_finalizer() {
    let create = |key: &str| capwasm_contract::Operation::Create {
        key: key.into(),
        place: capwasm_contract::Place::Management,
        object: json!({"metadata": {"name": "x"}}),
    };
    let refused = capwasm_contract::Operation::Refused { key: "b".into(), refused: Refused::denied("not yours") };
    let outcome = Outcome { operations: vec![create("a"), refused, create("c")], ..Outcome::default() };
    let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(Answer::Gone(true)), &outcome);
    assert_eq!(plan.operations.len(), 1);
    assert!(matches!(&plan.operations[0].action, Action::Create(object) if object["metadata"]["namespace"] == "ns"));
    assert!(plan.release.is_empty());
    assert!(matches!(&plan.verdict, Verdict::Failed { reason, .. } if reason == "NotGranted"));
}

#[test]
fn the_finalizer_goes_when_nothing_is_left() {
    let gone =
        write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(Answer::Gone(true)), &Outcome::default());
    assert_eq!(gone.release, ["thing.example"]);
    let not_yet =
        write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(Answer::Gone(false)), &Outcome::default());
    assert!(not_yet.release.is_empty() && not_yet.verdict == Verdict::Waiting);
}

#[test]
fn a_second_pass_over_its_own_result_changes_nothing() {
    for contract in [Contract::V1Beta1, Contract::V1Beta2] {
        let first =
            write(Role::InfrastructureCluster, contract, &object(), Ok(cluster(true, "h")), &Outcome::default())
                .desired
                .unwrap();
        let second = write(Role::InfrastructureCluster, contract, &first, Ok(cluster(true, "h")), &Outcome::default())
            .desired
            .unwrap();
        assert_eq!(first, second, "{contract:?}");
    }
}

/// CONTRACT: latched by the host, whatever the call ends with.
#[test]
fn a_guest_cannot_clear_or_change_what_latched() {
    let clear = json!({"ready": false, "initialized": null, "initialization": null, "dataSecretName": null});
    let own = json!({"spec": {"providerID": "other", "controlPlaneEndpoint": {"host": "other", "port": 1}}});
    let outcome = Outcome { status: vec![clear], own: vec![own], ..Outcome::default() };
    let mut held = object();
    held["spec"] = json!({"providerID": "first", "controlPlaneEndpoint": {"host": "h", "port": 6443}});
    held["status"] = json!({"ready": true, "initialized": true, "dataSecretName": "t",
        "initialization": {"provisioned": true, "dataSecretCreated": true, "controlPlaneInitialized": true}});
    let problem = || Problem { fault: Fault::Transient, reason: "R".into(), message: String::new(), retry_after: None };
    let endpoint = "/spec/controlPlaneEndpoint";
    for (role, contract, paths) in [
        (Role::InfrastructureCluster, Contract::V1Beta2, &[endpoint, "/status/initialization/provisioned"][..]),
        (Role::InfrastructureCluster, Contract::V1Beta1, &[endpoint, "/status/ready"]),
        (Role::InfrastructureMachine, Contract::V1Beta2, &["/spec/providerID", "/status/initialization/provisioned"]),
        (Role::Bootstrap, Contract::V1Beta2, &["/status/dataSecretName", "/status/initialization/dataSecretCreated"]),
        (Role::Bootstrap, Contract::V1Beta1, &["/status/dataSecretName", "/status/ready"]),
        (Role::ControlPlane, Contract::V1Beta2, &["/status/initialization/controlPlaneInitialized"]),
        (Role::ControlPlane, Contract::V1Beta1, &["/status/initialized"]),
    ] {
        let mut kind = kind(role);
        kind.own = vec!["spec".into()];
        for answer in [Err(problem()), Ok(Answer::Gone(false))] {
            let desired = plan_of(kind.clone(), contract, &held, Ending::Replied(&answer, &outcome)).desired.unwrap();
            for path in paths {
                assert_eq!(desired.pointer(path), held.pointer(path), "{role:?} {contract:?} {path}");
            }
        }
    }
}

#[test]
fn an_answer_that_rests_on_an_operation_that_was_refused_is_not_announced() {
    let data = || BootstrapData { format: "cloud-config".into(), value: b"#cloud-config".to_vec() };
    let refused = capwasm_contract::Operation::Refused { key: "a".into(), refused: Refused::denied("not yours") };
    let outcome = Outcome { operations: vec![refused], ..Outcome::default() };
    for (role, answer) in
        [(Role::InfrastructureCluster, cluster(true, "h")), (Role::Bootstrap, Answer::Bootstrap(Some(data())))]
    {
        let plan = write(role, Contract::V1Beta2, &object(), Ok(answer), &outcome);
        assert!(plan.operations.is_empty(), "{role:?}: what follows the refused one is not run");
        let desired = plan.desired.unwrap();
        assert_eq!(desired.pointer("/status/initialization"), None, "{role:?}");
        assert_eq!(desired.pointer("/status/dataSecretName"), None, "{role:?}");
        assert_eq!(conditions::get(&desired, "Ready").unwrap().reason, "NotGranted", "{role:?}");
    }
}

/// C9: the condition ends with the pause, whatever the first call after it comes to.
#[test]
fn a_resumed_object_is_not_called_paused_any_more() {
    let mut held = object();
    held["status"] = json!({"conditions": [{"type": "Paused", "status": "True", "reason": "Paused"}]});
    let problem = Problem { fault: Fault::Waiting, reason: "R".into(), message: String::new(), retry_after: None };
    let nothing = Outcome::default();
    for (what, ending) in [
        ("a problem", Ending::Replied(&Err(problem), &nothing)),
        ("gone", Ending::Replied(&Ok(Answer::Gone(false)), &nothing)),
        ("a trap", Ending::Failed { reason: "ProviderTrapped", message: "" }),
        ("a closed gate", Ending::Waiting(Waiting { reason: "WaitingForMachine", message: "" })),
    ] {
        let plan = plan_of(kind(Role::InfrastructureMachine), Contract::V1Beta2, &held, ending);
        assert!(conditions::is_false(&plan.desired.unwrap(), "Paused"), "{what}");
    }
}

/// Who waits for `Paused=False` need not pause first; it costs no write of its own, and kinds of v1beta1 have no such condition.
#[test]
fn an_object_that_was_never_paused_says_so_with_its_next_status() {
    let waiting = Ending::Waiting(Waiting { reason: "WaitingForMachine", message: "" });
    let plan = |contract, object: &Value| {
        plan_of(kind(Role::InfrastructureMachine), contract, object, waiting).desired.unwrap()
    };
    let mut first = plan(Contract::V1Beta2, &object());
    assert!(conditions::is_false(&first, "Paused"));
    assert_eq!(plan(Contract::V1Beta2, &first), first);
    conditions::remove(&mut first, "Paused");
    assert_eq!(plan(Contract::V1Beta2, &first), first, "nothing else is written");
    assert!(conditions::get(&plan(Contract::V1Beta1, &object()), "Paused").is_none());
}

#[test]
fn what_is_provisioned_stays_ready_while_it_waits() {
    let waiting = Ending::Waiting(Waiting { reason: "R", message: "" });
    for (contract, status) in [
        (Contract::V1Beta1, json!({"ready": true})),
        (Contract::V1Beta2, json!({"initialization": {"provisioned": true}})),
    ] {
        let mut held = object();
        held["status"] = status.clone();
        let plan = plan_of(kind(Role::InfrastructureMachine), contract, &held, waiting);
        assert_eq!(plan.desired.unwrap()["status"], status, "{contract:?}");
    }
}

/// One status write less for each object whose spec the host completes.
#[test]
fn what_the_plan_writes_to_the_spec_is_observed_with_it() {
    let outcome = |own: &[Value]| Outcome {
        status: vec![json!({"observedGeneration": 3})],
        own: own.to_vec(),
        ..Outcome::default()
    };
    let rows = [("nothing is written", vec![], 3), ("a path of its own", vec![json!({"spec": {"size": 1}})], 4)];
    for (name, own, expected) in rows {
        let plan = write(Role::Bootstrap, Contract::V1Beta2, &object(), Ok(Answer::Bootstrap(None)), &outcome(&own));
        assert_eq!(plan.desired.unwrap()["status"]["observedGeneration"], expected, "{name}");
    }
}

#[test]
fn a_status_that_only_people_read_may_wait_unless_the_provider_waits_for_it() {
    let starting =
        || Err(Problem { fault: Fault::Waiting, reason: "R".into(), message: String::new(), retry_after: None });
    let news = || Outcome { status: vec![json!({"exec": "1"})], ..Outcome::default() };
    let rows = [
        ("why it waits", Outcome::default(), true),
        ("a field of its own", news(), false),
        ("persist, then act", Outcome { wake_when_applied: true, ..Outcome::default() }, false),
        ("a field that may wait", Outcome { status: vec![json!({"addresses": ["a"]})], ..Outcome::default() }, true),
        (
            "an operation is waited for",
            Outcome {
                wake_when_applied: true,
                operations: vec![capwasm_contract::Operation::Delete {
                    key: "k".into(),
                    place: capwasm_contract::Place::Management,
                    target: ObjectRef {
                        api_version: "v1".into(),
                        kind: "ConfigMap".into(),
                        namespace: None,
                        name: "c".into(),
                    },
                    uid: None,
                }],
                ..Outcome::default()
            },
            true,
        ),
    ];
    for (name, outcome, expected) in rows {
        let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), starting(), &outcome);
        assert_eq!(plan.status_may_wait, expected, "{name}");
    }
    let answer = Answer::Machine(MachineAnswer {
        provisioned: true,
        provider_id: None,
        addresses: vec![],
        failure_domain: None,
    });
    let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(answer), &Outcome::default());
    assert!(!plan.status_may_wait, "that it is provisioned is waited for");
    let mut provisioned = object();
    provisioned["status"] = json!({"initialization": {"provisioned": true}});
    let moved = Outcome { status: vec![json!({"addresses": ["b"]})], ..Outcome::default() };
    let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &provisioned, starting(), &moved);
    assert!(!plan.status_may_wait, "what others rely on is news");
}

#[test]
fn who_waits_for_what_nothing_announces_is_called_again_when_it_says_so() {
    let waiting = |retry_after: Option<u64>| {
        let retry_after = retry_after.map(Duration::from_secs);
        Err(Problem { fault: Fault::Waiting, reason: "Building".into(), message: String::new(), retry_after })
    };
    let rows = [
        ("nothing said", None, None, None),
        ("a problem's", Some(10), None, Some(10)),
        ("the outcome's", None, Some(5), Some(5)),
        ("the earlier", Some(10), Some(5), Some(5)),
        ("either way", Some(3), Some(5), Some(3)),
    ];
    for (name, problem, wake, expected) in rows {
        let outcome = Outcome { wake_after: wake.map(Duration::from_secs), ..Outcome::default() };
        let plan = write(Role::Controller, Contract::V1Beta2, &object(), waiting(problem), &outcome);
        assert_eq!((plan.wake_after, plan.verdict), (expected.map(Duration::from_secs), Verdict::Waiting), "{name}");
    }
}

/// Whatever a guest says of its status and of its own paths, what latched stays and nothing else changes.
#[test]
fn a_guest_changes_its_own_paths_and_its_status_and_nothing_else() {
    fn value(u: &mut arbitrary::Unstructured<'_>, depth: usize) -> arbitrary::Result<Value> {
        const KEYS: [&str; 12] = [
            "spec",
            "metadata",
            "size",
            "size.x",
            "spec.size",
            "providerID",
            "controlPlaneEndpoint",
            "host",
            "finalizers",
            "status",
            "initialization",
            "provisioned",
        ];
        Ok(match u.int_in_range(0..=if depth == 0 { 2 } else { 6 })? {
            0 => Value::Null,
            1 => u.arbitrary::<bool>()?.into(),
            2 => "x".into(),
            _ => {
                let entry =
                    |u: &mut arbitrary::Unstructured<'_>| Ok(((*u.choose(&KEYS)?).to_owned(), value(u, depth - 1)?));
                Value::Object((0..u.int_in_range(0..=3)?).map(|_| entry(u)).collect::<arbitrary::Result<_>>()?)
            }
        })
    }
    arbtest::arbtest(|u| {
        let mut object = object();
        object["spec"] =
            json!({"size": 1, "other": 2, "providerID": "x:///1", "controlPlaneEndpoint": {"host": "h", "port": 1}});
        object["status"] = json!({"ready": true, "initialization": {"provisioned": true}});
        let outcome = Outcome {
            own: vec![value(u, 3)?, json!({"spec": value(u, 2)?})],
            status: vec![value(u, 3)?],
            ..Outcome::default()
        };
        let (role, answer) = *u.choose(&[(Role::InfrastructureCluster, false), (Role::InfrastructureMachine, true)])?;
        let answer = match answer {
            false => cluster(false, "other"),
            true => Answer::Machine(MachineAnswer {
                provisioned: false,
                provider_id: Some("y".into()),
                addresses: vec![],
                failure_domain: None,
            }),
        };
        let mut desired = write(role, Contract::V1Beta2, &object, Ok(answer), &outcome).desired.unwrap();
        assert_eq!(desired.pointer("/status/initialization/provisioned"), Some(&json!(true)), "{outcome:?}");
        let spec = desired["spec"].as_object_mut().unwrap();
        spec.insert("size".into(), 1.into());
        desired["status"] = object["status"].clone();
        assert_eq!(desired, object, "{outcome:?}");
        Ok(())
    })
    .budget_ms(500);
}

#[test]
fn own_paths_are_keys_and_not_texts_with_dots() {
    let of = |own: &[&str], fields: Value, spec: Value| {
        let mut kind = kind(Role::Controller);
        kind.own = own.iter().map(|path| (*path).to_owned()).collect();
        let mut object = object();
        object["spec"] = spec;
        let outcome = Outcome { own: vec![fields], ..Outcome::default() };
        let plan = plan_of(kind, Contract::V1Beta2, &object, Ending::Replied(&Ok(Answer::Reconciled), &outcome));
        let mut desired = plan.desired.unwrap();
        desired.as_object_mut().unwrap().remove("status");
        object.as_object_mut().unwrap().remove("status");
        (capwasm_object::merge_patch::diff(&object, &desired), plan.events.len())
    };
    let annotation = |name: &str| json!({"metadata": {"annotations": {(name): "x"}}});
    type Row = (&'static str, &'static [&'static str], Value, Value, Option<Value>, usize);
    let rows: [Row; 9] = [
        ("a key at the top", &["spec.size"], json!({"spec.size": 1}), json!({}), None, 1),
        ("a key that goes on with a dot", &["spec.size"], json!({"spec": {"size.x": 1}}), json!({}), None, 1),
        (
            "an annotation",
            &["metadata.annotations.a.b/c"],
            annotation("a.b/c"),
            json!({}),
            Some(annotation("a.b/c")),
            0,
        ),
        ("another's annotation", &["metadata.annotations.a"], annotation("a.b/c"), json!({}), None, 1),
        ("every annotation", &["metadata.annotations"], annotation("a.b/c"), json!({}), Some(annotation("a.b/c")), 0),
        ("what is not there is cleared", &["spec.a.b"], json!({"spec": {"a": {"b": null}}}), json!({}), None, 0),
        ("in place of a text", &["spec.a.b"], json!({"spec": {"a": {"b": 1}}}), json!({"a": "text"}), None, 1),
        ("nothing", &["spec.a.b"], json!({}), json!({}), None, 0),
        (
            "below its own",
            &["spec.a"],
            json!({"spec": {"a": {"b": 1}}}),
            json!({}),
            Some(json!({"spec": {"a": {"b": 1}}})),
            0,
        ),
    ];
    for (name, own, fields, spec, patch, dropped) in rows {
        assert_eq!(of(own, fields, spec), (patch, dropped), "{name}");
    }
}

/// Otherwise a provider would choose the tenant of its object, whose workload cluster and grants it gets.
#[test]
fn the_cluster_of_an_object_is_the_hosts_whatever_paths_are_declared() {
    let rows = [
        ("changed", json!({"cluster.x-k8s.io/cluster-name": "victim", "zone": "a"}), json!({"zone": "a"})),
        ("taken away", json!({"cluster.x-k8s.io/cluster-name": null}), json!({})),
        ("the whole map is taken away", Value::Null, json!({})),
    ];
    for (name, labels, others) in rows {
        let mut kind = kind(Role::Controller);
        kind.own = vec!["metadata.labels".into()];
        let outcome = Outcome { own: vec![json!({"metadata": {"labels": labels}})], ..Outcome::default() };
        let plan = plan_of(kind, Contract::V1Beta2, &object(), Ending::Replied(&Ok(Answer::Reconciled), &outcome));
        let mut expected = others;
        expected["cluster.x-k8s.io/cluster-name"] = "c".into();
        assert_eq!(plan.desired.unwrap()["metadata"]["labels"], expected, "{name}");
        let [event] = plan.events.as_slice() else { panic!("{name}: {} events", plan.events.len()) };
        assert!(event.message.contains("metadata.labels.cluster.x-k8s.io/cluster-name"), "{name}: {}", event.message);
    }
}

#[test]
fn a_generation_that_cannot_grow_is_no_panic() {
    let mut object = object();
    object["metadata"]["generation"] = i64::MAX.into();
    let outcome = Outcome {
        own: vec![json!({"spec": {"size": 2}})],
        status: vec![json!({"observedGeneration": i64::MAX})],
        ..Outcome::default()
    };
    let plan = write(Role::Bootstrap, Contract::V1Beta2, &object, Ok(Answer::Bootstrap(None)), &outcome);
    assert_eq!(plan.desired.unwrap()["status"]["observedGeneration"], i64::MAX);
}

/// C9: a pause is said, and told again for nothing.
#[test]
fn a_paused_object_says_so_once() {
    let paused = |object: &Value| {
        let plan = plan_of(kind(Role::InfrastructureMachine), Contract::V1Beta2, object, Ending::Paused);
        plan.desired.unwrap()
    };
    let mut first = paused(&object());
    assert!(conditions::is_true(&first, "Paused"));
    first["status"]["conditions"][0]["lastTransitionTime"] = "2025-01-01T00:00:00Z".into();
    assert_eq!(paused(&first), first);
}

/// However much a guest sets that is not its own, one event tells it.
#[test]
fn paths_that_are_not_owned_are_told_in_one_short_event() {
    let leaves: serde_json::Map<String, Value> = (0..1_000).map(|leaf| (format!("{leaf}"), json!(1))).collect();
    let fields = json!({"spec": {"size": 4, ("k".repeat(100_000)): leaves}});
    let outcome = Outcome { own: vec![fields.clone(), fields], ..Outcome::default() };
    let role = Role::InfrastructureMachine;
    let plan = write(role, Contract::V1Beta2, &object(), Ok(Answer::Gone(false)), &outcome);
    let [event] = plan.events.as_slice() else { panic!("{} events", plan.events.len()) };
    assert!(event.reason == "PathNotOwned" && event.message.len() < 1_000, "{} bytes", event.message.len());
    assert_eq!(plan.desired.unwrap()["spec"], json!({"size": 4}));
}
