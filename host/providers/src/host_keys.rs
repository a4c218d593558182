//! Labels and annotations of the host stay as they are, whatever a guest makes of an object.

use capwasm_contract::host_keys::is_hosts;
use capwasm_object::{json, meta};
use serde_json::{Map, Value};

/// Gives `after`, which a guest made of `before`, the host's labels and annotations of `before`, but for those that are `exempt`.
/// `changed` is told of each that differed: its map and its key.
pub fn keep(
    before: &Value,
    after: &mut Value,
    exempt: impl Fn(&str) -> bool,
    mut changed: impl FnMut(&'static str, &str),
) {
    let group = meta::group(before);
    let is_kept = |key: &String| is_hosts(key, group) && !exempt(key);
    for map in ["labels", "annotations"] {
        let none = Map::new();
        let held = meta::field(before, map).as_object().unwrap_or(&none);
        let made = meta::field(after, map).as_object().unwrap_or(&none);
        let keys = held.keys().chain(made.keys().filter(|key| !held.contains_key(*key)));
        let differing: Vec<String> =
            keys.filter(|key| is_kept(key) && held.get(*key) != made.get(*key)).cloned().collect();
        for key in &differing {
            changed(map, key);
            let made = json::map(after, &["metadata", map]);
            match held.get(key) {
                Some(value) => made.insert(key.clone(), value.clone()),
                None => made.remove(key),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capwasm_contract::host_keys::CONVERSION_DATA;
    use serde_json::json;

    #[test]
    fn no_guest_sets_changes_or_removes_what_is_the_hosts() {
        const NAME: &str = "cluster.x-k8s.io/cluster-name";
        let of = |labels: Value| json!({"apiVersion": "a.example/v1", "metadata": {"name": "x", "labels": labels}});
        let rows = [
            (
                "nothing is changed",
                json!({NAME: "c", "a": "1"}),
                json!({NAME: "c", "a": "2"}),
                json!({NAME: "c", "a": "2"}),
                0,
            ),
            ("changed", json!({NAME: "c"}), json!({NAME: "other", "a": "1"}), json!({NAME: "c", "a": "1"}), 1),
            ("set", json!({"a": "1"}), json!({NAME: "other", "a": "1"}), json!({"a": "1"}), 1),
            ("set where there was no map", Value::Null, json!({NAME: "other"}), json!({}), 1),
            ("removed", json!({NAME: "c", "a": "1"}), json!({"a": "1"}), json!({NAME: "c", "a": "1"}), 1),
            ("the whole map is removed", json!({NAME: "c", "a": "1"}), Value::Null, json!({NAME: "c"}), 1),
            ("something else is in its place", json!({NAME: "c"}), json!("text"), json!({NAME: "c"}), 1),
            ("two", json!({NAME: "c"}), json!({"capwasm.dev/provider": "p"}), json!({NAME: "c"}), 2),
        ];
        for (name, before, after, expected, changes) in rows {
            let (before, mut after) = (of(before), of(after));
            let mut changed = 0;
            keep(&before, &mut after, |_| false, |_, _| changed += 1);
            assert_eq!((after["metadata"]["labels"].take(), changed), (expected, changes), "{name}");
        }
    }

    #[test]
    fn what_is_exempt_is_the_guests() {
        let before = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
        let mut after = json!({"metadata": {"annotations": {CONVERSION_DATA: "{}"}}});
        keep(&before, &mut after, |key| key == CONVERSION_DATA, |_, _| {});
        assert_eq!(after, json!({"metadata": {"annotations": {CONVERSION_DATA: "{}", "cluster.x-k8s.io/paused": ""}}}));
    }
}
