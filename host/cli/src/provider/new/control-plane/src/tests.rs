use capwasm_sdk::Fault;
use capwasm_sdk::test::{TestHost, reconcile};
use serde_json::{Value, json};

use super::*;

fn plane() -> Value {
    json!({"metadata": {"name": "p", "namespace": "default", "uid": "u1"}, "spec": {"version": "v1.34.0"}})
}

fn host() -> TestHost {
    TestHost::new().related("cluster", json!({"metadata": {"name": "c"}}))
}

#[test]
fn the_crds_are_what_the_types_say() {
    capwasm_sdk::crd::check(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"), &kinds::custom_resources());
}

#[test]
fn the_kubeconfig_is_waited_for() {
    let (answer, _) = reconcile::<{{Name}}>(&host(), &plane());
    assert_eq!(answer.unwrap_err().fault, Fault::Waiting);
}

#[test]
fn with_a_kubeconfig_it_is_initialized() {
    let (answer, outcome) = reconcile::<{{Name}}>(&host().secret("c-kubeconfig", "value", "kubeconfig"), &plane());
    let answer = answer.unwrap();
    assert!(answer.initialized);
    assert_eq!(answer.version.as_deref(), Some("v1.34.0"));
    assert_eq!(outcome.condition_named("Available").unwrap().status, Some(true));
}
