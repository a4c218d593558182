//! What is written is declared: an API server drops what a definition does not know.
use super::{cluster, machine, pool};
use serde_json::{Value, json};

fn schema(crd: &str) -> Value {
    let crd: Value = serde_json::from_str(crd).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// Paths of `value` that the schema does not know.
fn unknown(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                let inner =
                    schema.get("properties").and_then(|known| known.get(name)).or(schema.get("additionalProperties"));
                match inner {
                    Some(inner) => unknown(inner, value, &format!("{at}.{name}")),
                    None => vec![format!("{at}.{name}")],
                }
            })
            .collect(),
        Value::Array(items) => {
            items.iter().flat_map(|item| unknown(&schema["items"], item, &format!("{at}[]"))).collect()
        }
        _ => Vec::new(),
    }
}

fn assert_declared(crd: &str, object: &Value) {
    let schema = schema(crd);
    for part in ["spec", "status"] {
        let missing = unknown(&schema["properties"][part], &object[part], part);
        assert!(missing.is_empty(), "{missing:?} of {object:#}");
    }
}

#[test]
fn every_field_that_is_written_is_part_of_its_definition() {
    let mut cluster = cluster::world();
    cluster::settle(&mut cluster);
    assert_declared(include_str!("../../crds/dockerclusters.json"), &cluster.object);
    let mut machine = machine::world_of(false);
    machine
        .host
        .set_related("infrastructure-cluster", vec![json!({"status": {"loadBalancer": {"backends": ["quick-cp-1"]}}})]);
    for _ in 0..8 {
        machine::pass(&mut machine);
        assert_declared(include_str!("../../crds/dockermachines.json"), &machine.object);
    }
    assert_eq!(machine.object["status"]["loadBalancerConfigured"], true);
    let mut pool = pool::Pool::new(2);
    pool.settle();
    assert_declared(include_str!("../../crds/dockermachinepools.json"), &pool.object);
    for member in pool.members() {
        assert_declared(include_str!("../../crds/dockermachines.json"), &member);
    }
}
