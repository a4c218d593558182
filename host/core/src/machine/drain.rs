//! Draining a Node: which Pods are in the way, and what to do about each.
//!
//! The simple case: Pods of DaemonSets and static Pods stay; `cluster.x-k8s.io/drain` on a Pod says `skip` or `wait-completed`;
//! every other Pod is evicted. MachineDrainRules and their order are not looked at.

use capwasm_api::json;
use serde_json::Value;

/// Label on Pods: `skip`, or `wait-completed`.
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";

/// What is in the way of a drained Node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Drain<'a> {
    /// To be evicted now.
    pub(super) evict: Vec<&'a Value>,
    /// Going already, or to be waited for.
    pub(super) wait: Vec<&'a Value>,
}

impl Drain<'_> {
    pub(super) fn is_done(&self) -> bool {
        self.evict.is_empty() && self.wait.is_empty()
    }
}

/// Sorts the Pods of a Node. Of an unreachable Node, Pods that were told to go do not hold the drain: no kubelet would end them.
pub(super) fn sort<'a>(pods: impl IntoIterator<Item = &'a Value>, unreachable: bool) -> Drain<'a> {
    let mut drain = Drain::default();
    for pod in pods {
        let completed = matches!(json::text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
        let daemon = json::items(pod, "/metadata/ownerReferences")
            .iter()
            .any(|owner| json::text(owner, "/kind") == Some("DaemonSet"));
        let mirror = json::annotation(pod, "kubernetes.io/config.mirror").is_some();
        match json::label(pod, DRAIN_LABEL) {
            _ if daemon || mirror => {}
            Some("skip") => {}
            Some("wait-completed") if !completed => drain.wait.push(pod),
            Some("wait-completed") => {}
            _ if json::is_deleting(pod) => {
                if !unreachable {
                    drain.wait.push(pod);
                }
            }
            _ => drain.evict.push(pod),
        }
    }
    drain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_are_evicted_waited_for_or_left() {
        let pod = |extra: Value| {
            let mut pod = json!({"metadata": {"name": "p"}});
            if let Some(patch) = extra.as_object() {
                for (key, value) in patch {
                    pod["metadata"][key] = value.clone();
                }
            }
            pod
        };
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        for (what, pod, unreachable, evict, wait) in [
            ("plain", pod(json!({})), false, 1, 0),
            ("of a DaemonSet", pod(json!({"ownerReferences": [{"kind": "DaemonSet"}]})), false, 0, 0),
            ("static", pod(json!({"annotations": {"kubernetes.io/config.mirror": "x"}})), false, 0, 0),
            ("skipped", pod(json!({"labels": {"cluster.x-k8s.io/drain": "skip"}})), false, 0, 0),
            ("waited for", pod(json!({"labels": {"cluster.x-k8s.io/drain": "wait-completed"}})), false, 0, 1),
            ("going", pod(going.clone()), false, 0, 1),
            ("going, but its node is lost", pod(going), true, 0, 0),
        ] {
            let drain = sort([&pod], unreachable);
            assert_eq!((drain.evict.len(), drain.wait.len()), (evict, wait), "{what}");
        }
    }
}
