//! Fixtures for tests of write-back: a kind, an object and a call.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;

use capwasm_api::contract::{Contract, of_version};
use capwasm_contract::descriptor::{ExclusiveBy, KindDescriptor, Role};
use capwasm_contract::{Answer, ClusterAnswer, Endpoint, FailureDomain, Outcome, Problem};
use capwasm_object::{json, meta};
use capwasm_reconcile::{ClusterId, Plan};
use serde_json::{Value, json};

use super::{Ending, Subject, plan};
use crate::belongings::Belongings;
use crate::role::ServedKind;

/// A kind with the fields that most kinds of the role have.
pub fn kind(role: Role) -> KindDescriptor {
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

/// An object of that kind without status.
pub fn object() -> Value {
    json!({"apiVersion": "infrastructure.example/v1beta2", "kind": "Thing",
        "metadata": {"name": "t", "namespace": "ns", "uid": "u", "generation": 3, "labels": {"cluster.x-k8s.io/cluster-name": "c"}}, "spec": {}})
}

/// The plan for an object of a kind, which belongs to the Cluster `ns/c` and to its owner references.
pub fn plan_of(kind: KindDescriptor, contract: Contract, object: &Value, ending: Ending<'_>) -> Plan {
    let kind = ServedKind::new(kind, contract).unwrap();
    let belongings = belongings(object);
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    plan(&Subject { kind: &kind, object, belongings: &belongings, now }, ending)
}

fn belongings(object: &Value) -> Belongings {
    let of_pool =
        json::items(object, "/metadata/ownerReferences").iter().any(|owner| meta::kind(owner) == "MachinePool");
    Belongings {
        pool: of_pool.then(|| Arc::new(json!({}))),
        cluster_id: Some(ClusterId::new("ns", "c")),
        ..Belongings::default()
    }
}

pub fn write(
    role: Role,
    contract: Contract,
    object: &Value,
    answer: Result<Answer, Problem>,
    outcome: &Outcome,
) -> Plan {
    plan_of(kind(role), contract, object, Ending::Replied(&answer, outcome))
}

/// As [`write`] for bootstrap data, with the metadata of Secrets.
pub fn write_with(secrets: Vec<Arc<Value>>, object: &Value, answer: Answer) -> Plan {
    let kind = ServedKind::new(kind(Role::Bootstrap), Contract::V1Beta2).unwrap();
    let belongings = Belongings { secrets, ..belongings(object) };
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let subject = Subject { kind: &kind, object, belongings: &belongings, now };
    plan(&subject, Ending::Replied(&Ok(answer), &Outcome::default()))
}

pub fn cluster(provisioned: bool, host: &str) -> Answer {
    Answer::Cluster(ClusterAnswer {
        provisioned,
        endpoint: Some(Endpoint { host: host.into(), port: 6443 }),
        failure_domains: vec![FailureDomain {
            name: "fd1".into(),
            control_plane: true,
            attributes: vec![("zone".into(), "a".into())],
        }],
    })
}

/// Kinds of Cluster API Provider OpenStack 0.14: v1beta1 conditions, both fields for provisioned, and a status that
/// requires `ready`.
pub fn older(role: Role, version: &str, contract: &str) -> (KindDescriptor, Contract) {
    let condition = json!({"properties": {"type": {}, "status": {}, "severity": {}, "reason": {}, "message": {}}});
    let status = json!({"required": ["ready"], "properties": {
        "ready": {"type": "boolean"}, "initialization": {"type": "object", "properties": {"provisioned": {}}},
        "failureDomains": {"type": "object"}, "conditions": {"type": "array", "items": condition}}});
    let crd = json!({"metadata": {"labels": {"cluster.x-k8s.io/v1beta1": contract, "cluster.x-k8s.io/v1beta2": "v1beta2"}},
        "spec": {"versions": [{"name": version, "schema": {"openAPIV3Schema": {"properties": {"status": status}}}}]}});
    let contract = of_version(&crd, version).unwrap_or(Contract::V1Beta2);
    (KindDescriptor { version: version.into(), crd, ..kind(role) }, contract)
}

/// The status that the plan for such a kind writes.
pub fn write_older(
    (kind, contract): &(KindDescriptor, Contract),
    object: &Value,
    answer: Result<Answer, Problem>,
    outcome: &Outcome,
) -> Value {
    let plan = plan_of(kind.clone(), *contract, object, Ending::Replied(&answer, outcome));
    plan.desired.unwrap()["status"].clone()
}
