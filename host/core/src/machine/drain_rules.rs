//! MachineDrainRules: what happens to Pods when the Node of a Machine is drained.

use std::collections::BTreeMap;
use std::sync::Arc;

use capwasm_object::{json, meta, selector::Selector};
use serde_json::Value;

/// What happens to a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    /// Evict in the round of this order, lower ones first.
    Drain(i64),
    Skip,
    /// Wait for its completion, in the round of this order.
    WaitCompleted(i64),
}

/// Rules for a Machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rules {
    /// Sorted by name.
    rules: Vec<Arc<Value>>,
    /// Labels of the workload cluster's namespaces, if a rule needs them.
    pub(super) namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl Rules {
    /// The rules of the namespace that match this Machine of this Cluster.
    pub(super) fn of(all: Vec<Arc<Value>>, machine: &Value, cluster: &Value) -> Rules {
        let (machine, cluster) = (labels(machine), labels(cluster));
        let is_for = |rule: &Arc<Value>| {
            any(rule, "/spec/machines", |entry| {
                fits(entry, "selector", &machine) && fits(entry, "clusterSelector", &cluster)
            })
        };
        let mut rules: Vec<_> = all.into_iter().filter(is_for).collect();
        rules.sort_by(|a, b| meta::name(a).cmp(meta::name(b)));
        Rules { rules, namespaces: BTreeMap::new() }
    }

    /// Whether a rule selects by namespace labels.
    pub(super) fn ask_for_namespaces(&self) -> bool {
        let asks = |entry: &Value| entry.get("namespaceSelector").is_some();
        self.rules.iter().any(|rule| json::items(rule, "/spec/pods").iter().any(asks))
    }

    /// Behavior by the first matching rule; by default Pods are evicted in the first round.
    pub(super) fn behavior(&self, pod: &Value) -> Behavior {
        let (own, none) = (labels(pod), BTreeMap::new());
        let namespace = self.namespaces.get(meta::namespace(pod)).unwrap_or(&none);
        let found = self.rules.iter().find(|rule| {
            any(rule, "/spec/pods", |entry| {
                fits(entry, "selector", &own) && fits(entry, "namespaceSelector", namespace)
            })
        });
        let Some(rule) = found else { return Behavior::Drain(0) };
        let order = json::number(rule, "/spec/drain/order").unwrap_or(0);
        match json::text(rule, "/spec/drain/behavior") {
            Some("Skip") => Behavior::Skip,
            Some("WaitCompleted") => Behavior::WaitCompleted(order),
            _ => Behavior::Drain(order),
        }
    }
}

/// Whether any entry of a list matches; an empty list matches everything.
fn any(rule: &Value, list: &str, holds: impl Fn(&Value) -> bool) -> bool {
    let entries = json::items(rule, list);
    entries.is_empty() || entries.iter().any(holds)
}

/// Whether a selector matches; an absent one does.
fn fits(entry: &Value, field: &str, labels: &BTreeMap<String, String>) -> bool {
    entry.get(field).is_none_or(|wanted| {
        Selector::of(wanted).is_ok_and(|wanted| wanted.matches(|key| labels.get(key).map(String::as_str)))
    })
}

pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let found = object.pointer("/metadata/labels").and_then(Value::as_object);
    found.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_rule_by_name_that_is_for_the_machine_and_the_pod_counts() {
        let rule = |name: &str, spec: Value| Arc::new(json!({"metadata": {"name": name}, "spec": spec}));
        let with = |key: &str, value: &str| json!({"matchLabels": {key: value}});
        let all = vec![
            rule("z-all", json!({"drain": {"behavior": "Drain", "order": 5}})),
            rule(
                "b-db",
                json!({"drain": {"behavior": "WaitCompleted", "order": 9}, "pods": [{"selector": with("app", "db")}]}),
            ),
            rule(
                "a-elsewhere",
                json!({"drain": {"behavior": "Skip"}, "machines": [{"clusterSelector": with("env", "test")}]}),
            ),
            rule(
                "c-gpu",
                json!({"drain": {"behavior": "Skip"}, "machines": [{"selector": with("gpu", "no")}, {"selector": with("pool", "a"), "clusterSelector": with("env", "prod")}],
                "pods": [{"selector": with("app", "gpu"), "namespaceSelector": with("team", "x")}]}),
            ),
        ];
        let machine = json!({"metadata": {"labels": {"pool": "a"}}});
        let cluster = json!({"metadata": {"labels": {"env": "prod"}}});
        let mut rules = Rules::of(all, &machine, &cluster);
        assert!(rules.ask_for_namespaces());
        rules.namespaces = BTreeMap::from([("x".to_owned(), BTreeMap::from([("team".to_owned(), "x".to_owned())]))]);
        let pod = |namespace: &str, app: &str| json!({"metadata": {"namespace": namespace, "labels": {"app": app}}});
        for (what, pod, expected) in [
            ("selected by label", pod("y", "db"), Behavior::WaitCompleted(9)),
            ("selected by label and namespace", pod("x", "gpu"), Behavior::Skip),
            ("in another namespace", pod("y", "gpu"), Behavior::Drain(5)),
            ("any other", pod("y", "web"), Behavior::Drain(5)),
        ] {
            assert_eq!(rules.behavior(&pod), expected, "{what}");
        }
        assert_eq!(Rules::default().behavior(&pod("y", "db")), Behavior::Drain(0), "without rules");
    }
}
