#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::time::Duration;

use super::*;
use capwasm_api::descriptor::ExclusiveBy;
use capwasm_runtime::{Address, BootstrapData, ControlPlane, Endpoint, FailureDomain};

fn kind(role: Role) -> KindDescriptor {
    KindDescriptor {
        role,
        group: "infrastructure.example".into(),
        kind: "Thing".into(),
        version: "v1beta2".into(),
        finalizers: vec!["thing.example".into()],
        own: vec!["spec.size".into()],
        may_wait: vec!["addresses".into(), "Booted".into()],
        exclusive_by: ExclusiveBy::Object,
        bootstrap_data: None,
        admission: false,
        crd: json!({"spec": {"versions": [{"name": "v1beta2", "schema": {"openAPIV3Schema": {"properties": {
            "status": {"properties": {"failureDomain": {}, "observedGeneration": {}, "initialization": {}}}}}}}]}}),
    }
}

fn object() -> Value {
    json!({"apiVersion": "infrastructure.example/v1beta2", "kind": "Thing",
        "metadata": {"name": "t", "namespace": "ns", "uid": "u", "generation": 3, "labels": {"cluster.x-k8s.io/cluster-name": "c"}}, "spec": {}})
}

fn write(role: Role, contract: Contract, object: &Value, answer: Result<Answer, Problem>, outcome: &Outcome) -> Plan {
    let kind = kind(role);
    let cluster = ClusterId::new("ns", "c");
    let at = WriteBack {
        object,
        kind: &kind,
        contract,
        cluster: Some(&cluster),
        of_pool: json::items(object, "/metadata/ownerReferences").iter().any(|o| json::kind(o) == "MachinePool"),
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
    };
    answered(&at, &answer, outcome)
}

fn cluster(provisioned: bool, host: &str) -> Answer {
    Answer::Cluster {
        provisioned,
        endpoint: Some(Endpoint { host: host.into(), port: 6443 }),
        failure_domains: vec![FailureDomain {
            name: "fd1".into(),
            control_plane: true,
            attributes: vec![("zone".into(), "a".into())],
        }],
    }
}

/// C11, C12: endpoint and readiness by contract version.
#[test]
fn an_infrastructure_cluster_is_written_in_the_shape_of_its_contract() {
    let new = write(
        Role::InfrastructureCluster,
        Contract::V1Beta2,
        &object(),
        Ok(cluster(true, "10.0.0.1")),
        &Outcome::default(),
    );
    let new = new.desired.unwrap();
    assert_eq!(new["spec"]["controlPlaneEndpoint"], json!({"host": "10.0.0.1", "port": 6443}));
    assert_eq!(new["status"]["initialization"], json!({"provisioned": true}));
    assert_eq!(
        new["status"]["failureDomains"],
        json!([{"name": "fd1", "controlPlane": true, "attributes": {"zone": "a"}}])
    );
    assert!(conditions::is_true(&new, "Ready"));

    let old = write(
        Role::InfrastructureCluster,
        Contract::V1Beta1,
        &object(),
        Ok(cluster(true, "10.0.0.1")),
        &Outcome::default(),
    );
    let old = old.desired.unwrap();
    assert_eq!(old["status"]["ready"], json!(true));
    assert_eq!(old["status"]["failureDomains"], json!({"fd1": {"controlPlane": true, "attributes": {"zone": "a"}}}));
    assert_eq!(old["status"]["initialization"], Value::Null);
    let ready = &old["status"]["conditions"][0];
    assert_eq!(
        (ready["type"].as_str(), ready["status"].as_str(), ready.get("reason")),
        (Some("Ready"), Some("True"), None)
    );
}

/// C15: nothing is claimed before the provider says so; C17's other half: what latched stays.
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
    let answer = Answer::Machine {
        provisioned: true,
        provider_id: Some("docker:////other".into()),
        addresses: vec![],
        failure_domain: None,
    };
    let machine = write(Role::InfrastructureMachine, Contract::V1Beta2, &machine, Ok(answer), &Outcome::default())
        .desired
        .unwrap();
    assert_eq!(machine["spec"]["providerID"], "docker:////first");
}

/// R5: what core copies from an infrastructure machine.
#[test]
fn a_machine_reports_provider_id_addresses_and_failure_domain() {
    let answer = Answer::Machine {
        provisioned: true,
        provider_id: Some("docker:////t".into()),
        addresses: vec![Address { kind: "InternalIP".into(), value: "10.0.0.2".into() }],
        failure_domain: Some("fd4".into()),
    };
    let machine = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(answer), &Outcome::default())
        .desired
        .unwrap();
    assert_eq!(machine["spec"]["providerID"], "docker:////t");
    assert_eq!(machine["status"]["addresses"], json!([{"type": "InternalIP", "address": "10.0.0.2"}]));
    assert_eq!(machine["status"]["failureDomain"], "fd4");
}

/// R3, G9: one Secret per configuration, owned by it, named in the status.
#[test]
fn bootstrap_data_becomes_a_secret_after_the_other_operations() {
    let data = BootstrapData { format: "cloud-config".into(), value: b"#cloud-config".to_vec() };
    let outcome = Outcome {
        operations: vec![capwasm_runtime::Operation::Create {
            key: "token".into(),
            place: capwasm_runtime::Place::Workload,
            object: json!({}),
        }],
        ..Outcome::default()
    };
    let plan = write(Role::Bootstrap, Contract::V1Beta2, &object(), Ok(Answer::Bootstrap(Some(data))), &outcome);
    let keys: Vec<_> = plan.operations.iter().map(|operation| operation.key.as_str()).collect();
    assert_eq!(keys, ["token", "bootstrap-data"]);
    assert_eq!(plan.operations[0].place, Place::Workload(ClusterId::new("ns", "c")));
    let Action::Create(secret) = &plan.operations[1].action else { panic!("not a create") };
    assert_eq!(
        (secret["metadata"]["name"].as_str(), secret["type"].as_str()),
        (Some("t"), Some("cluster.x-k8s.io/secret"))
    );
    assert_eq!(secret["data"]["value"], "I2Nsb3VkLWNvbmZpZw==");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "u");
    assert_eq!(
        plan.fallback.unwrap().pointer("/status/dataSecretName"),
        None,
        "not announced when the Secret could not be written"
    );
    let status = &plan.desired.unwrap()["status"];
    assert_eq!(
        (status["dataSecretName"].as_str(), status["initialization"]["dataSecretCreated"].as_bool()),
        (Some("t"), Some(true))
    );
}

/// Otherwise a provider that has both roles would open any Secret of the namespace, and a pool's data would overwrite it.
#[test]
fn a_guest_cannot_name_another_secret_for_its_bootstrap_data() {
    let named = Outcome { status: vec![json!({"dataSecretName": "c-ca", "said": true})], ..Outcome::default() };
    let data = || Some(BootstrapData { format: "cloud-config".into(), value: b"#cloud-config".to_vec() });
    let mut of_pool = object();
    of_pool["metadata"]["ownerReferences"] = json!([{"kind": "MachinePool", "name": "p"}]);
    for object in [object(), of_pool] {
        for contract in [Contract::V1Beta1, Contract::V1Beta2] {
            let without = write(Role::Bootstrap, contract, &object, Ok(Answer::Bootstrap(None)), &named);
            let desired = without.desired.unwrap();
            assert_eq!((&desired["status"]["said"], desired.pointer("/status/dataSecretName")), (&json!(true), None));
            let with = write(Role::Bootstrap, contract, &object, Ok(Answer::Bootstrap(data())), &named);
            assert_eq!(with.desired.unwrap()["status"]["dataSecretName"], "t");
            let Action::Create(secret) = &with.operations[0].action else { panic!("{:?}", with.operations) };
            assert_eq!(secret["metadata"]["name"], "t");
        }
    }
}

/// R7: what core reads of a control plane.
#[test]
fn a_control_plane_reports_counters_and_initialization() {
    let state = ControlPlane {
        initialized: true,
        endpoint: None,
        version: Some("v1.36.0".into()),
        replicas: 3,
        ready: 2,
        available: 1,
        up_to_date: 3,
        selector: "a=b".into(),
    };
    let status =
        write(Role::ControlPlane, Contract::V1Beta2, &object(), Ok(Answer::ControlPlane(state)), &Outcome::default())
            .desired
            .unwrap();
    assert_eq!(
        status["status"],
        json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3, "selector": "a=b",
            "version": "v1.36.0", "initialization": {"controlPlaneInitialized": true}, "observedGeneration": 3})
    );
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
    let create = |key: &str| capwasm_runtime::Operation::Create {
        key: key.into(),
        place: capwasm_runtime::Place::Management,
        object: json!({"metadata": {"name": "x"}}),
    };
    let refused = capwasm_runtime::Operation::Refused { key: "b".into(), refused: Refused::denied("not yours") };
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
            let now = "2026-01-01T00:00:00Z".parse().unwrap();
            let at = WriteBack { object: &held, kind: &kind, contract, cluster: None, of_pool: false, now };
            let desired = answered(&at, &answer, &outcome).desired.unwrap();
            for path in paths {
                assert_eq!(desired.pointer(path), held.pointer(path), "{role:?} {contract:?} {path}");
            }
        }
    }
}

#[test]
fn an_answer_that_rests_on_an_operation_that_was_refused_is_not_announced() {
    let data = || BootstrapData { format: "cloud-config".into(), value: b"#cloud-config".to_vec() };
    let refused = capwasm_runtime::Operation::Refused { key: "a".into(), refused: Refused::denied("not yours") };
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
    let kind = kind(Role::InfrastructureMachine);
    let mut held = object();
    held["status"] = json!({"conditions": [{"type": "Paused", "status": "True", "reason": "Paused"}]});
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = WriteBack { object: &held, kind: &kind, contract: Contract::V1Beta2, cluster: None, of_pool: false, now };
    let problem = Problem { fault: Fault::Waiting, reason: "R".into(), message: String::new(), retry_after: None };
    for (what, plan) in [
        ("a problem", answered(&at, &Err(problem), &Outcome::default())),
        ("gone", answered(&at, &Ok(Answer::Gone(false)), &Outcome::default())),
        ("a trap", failed(&at, "ProviderTrapped", "")),
        ("a closed gate", waiting(&at, "WaitingForMachine", "")),
    ] {
        assert!(conditions::is_false(&plan.desired.unwrap(), "Paused"), "{what}");
    }
}

#[test]
fn what_is_provisioned_stays_ready_while_it_waits() {
    let kind = kind(Role::InfrastructureMachine);
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    for (contract, status) in [
        (Contract::V1Beta1, json!({"ready": true})),
        (Contract::V1Beta2, json!({"initialization": {"provisioned": true}})),
    ] {
        let mut held = object();
        held["status"] = status.clone();
        let at = WriteBack { object: &held, kind: &kind, contract, cluster: None, of_pool: false, now };
        assert_eq!(waiting(&at, "R", "").desired.unwrap()["status"], status, "{contract:?}");
    }
}

/// Instances come and go, and readiness latches, in the shape of either contract.
#[test]
fn a_pool_is_written_with_what_there_is_now() {
    let pool = |provisioned, ids: &[&str]| {
        let provider_ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        Answer::Pool { provisioned, replicas: u32::try_from(ids.len()).unwrap(), provider_ids }
    };
    let role = Role::InfrastructureMachinePool;
    for (contract, ready) in
        [(Contract::V1Beta1, "/status/ready"), (Contract::V1Beta2, "/status/initialization/provisioned")]
    {
        let none = write(role, contract, &object(), Ok(pool(false, &[])), &Outcome::default()).desired.unwrap();
        assert_eq!((none.pointer("/spec/providerIDList"), none.pointer(ready)), (None, None), "{contract:?}");
        assert_eq!(none["status"]["replicas"], 0);
        let two = write(role, contract, &none, Ok(pool(true, &["a", "b"])), &Outcome::default()).desired.unwrap();
        assert_eq!(two["spec"]["providerIDList"], json!(["a", "b"]));
        assert_eq!((&two["status"]["replicas"], two.pointer(ready)), (&json!(2), Some(&json!(true))), "{contract:?}");
        let empty = write(role, contract, &two, Ok(pool(false, &[])), &Outcome::default()).desired.unwrap();
        assert_eq!(empty["spec"]["providerIDList"], json!([]), "what is gone leaves the list");
        assert_eq!(empty.pointer(ready), Some(&json!(true)), "{contract:?}: what latched stays");
        assert_eq!(empty["status"]["observedGeneration"], 4, "with the change of the list");
    }
    let mut upstream = kind(role);
    upstream.crd = json!({"spec": {"versions": [{"name": "v1beta2", "schema": {"openAPIV3Schema": {"properties": {
        "status": {"properties": {"ready": {}, "replicas": {}}}}}}}]}});
    let held = object();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let at =
        WriteBack { object: &held, kind: &upstream, contract: Contract::V1Beta2, cluster: None, of_pool: false, now };
    let written = answered(&at, &Ok(pool(true, &["a"])), &Outcome::default()).desired.unwrap();
    assert_eq!((&written["status"]["ready"], written["status"].get("initialization")), (&json!(true), None));
}

/// A token of a pool is rotated by new data; a machine's data is what it was made with.
#[test]
fn bootstrap_data_is_replaced_for_a_pool_only() {
    let data = || BootstrapData { format: "cloud-config".into(), value: b"#".to_vec() };
    let answer = || Ok(Answer::Bootstrap(Some(data())));
    let rows = [
        ("a machine's first data", "Machine", None, true),
        ("a machine's later data", "Machine", Some("t"), true),
        ("a pool's first data", "MachinePool", None, true),
        ("a pool's later data", "MachinePool", Some("t"), false),
    ];
    for (name, owner, announced, created) in rows {
        let mut config = object();
        config["metadata"]["ownerReferences"] = json!([{"kind": owner}]);
        if let Some(secret) = announced {
            config["status"] = json!({"dataSecretName": secret});
        }
        let plan = write(Role::Bootstrap, Contract::V1Beta2, &config, answer(), &Outcome::default());
        let [operation] = plan.operations.as_slice() else { panic!("{name}: one operation") };
        match &operation.action {
            Action::Create(secret) => assert!(created && json::name(secret) == "t", "{name}"),
            Action::Apply { object, .. } => assert!(!created && json::name(object) == "t", "{name}"),
            other => panic!("{name}: {other:?}"),
        }
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
                operations: vec![capwasm_runtime::Operation::Delete {
                    key: "k".into(),
                    place: capwasm_runtime::Place::Management,
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
    let answer = Answer::Machine { provisioned: true, provider_id: None, addresses: vec![], failure_domain: None };
    let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(answer), &Outcome::default());
    assert!(!plan.status_may_wait, "that it is provisioned is waited for");
    let mut provisioned = object();
    provisioned["status"] = json!({"initialization": {"provisioned": true}});
    let moved = Outcome { status: vec![json!({"addresses": ["b"]})], ..Outcome::default() };
    let plan = write(Role::InfrastructureMachine, Contract::V1Beta2, &provisioned, starting(), &moved);
    assert!(!plan.status_may_wait, "what others rely on is news");
}

/// The kinds of Cluster API Provider OpenStack 0.14: v1beta1 conditions, both words for what is provisioned, and a status that
/// is refused without `ready`.
fn older(role: Role, version: &str, contract: &str) -> (KindDescriptor, Contract) {
    let condition = json!({"properties": {"type": {}, "status": {}, "severity": {}, "reason": {}, "message": {}}});
    let status = json!({"required": ["ready"], "properties": {
        "ready": {"type": "boolean"}, "initialization": {"type": "object", "properties": {"provisioned": {}}},
        "failureDomains": {"type": "object"}, "conditions": {"type": "array", "items": condition}}});
    let crd = json!({"metadata": {"labels": {"cluster.x-k8s.io/v1beta1": contract, "cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {"versions": [{"name": version, "schema": {"openAPIV3Schema": {"properties": {"status": status}}}}]}});
    let contract = Contract::of(&crd, version);
    (KindDescriptor { version: version.into(), crd, ..kind(role) }, contract)
}

fn write_older(
    (kind, contract): &(KindDescriptor, Contract),
    object: &Value,
    answer: Result<Answer, Problem>,
    outcome: &Outcome,
) -> Value {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = WriteBack { object, kind, contract: *contract, cluster: None, of_pool: false, now };
    answered(&at, &answer, outcome).desired.unwrap()["status"].clone()
}

#[test]
fn a_v1beta1_kind_with_both_words_for_provisioned_gets_both_and_keeps_them() {
    let of = older(Role::InfrastructureCluster, "v1beta1", "v1beta1");
    assert_eq!(of.1, Contract::V1Beta1);
    let not_yet = write_older(&of, &object(), Ok(cluster(false, "h")), &Outcome::default());
    assert_eq!((&not_yet["ready"], not_yet.get("initialization")), (&json!(false), None));
    assert_eq!(not_yet["failureDomains"], json!({"fd1": {"controlPlane": true, "attributes": {"zone": "a"}}}));
    let condition = |status: &Value| status["conditions"][0].clone();
    let (kind, reason) = (&condition(&not_yet)["severity"], &condition(&not_yet)["reason"]);
    assert_eq!((kind, reason), (&json!("Info"), &json!("NotReady")));

    let done = write_older(&of, &object(), Ok(cluster(true, "h")), &Outcome::default());
    assert_eq!((&done["ready"], &done["initialization"]["provisioned"]), (&json!(true), &json!(true)));
    assert_eq!(
        condition(&done),
        json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    );
    let mut provisioned = object();
    provisioned["status"] = done.clone();
    let cleared = Outcome { status: vec![json!({"ready": null, "initialization": null})], ..Outcome::default() };
    let again = write_older(&of, &provisioned, Ok(cluster(false, "h")), &cleared);
    assert_eq!((&again["ready"], &again["initialization"]["provisioned"]), (&json!(true), &json!(true)));
    assert_eq!(
        write_older(&of, &provisioned, Ok(cluster(true, "h")), &Outcome::default()),
        done,
        "no write for nothing"
    );
}

#[test]
fn a_controllers_kind_says_ready_in_the_conditions_that_it_has() {
    let of = older(Role::Controller, "v1alpha1", "v1alpha1");
    let said = Outcome { status: vec![json!({"ready": true})], ..Outcome::default() };
    let done = write_older(&of, &object(), Ok(Answer::Reconciled), &said);
    assert_eq!(done["ready"], true, "the provider's own word");
    assert_eq!((&done["conditions"][0]["type"], &done["conditions"][0]["status"]), (&json!("Ready"), &json!("True")));
    let problem = |fault| Problem { fault, reason: "Why".into(), message: "m".into(), retry_after: None };
    let rows = [(Fault::Waiting, "Info"), (Fault::Transient, "Warning"), (Fault::Invalid, "Error")];
    for (fault, severity) in rows {
        let status = write_older(&of, &object(), Err(problem(fault)), &Outcome::default());
        let condition = &status["conditions"][0];
        assert_eq!((&condition["status"], &condition["severity"]), (&json!("False"), &json!(severity)), "{fault:?}");
        assert_eq!(status["ready"], false, "a status without it would be refused");
    }
    // In no contract at all, its schema says which conditions it has; one that cannot be said has no severity.
    let (kind, contract) = older(Role::Controller, "v1alpha1", "v1beta1");
    assert_eq!(contract, Contract::V1Beta2);
    let unknown = Outcome {
        conditions: vec![capwasm_runtime::Condition {
            name: "Leased".into(),
            status: None,
            reason: "R".into(),
            message: String::new(),
        }],
        ..Outcome::default()
    };
    let status = write_older(&(kind, contract), &object(), Err(problem(Fault::Invalid)), &unknown);
    assert_eq!(status["conditions"][0].get("severity"), None, "{status}");
    assert_eq!(status["conditions"][0].get("message"), None, "v1beta1 refuses an empty one: {status}");
    assert_eq!(status["conditions"][1]["severity"], "Error", "{status}");
    // A template that reports its capacity has no conditions to write.
    let (mut kind, contract) = older(Role::Controller, "v1beta1", "v1beta1");
    kind.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({"properties": {"capacity": {}}});
    let capacity = Outcome { status: vec![json!({"capacity": {"cpu": "4"}})], ..Outcome::default() };
    let status = write_older(&(kind, contract), &object(), Ok(Answer::Reconciled), &capacity);
    assert_eq!(status, json!({"capacity": {"cpu": "4"}}));
}

#[test]
fn a_patch_of_the_status_goes_to_its_subresource_after_the_rest() {
    let versioned = json!({"metadata": {"resourceVersion": "7"}, "status": {"a": 1}});
    let both = json!({"metadata": {"resourceVersion": "7", "labels": {"l": "1"}}, "status": {"a": 1}});
    let finalizers = json!({"metadata": {"resourceVersion": "7", "finalizers": []}});
    let rows = [
        ("no status", finalizers.clone(), (finalizers, None), None),
        ("the status alone", versioned.clone(), (versioned, Some("status")), None),
        (
            "both",
            both,
            (json!({"metadata": {"resourceVersion": "7", "labels": {"l": "1"}}}), None),
            Some((json!({"status": {"a": 1}}), Some("status"))),
        ),
    ];
    for (name, merge, first, second) in rows {
        assert_eq!(patches(&merge), (first, second), "{name}");
    }
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
            true => Answer::Machine {
                provisioned: false,
                provider_id: Some("y".into()),
                addresses: vec![],
                failure_domain: None,
            },
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
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let at =
            WriteBack { object: &object, kind: &kind, contract: Contract::V1Beta2, cluster: None, of_pool: false, now };
        let plan = answered(&at, &Ok(Answer::Reconciled), &outcome);
        let mut desired = plan.desired.unwrap();
        desired.as_object_mut().unwrap().remove("status");
        object.as_object_mut().unwrap().remove("status");
        (json::merge_patch(&object, &desired), plan.events.len())
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

/// Go writes an endpoint that is not known yet as an empty host and port 0.
#[test]
fn an_empty_endpoint_is_none_and_does_not_latch() {
    let mut object = object();
    object["spec"]["controlPlaneEndpoint"] = json!({"host": "", "port": 0});
    let answer = Ok(cluster(true, "10.0.0.1"));
    let plan = write(Role::InfrastructureCluster, Contract::V1Beta2, &object, answer, &Outcome::default());
    assert_eq!(plan.desired.unwrap()["spec"]["controlPlaneEndpoint"], json!({"host": "10.0.0.1", "port": 6443}));
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
