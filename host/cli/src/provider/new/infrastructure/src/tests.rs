use capwasm_sdk::test::{TestHost, deprovision_machine, provision_cluster, provision_machine};
use capwasm_sdk::{Fault, Place};
use serde_json::{Value, json};

use super::*;

fn machine() -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "{{Name}}Machine",
        "metadata": {"name": "m", "namespace": "default", "uid": "u1"}, "spec": {"size": "Large"},
    })
}

#[test]
fn the_crds_are_what_the_types_say() {
    capwasm_sdk::crd::check(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"), &kinds::custom_resources());
}

#[test]
fn a_cluster_has_an_endpoint_in_its_domain() {
    let cluster = json!({"metadata": {"name": "c"}, "spec": {"domain": "test"}});
    let (answer, _) = provision_cluster::<{{Name}}>(&TestHost::new(), &cluster);
    assert_eq!(answer.unwrap().endpoint.unwrap().host, "c.test");
}

#[test]
fn a_machine_is_provisioned_once_its_server_runs_and_gone_once_that_is() {
    let host = TestHost::new().bootstrap_data("value", "#cloud-config\n");
    let (answer, outcome) = provision_machine::<{{Name}}>(&host, &machine());
    assert_eq!(answer.unwrap_err().fault, Fault::Waiting);
    host.carry_out(&outcome);

    let (answer, outcome) = provision_machine::<{{Name}}>(&host, &machine());
    let answer = answer.unwrap();
    assert!(answer.provisioned);
    assert_eq!(answer.provider_id.as_deref(), Some("{{name}}:///server-u1"));
    assert_eq!(outcome.operations, [], "nothing is done twice");

    let (gone, outcome) = deprovision_machine::<{{Name}}>(&host, &machine());
    assert_eq!(gone, Ok(false));
    host.carry_out(&outcome);
    let (gone, _) = deprovision_machine::<{{Name}}>(&host, &machine());
    assert_eq!(gone, Ok(true));
    assert_eq!(host.objects(Place::Management), Vec::<Value>::new());
}

#[test]
fn a_call_that_is_repeated_asks_for_the_same_server() {
    let host = TestHost::new().bootstrap_data("value", "#cloud-config\n");
    let (_, first) = provision_machine::<{{Name}}>(&host, &machine());
    let (_, second) = provision_machine::<{{Name}}>(&host, &machine());
    assert_eq!(first.operations, second.operations);
}

#[test]
fn a_size_that_there_is_not_is_refused() {
    let mut machine = machine();
    machine["spec"]["size"] = json!("Huge");
    let (answer, _) = provision_machine::<{{Name}}>(&TestHost::new(), &machine);
    assert_eq!(answer.unwrap_err().fault, Fault::Invalid);
}
