//! What the node lifecycle controller of a real control plane does: a node whose kubelet is silent becomes Unknown and gets the
//! taints that go with it, its pods are not ready any more; a node that is back loses them.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{NODES, lease, now};
use crate::rest::{Rest, RestError};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Says that a node's kubelet went silent.
///
/// # Errors
/// See [`RestError`].
pub async fn mark_unknown(rest: &Rest, node: &str) -> Result<(), RestError> {
    let path = format!("{NODES}/{node}");
    let Some(mut found) = rest.get(&path).await? else { return Ok(()) };
    let (time, mut changed) = (now(), false);
    for condition in found["status"]["conditions"].as_array_mut().into_iter().flatten() {
        if condition["status"] != "Unknown" {
            condition["status"] = json!("Unknown");
            condition["reason"] = json!("NodeStatusUnknown");
            condition["message"] = json!("Kubelet stopped posting node status.");
            condition["lastTransitionTime"] = json!(time);
            changed = true;
        }
    }
    if changed {
        let patch = json!({ "status": { "conditions": found["status"]["conditions"] } });
        rest.merge(&format!("{path}/status"), &patch).await?;
    }
    settle(rest, node).await?;
    let pods = rest.get(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")).await?.unwrap_or_default();
    for pod in pods["items"].as_array().into_iter().flatten() {
        mark_pod_not_ready(rest, pod).await?;
    }
    Ok(())
}

async fn mark_pod_not_ready(rest: &Rest, pod: &Value) -> Result<(), RestError> {
    let mut conditions = pod["status"]["conditions"].clone();
    let ready = conditions.as_array_mut().into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let Some(ready) = ready.filter(|ready| ready["status"] == "True") else { return Ok(()) };
    ready["status"] = json!("False");
    ready["lastTransitionTime"] = json!(now());
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    let path = format!("/api/v1/namespaces/{}/pods/{}/status", text("namespace"), text("name"));
    match rest.merge(&path, &json!({ "status": { "conditions": conditions } })).await {
        Err(error) if error.code() == Some(404) => Ok(()),
        other => other.map(drop),
    }
}

/// The taints of a node by its Ready condition; `None` when they are right already.
fn taints(node: &Value, time: &str) -> Option<Vec<Value>> {
    let conditions = node["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?["status"].as_str()?;
    let wanted = match ready {
        "True" => None,
        "False" => Some(NOT_READY),
        _ => Some(UNREACHABLE),
    };
    let given = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let mut taints: Vec<Value> = given
        .iter()
        .filter(|taint| {
            let ours = [UNREACHABLE, NOT_READY].into_iter().find(|key| taint["key"] == *key);
            ours.is_none() || ours == wanted
        })
        .cloned()
        .collect();
    for effect in wanted.iter().flat_map(|_| ["NoSchedule", "NoExecute"]) {
        if !taints
            .iter()
            .any(|taint| Some(taint["key"].as_str().unwrap_or_default()) == wanted && taint["effect"] == effect)
        {
            taints.push(json!({ "key": wanted, "effect": effect, "timeAdded": time }));
        }
    }
    (taints != given).then_some(taints)
}

/// Gives a node the taints that its Ready condition asks for.
///
/// # Errors
/// See [`RestError`].
pub async fn settle(rest: &Rest, node: &str) -> Result<(), RestError> {
    let path = format!("{NODES}/{node}");
    let Some(found) = rest.get(&path).await? else { return Ok(()) };
    let Some(taints) = taints(&found, &now()) else { return Ok(()) };
    let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
    // Guarded: others write taints too.
    let patch = json!({ "metadata": { "resourceVersion": found["metadata"]["resourceVersion"] }, "spec": { "taints": taints } });
    rest.merge(&path, &patch).await.map(drop)
}

/// Looks at all nodes: returns those that renewed no Lease for `grace`, and gives the others the taints that they should have.
///
/// # Errors
/// See [`RestError`].
pub async fn scan(rest: &Rest, grace: Duration) -> Result<Vec<String>, RestError> {
    let nodes = rest.get(NODES).await?.unwrap_or_default();
    let leases = rest.get(lease::LEASES).await?.unwrap_or_default();
    let (now, time) = (Timestamp::now(), now());
    let mut silent = Vec::new();
    for node in nodes["items"].as_array().into_iter().flatten() {
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        let lease = leases["items"].as_array().into_iter().flatten().find(|lease| lease["metadata"]["name"] == name);
        if lease.and_then(|lease| lease::age(lease, now)).is_none_or(|age| age > grace.as_secs_f64()) {
            silent.push(name.to_owned());
        } else if taints(node, &time).is_some() {
            settle(rest, name).await?;
        }
    }
    Ok(silent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn taints_follow_the_ready_condition_and_leave_others_alone() {
        let node = |ready: &str, taints: Value| json!({ "spec": { "taints": taints }, "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        let (other, gone) =
            (json!({ "key": "a", "effect": "NoSchedule" }), json!({ "key": UNREACHABLE, "effect": "NoSchedule" }));
        let keys = |found: Option<Vec<Value>>| {
            found.map(|taints| taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
        };
        let owned = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(keys(taints(&node("True", json!([other])), "t")), None);
        assert_eq!(keys(taints(&node("True", json!([other, gone])), "t")), owned(&["a"]));
        assert_eq!(keys(taints(&node("Unknown", json!([other, gone])), "t")), owned(&["a", UNREACHABLE, UNREACHABLE]));
        assert_eq!(keys(taints(&node("False", json!([gone])), "t")), owned(&[NOT_READY, NOT_READY]));
    }
}
