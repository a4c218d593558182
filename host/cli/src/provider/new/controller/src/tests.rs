use capwasm_sdk::test::{TestHost, delete_object, reconcile_object};
use capwasm_sdk::{Fault, Outcome, Place};
use serde_json::{Value, json};

use super::*;

fn object(copies: &[&str]) -> Value {
    json!({
        "apiVersion": "{{name}}.example.org/v1alpha1", "kind": "{{Name}}",
        "metadata": {"name": "o", "namespace": "default", "uid": "u1"}, "spec": {"source": "s", "copies": copies},
    })
}

fn source(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "namespace": "default"}, "data": {"text": text}})
}

/// A pass, carried out as the host would.
fn pass(host: &TestHost, object: &Value) -> Outcome {
    let (result, outcome) = reconcile_object::<{{Name}}>(host, object);
    assert_eq!(result, Ok(()));
    host.carry_out(&outcome);
    outcome
}

/// Names and texts of all ConfigMaps, by name.
fn config_maps(host: &TestHost) -> Vec<(String, String)> {
    let text = |object: &Value| (object::name(object).to_owned(), object::text(object, "/data/text").to_owned());
    let mut all: Vec<_> = host.objects(Place::Management).iter().map(text).collect();
    all.sort();
    all
}

#[test]
fn the_crds_are_what_the_types_say() {
    capwasm_sdk::crd::check(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"), &kinds::custom_resources());
}

#[test]
fn the_source_is_waited_for() {
    let (result, outcome) = reconcile_object::<{{Name}}>(&TestHost::new(), &object(&["a"]));
    assert_eq!(result.unwrap_err().fault, Fault::Waiting);
    assert_eq!(outcome.operations, []);
}

#[test]
fn copies_follow_their_source_and_go_when_nobody_wants_them() {
    let host = TestHost::new().object(Place::Management, source("one"));
    pass(&host, &object(&["a", "b"]));
    host.put(Place::Management, source("two"));
    let outcome = pass(&host, &object(&["b"]));
    assert_eq!(outcome.merged_status()["copies"], 1);
    let left = config_maps(&host);
    assert_eq!(left, [("b".to_owned(), "two".to_owned()), ("s".to_owned(), "two".to_owned())]);
    let (gone, outcome) = delete_object::<{{Name}}>(&host, &object(&["b"]));
    assert_eq!(gone, Ok(false));
    host.carry_out(&outcome);
    assert_eq!(delete_object::<{{Name}}>(&host, &object(&["b"])).0, Ok(true));
    assert_eq!(config_maps(&host).len(), 1, "the source is not ours");
}

#[test]
fn what_is_somebody_elses_stays_as_it_is() {
    let taken = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    let host = TestHost::new().object(Place::Management, source("one")).object(Place::Management, taken);
    let (result, outcome) = reconcile_object::<{{Name}}>(&host, &object(&["a"]));
    assert_eq!(result.unwrap_err().reason, "NameTaken");
    assert_eq!(outcome.operations, []);
}
