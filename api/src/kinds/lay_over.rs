//! Merges typed values into the untyped ones that they were read from.

use serde::Serialize;
use serde_json::{Map, Value};

/// Writes what was decided (`to`) over `target`, the value that `from` was read from: what differs between the two is written, and
/// everything else stays as it is, whatever is known of it here.
///
/// - A field that was there and is `None` (or empty, where its type leaves it out then) is removed, with all in it.
/// - A field that is `None` before and after stays, even when `target` has something there that the type could not read.
/// - Structs and maps are laid over field by field; unknown fields survive at every level.
/// - Lists are replaced as a whole once an entry differs.
pub fn lay_over<T: Serialize + PartialEq>(target: &mut Value, from: &T, to: &T) {
    if from == to {
        return;
    }
    // Views are structs with text for keys: these always serialise.
    if let (Ok(from), Ok(to)) = (serde_json::to_value(from), serde_json::to_value(to)) {
        lay(target, &from, to);
    }
}

fn lay(target: &mut Value, from: &Value, to: Value) {
    let Value::Object(to) = to else {
        *target = to;
        return;
    };
    let absent = Map::new();
    let from = from.as_object().unwrap_or(&absent);
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    // The lines above made it a map.
    let Some(target) = target.as_object_mut() else { return };
    let is = |fields: &Map<String, Value>, key: &String| fields.get(key).is_some_and(|value| !value.is_null());
    for key in from.keys().filter(|key| is(from, key) && !is(&to, key)) {
        target.remove(key);
    }
    for (key, value) in to.into_iter().filter(|(key, value)| !value.is_null() && from.get(key) != Some(value)) {
        let before = from.get(&key).unwrap_or(&Value::Null);
        lay(target.entry(key.clone()).or_insert(Value::Null), before, value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;
    use crate::kinds::{
        ClusterStatus, Endpoint, MachineAddress, MachinePoolStatus, MachineSetSpec, MachineSpec, MachineStatus,
        NodeRef, ReplicaCounts,
    };

    /// `object` with the changes of `decide`.
    fn decided<T: DeserializeOwned + Serialize + PartialEq + Clone>(object: Value, decide: impl Fn(&mut T)) -> Value {
        let from: T = serde_json::from_value(object.clone()).unwrap();
        let mut to = from.clone();
        decide(&mut to);
        let mut target = object;
        lay_over(&mut target, &from, &to);
        target
    }

    #[test]
    fn what_is_not_known_survives_at_every_level() {
        let object = json!({
            "new": {"a": [1]},
            "initialization": {"later": true},
            "nodeRef": {"name": "n", "more": 1},
            "conditions": [{"type": "Ready"}],
            "deprecated": {"v1beta1": {"conditions": []}},
        });
        let expected = json!({
            "new": {"a": [1]},
            "initialization": {"later": true, "infrastructureProvisioned": true},
            "nodeRef": {"name": "m", "more": 1},
            "phase": "Running",
            "conditions": [{"type": "Ready"}],
            "deprecated": {"v1beta1": {"conditions": []}},
        });
        let changed = decided(object, |status: &mut MachineStatus| {
            status.initialization.infrastructure_provisioned = Some(true);
            status.node_ref = Some(NodeRef { name: "m".to_owned() });
            status.phase = "Running".to_owned();
        });
        assert_eq!(changed, expected);
    }

    #[test]
    fn what_was_there_and_is_none_is_removed_and_what_was_none_stays() {
        let object = json!({"nodeRef": {"name": "n", "more": 1}, "failureDomain": null, "nodeInfo": null,
            "initialization": {"infrastructureProvisioned": true}, "deletion": {}, "phase": "Running"});
        let changed = decided(object, |status: &mut MachineStatus| {
            status.node_ref = None;
            status.initialization.infrastructure_provisioned = None;
            status.phase = String::new();
        });
        let expected = json!({"failureDomain": null, "nodeInfo": null, "initialization": {}, "deletion": {}});
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_list_is_replaced_when_it_differs_and_an_empty_one_removes_it() {
        let object = json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.1", "new": 1}]});
        let address = |text: &str| MachineAddress { kind: "InternalIP".to_owned(), address: text.to_owned() };
        for (what, addresses, expected) in [
            ("as read: unknown fields of entries stay", vec![address("10.0.0.1")], object.clone()),
            (
                "another",
                vec![address("10.0.0.2")],
                json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]}),
            ),
            ("none", vec![], json!({})),
        ] {
            let changed = decided(object.clone(), |status: &mut MachineStatus| status.addresses = addresses.clone());
            assert_eq!(changed, expected, "{what}");
        }
    }

    #[test]
    fn nothing_is_made_where_nothing_was_decided() {
        for object in [json!({}), json!({"addresses": []}), json!({"initialization": {}}), json!({"phase": ""})] {
            assert_eq!(decided(object.clone(), |_: &mut MachineStatus| {}), object);
            let changed = decided(object.clone(), |status: &mut MachineStatus| status.last_updated = Some("t".into()));
            let mut expected = object;
            expected["lastUpdated"] = json!("t");
            assert_eq!(changed, expected, "no field but the decided one");
        }
        let mut absent = Value::Null;
        let to = MachinePoolStatus { replicas: Some(0), ..MachinePoolStatus::default() };
        lay_over(&mut absent, &MachinePoolStatus::default(), &to);
        assert_eq!(absent, json!({"replicas": 0}), "an object without a status gets one");
    }

    #[test]
    fn counters_that_are_no_longer_reported_go_one_by_one() {
        let object = json!({"controlPlane": {"replicas": 3, "readyReplicas": 2, "new": 1}});
        let changed = decided(object, |status: &mut ClusterStatus| {
            status.control_plane = Some(ReplicaCounts { replicas: Some(1), ..ReplicaCounts::default() });
        });
        assert_eq!(changed, json!({"controlPlane": {"replicas": 1, "new": 1}}));
        let none = decided(json!({}), |status: &mut ClusterStatus| status.workers = Some(ReplicaCounts::default()));
        assert_eq!(none, json!({"workers": {}}), "nothing is counted, and that is said");
    }

    #[test]
    fn specs_are_written_like_statuses() {
        let object = json!({"clusterName": "c", "bootstrap": {"configRef": {"kind": "K", "name": "n", "apiGroup": "g", "new": 1}}, "new": true});
        let changed = decided(object, |spec: &mut MachineSpec| {
            spec.provider_id = Some("p://m".to_owned());
            spec.bootstrap.data_secret_name = Some("s".to_owned());
        });
        assert_eq!(
            changed,
            json!({"clusterName": "c", "new": true, "providerID": "p://m",
                "bootstrap": {"configRef": {"kind": "K", "name": "n", "apiGroup": "g", "new": 1}, "dataSecretName": "s"}})
        );
        let object = json!({"selector": {"matchLabels": {"a": "1"}}, "template": {"metadata": {"labels": {"b": "2"}}, "spec": {"new": 1}}});
        let changed = decided(object, |spec: &mut MachineSetSpec| {
            capwasm_object::json::set(&mut spec.selector, &["matchLabels", "c"], "x");
            spec.template.metadata.labels.insert("c".to_owned(), "x".to_owned());
        });
        assert_eq!(
            changed,
            json!({"selector": {"matchLabels": {"a": "1", "c": "x"}},
                "template": {"metadata": {"labels": {"b": "2", "c": "x"}}, "spec": {"new": 1}}})
        );
        let endpoint = decided(json!({}), |endpoint: &mut Endpoint| endpoint.host = "h".to_owned());
        assert_eq!(endpoint, json!({"host": "h"}), "the port was not decided");
    }
}
