//! The Lease that a kubelet renews in `kube-node-lease`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::NODES;
use crate::rest::{Rest, RestError};

/// Collection of the Leases.
pub const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// What a kubelet promises by default.
const SECONDS: i64 = 40;

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Renews a node's Lease, creating it when it is missing. A node that was deleted gets none, as with a real kubelet.
///
/// # Errors
/// See [`RestError`].
pub async fn renew(rest: &Rest, node: &str) -> Result<(), RestError> {
    let time = now();
    match rest.merge(&format!("{LEASES}/{node}"), &json!({ "spec": { "renewTime": time } })).await {
        Err(error) if error.code() == Some(404) => {}
        other => return other.map(drop),
    }
    let Some(owner) = rest.get(&format!("{NODES}/{node}")).await? else { return Ok(()) };
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": node, "namespace": "kube-node-lease",
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": node, "uid": owner["metadata"]["uid"] }],
        },
        "spec": { "holderIdentity": node, "leaseDurationSeconds": SECONDS, "renewTime": time },
    });
    match rest.create(LEASES, &lease).await {
        // kubeadm and the kubelet's own heartbeat met.
        Err(error) if error.code() == Some(409) => Ok(()),
        other => other.map(drop),
    }
}

/// Seconds since a Lease was renewed; `None` for one that never was.
pub fn age(lease: &Value, now: Timestamp) -> Option<f64> {
    let renewed: Timestamp = lease["spec"]["renewTime"].as_str()?.parse().ok()?;
    Some(now.duration_since(renewed).as_secs_f64())
}
