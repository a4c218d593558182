//! AddonSet of v1alpha1, which had its selector as text and no deletion policy. The other kinds have one version.

use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};

use crate::kinds::GROUP;

/// Keeps the policy, for which v1alpha1 has no word.
const POLICY: &str = "addons.example.org/deletion-policy";

/// `object` in the version `to`. It may be incomplete: what is missing stays missing.
pub fn convert(mut object: Value, to: &str) -> Result<Value, Problem> {
    let to_older = match to.strip_prefix(GROUP).and_then(|version| version.strip_prefix('/')) {
        Some("v1alpha1") => true,
        Some("v1beta1") => false,
        _ => return Err(Problem::unsupported("UnknownVersion", format!("there is no version {to}"))),
    };
    let from_older = object::text(&object, "/apiVersion").ends_with("/v1alpha1");
    if object::kind(&object) == "AddonSet" {
        match (from_older, to_older) {
            (false, true) => older(&mut object),
            (true, false) => newer(&mut object)?,
            _ => {}
        }
    }
    object["apiVersion"] = to.into();
    Ok(object)
}

fn older(set: &mut Value) {
    let Some(spec) = set.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(selector) = spec.remove("clusterSelector") {
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        let terms =
            labels.into_iter().flatten().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
        spec.insert("selector".to_owned(), terms.collect::<Vec<_>>().join(",").into());
    }
    if let Some(policy) = spec.remove("deletionPolicy") {
        object::merge(set, &json!({"metadata": {"annotations": {POLICY: policy}}}));
    }
}

fn newer(set: &mut Value) -> Result<(), Problem> {
    let policy =
        set.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut).and_then(|all| all.remove(POLICY));
    if let Some(policy) = policy {
        object::merge(set, &json!({"spec": {"deletionPolicy": policy}}));
    }
    let Some(spec) = set.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let Some(selector) = spec.remove("selector") else { return Ok(()) };
    let terms = selector.as_str().unwrap_or_default().split(',').filter(|term| !term.is_empty());
    let label = |term: &str| match term.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), Value::from(value))),
        None => Err(Problem::invalid("BadSelector", format!("spec.selector: {term} is not name=value"))),
    };
    let labels: Map<String, Value> = terms.map(label).collect::<Result<_, _>>()?;
    spec.insert("clusterSelector".to_owned(), json!({"matchLabels": labels}));
    Ok(())
}
