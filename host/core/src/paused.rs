//! Pausing, shared by all kinds.

use capwasm_api::conditions::Condition;
use capwasm_api::names::{annotations, condition, reason};
use capwasm_object::{json, meta};
use serde_json::Value;

/// The `Paused` condition of an object; reconciliation continues only if it is False. `cluster` is its Cluster (or the
/// object itself).
pub(crate) fn condition(object: &Value, cluster: Option<&Value>) -> Condition {
    let mut why = Vec::new();
    if cluster.is_some_and(|cluster| json::flag(cluster, "/spec/paused") == Some(true)) {
        why.push("Cluster spec.paused is set to true".to_owned());
    }
    if meta::annotation(object, annotations::PAUSED).is_some() {
        why.push(format!("{} has the {} annotation", meta::kind(object), annotations::PAUSED));
    }
    if why.is_empty() {
        Condition::new(condition::PAUSED, false, reason::NOT_PAUSED)
    } else {
        Condition::new(condition::PAUSED, true, reason::PAUSED).message(why.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::condition;
    use capwasm_api::conditions::Status;
    use serde_json::json;

    #[test]
    fn the_cluster_or_an_annotation_pauses() {
        let plain = json!({"kind": "Machine"});
        let annotated = json!({"kind": "Machine", "metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
        let running = json!({"spec": {}});
        let held = json!({"spec": {"paused": true}});
        for (object, cluster, expected) in [
            (&plain, Some(&running), Status::False),
            (&plain, Some(&held), Status::True),
            (&annotated, Some(&running), Status::True),
            (&annotated, None, Status::True),
            (&plain, None, Status::False),
        ] {
            assert_eq!(condition(object, cluster).status, expected);
        }
    }
}
