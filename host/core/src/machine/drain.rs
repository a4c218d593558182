//! Draining a Node: which Pods are in the way, and what to do about each.
//!
//! Pods of DaemonSets and static Pods stay; `cluster.x-k8s.io/drain` on a Pod says `skip` or `wait-completed`; for all others
//! the [rules](super::drain_rules) say it. Rounds go by order: nothing of a later one is touched while something of an earlier one
//! is there.

use capwasm_object::{json, meta};
use serde_json::Value;

use super::drain_rules::{Behavior, Rules};

/// Label on Pods: `skip`, or `wait-completed`.
const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";

/// Pods that remain on a Node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Drain<'a> {
    /// To evict now.
    pub(super) evict: Vec<&'a Value>,
    /// Terminating, or to be waited for.
    pub(super) wait: Vec<&'a Value>,
    /// To evict in later rounds.
    pub(super) later: Vec<&'a Value>,
}

impl Drain<'_> {
    pub(super) fn is_done(&self) -> bool {
        self.evict.is_empty() && self.wait.is_empty() && self.later.is_empty()
    }
}

/// Sorts the Pods of a Node. On an unreachable Node, terminating Pods are ignored: no kubelet would end them.
pub(super) fn sort<'a>(pods: impl IntoIterator<Item = &'a Value>, unreachable: bool, rules: &Rules) -> Drain<'a> {
    let in_the_way: Vec<(&Value, Way, i64)> =
        pods.into_iter().filter_map(|pod| way(pod, unreachable, rules).map(|(way, order)| (pod, way, order))).collect();
    let round = in_the_way.iter().map(|(.., order)| *order).min();
    let mut drain = Drain::default();
    for (pod, way, order) in in_the_way {
        match way {
            _ if Some(order) != round => drain.later.push(pod),
            Way::Evict => drain.evict.push(pod),
            Way::Wait => drain.wait.push(pod),
        }
    }
    drain
}

/// What to do about a Pod.
enum Way {
    Evict,
    Wait,
}

/// What to do about a Pod, and in which round; `None` when it may stay.
fn way(pod: &Value, unreachable: bool, rules: &Rules) -> Option<(Way, i64)> {
    let completed = matches!(json::text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
    let daemon = json::items(pod, "/metadata/ownerReferences")
        .iter()
        .any(|owner| json::text(owner, "/kind") == Some("DaemonSet"));
    if daemon || meta::annotation(pod, "kubernetes.io/config.mirror").is_some() {
        return None;
    }
    let behavior = match meta::label(pod, DRAIN_LABEL) {
        Some("skip") => Behavior::Skip,
        Some("wait-completed") => Behavior::WaitCompleted(0),
        _ => rules.behavior(pod),
    };
    match behavior {
        Behavior::Skip => None,
        Behavior::WaitCompleted(order) => (!completed).then_some((Way::Wait, order)),
        Behavior::Drain(order) if meta::is_deleting(pod) => (!unreachable).then_some((Way::Wait, order)),
        Behavior::Drain(order) => Some((Way::Evict, order)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use serde_json::json;

    fn pod(extra: &Value) -> Value {
        let mut pod = json!({"metadata": {"name": "p"}});
        if let Some(patch) = extra.as_object() {
            for (key, value) in patch {
                pod["metadata"][key] = value.clone();
            }
        }
        pod
    }

    #[test]
    fn pods_are_evicted_waited_for_or_left() {
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        for (what, extra, unreachable, evict, wait) in [
            ("plain", json!({}), false, 1, 0),
            ("of a DaemonSet", json!({"ownerReferences": [{"kind": "DaemonSet"}]}), false, 0, 0),
            ("static", json!({"annotations": {"kubernetes.io/config.mirror": "x"}}), false, 0, 0),
            ("skipped", json!({"labels": {"cluster.x-k8s.io/drain": "skip"}}), false, 0, 0),
            ("waited for", json!({"labels": {"cluster.x-k8s.io/drain": "wait-completed"}}), false, 0, 1),
            ("going", going.clone(), false, 0, 1),
            ("going, but its node is lost", going, true, 0, 0),
        ] {
            let pod = pod(&extra);
            let drain = sort([&pod], unreachable, &Rules::default());
            assert_eq!((drain.evict.len(), drain.wait.len()), (evict, wait), "{what}");
        }
    }

    #[test]
    fn a_round_waits_for_the_one_before() {
        let rule = |name: &str, app: &str, behavior: &str, order: i64| {
            Arc::new(json!({"metadata": {"name": name}, "spec": {"drain": {"behavior": behavior, "order": order},
                "pods": [{"selector": {"matchLabels": {"app": app}}}]}}))
        };
        let all =
            vec![rule("a", "db", "Drain", 10), rule("b", "job", "WaitCompleted", 20), rule("c", "log", "Skip", 0)];
        let rules = Rules::of(all, &json!({}), &json!({}));
        let app = |app: &str| pod(&json!({"labels": {"app": app}}));
        let (web, db, job, log) = (app("web"), app("db"), app("job"), app("log"));
        let mut done = job.clone();
        done["status"] = json!({"phase": "Succeeded"});
        let mut leaving = web.clone();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        for (what, pods, evict, wait, later) in [
            ("all", vec![&web, &db, &job, &log], 1, 0, 2),
            ("one still goes", vec![&leaving, &db], 0, 1, 1),
            ("the second round", vec![&db, &job, &log], 1, 0, 1),
            ("the last", vec![&job, &log], 0, 1, 0),
            ("drained", vec![&done, &log], 0, 0, 0),
        ] {
            let drain = sort(pods, false, &rules);
            assert_eq!((drain.evict.len(), drain.wait.len(), drain.later.len()), (evict, wait, later), "{what}");
            assert_eq!(drain.is_done(), evict + wait + later == 0, "{what}");
        }
    }
}
