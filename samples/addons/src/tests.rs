#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod addon;
mod rules;
mod set;

use capwasm_sdk::test::{TestHost, reconcile_object};
use capwasm_sdk::{Outcome, Place, Problem, object};
use serde_json::{Value, json};

use crate::Addons;
use crate::kinds::{self, API_VERSION, CLUSTER_LABEL};

/// A pass over an object, carried out as the host would.
fn pass(host: &TestHost, object: &Value) -> (Result<(), Problem>, Outcome) {
    let (result, outcome) = reconcile_object::<Addons>(host, object);
    host.carry_out(&outcome);
    (result, outcome)
}

fn cluster(name: &str, environment: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"environment": environment}},
    })
}

fn catalog(minimum_nodes: usize, manifests: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "AddonCatalog",
        "metadata": {"name": "standard", "namespace": "default", "uid": "catalog"},
        "spec": {"addons": [{"name": "banner", "minimumNodes": minimum_nodes, "manifests": manifests}]},
    })
}

fn addon(name: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Addon",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "labels": {CLUSTER_LABEL: "one"},
        },
        "spec": {"clusterName": "one", "catalog": "standard", "addon": "banner"},
    })
}

fn names(host: &TestHost, place: Place, kind: &str) -> Vec<String> {
    let objects = host.objects(place);
    let of_kind = objects.iter().filter(|object| object::kind(object) == kind);
    let mut names: Vec<String> = of_kind.map(|object| object::name(object).to_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_crds_are_what_the_types_say() {
    capwasm_sdk::crd::check(concat!(env!("CARGO_MANIFEST_DIR"), "/crds"), &kinds::custom_resources());
}
