//! Three-way merge of JSON.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Fields that may identify the items of a list; the first that fits is used.
const IDENTITIES: [&str; 9] = ["name", "type", "conditionType", "path", "key", "device", "hostPath", "token", "class"];

/// Adds the changes of `ours` since `base` to `theirs`. Where both changed a value, `theirs` wins.
pub fn merge(ours: &Value, base: &Value, theirs: &Value) -> Value {
    merge_at(Some(ours), Some(base), Some(theirs)).unwrap_or(Value::Null)
}

/// The differing parts of two values: differing fields of maps, other values as a whole.
pub fn difference(from: &Value, to: &Value) -> (Value, Value) {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return (from.clone(), to.clone());
    };
    let (mut only_old, mut only_new) = (Map::new(), Map::new());
    for key in keys([old, new]) {
        match (old.get(key), new.get(key)) {
            (Some(from), Some(to)) if from == to => {}
            (Some(from), Some(to)) => {
                let (from, to) = difference(from, to);
                only_old.insert(key.clone(), from);
                only_new.insert(key.clone(), to);
            }
            (from, to) => {
                only_old.extend(from.map(|from| (key.clone(), from.clone())));
                only_new.extend(to.map(|to| (key.clone(), to.clone())));
            }
        }
    }
    (Value::Object(only_old), Value::Object(only_new))
}

fn merge_at(ours: Option<&Value>, base: Option<&Value>, theirs: Option<&Value>) -> Option<Value> {
    if theirs == base {
        return ours.cloned();
    }
    if ours == base {
        return theirs.cloned();
    }
    match (ours, theirs) {
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let nothing = Map::new();
            let base = base.and_then(Value::as_object).unwrap_or(&nothing);
            let merged = keys([ours, theirs])
                .into_iter()
                .filter_map(|key| Some((key.clone(), merge_at(ours.get(key), base.get(key), theirs.get(key))?)));
            Some(Value::Object(merged.collect()))
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => {
            let base = base.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Some(Value::Array(merge_lists(ours, base, theirs)))
        }
        _ => theirs.cloned(),
    }
}

fn merge_lists(ours: &[Value], base: &[Value], theirs: &[Value]) -> Vec<Value> {
    if let Some(identity) =
        IDENTITIES.iter().find(|identity| [ours, base, theirs].iter().all(|list| tells(identity, list)))
    {
        return merge_by(identity, ours, base, theirs);
    }
    if ours.len() != base.len() {
        return theirs.to_vec();
    }
    if theirs.len() == base.len() {
        return ours
            .iter()
            .zip(base)
            .zip(theirs)
            .filter_map(|((ours, base), theirs)| merge_at(Some(ours), Some(base), Some(theirs)))
            .collect();
    }
    // Items that are as they were, wherever they stand now, are ours.
    let mut free: Vec<usize> = (0..base.len()).collect();
    theirs
        .iter()
        .map(|item| match free.iter().position(|at| base[*at] == *item) {
            Some(found) => ours[free.remove(found)].clone(),
            None => item.clone(),
        })
        .collect()
}

fn merge_by(identity: &str, ours: &[Value], base: &[Value], theirs: &[Value]) -> Vec<Value> {
    let find = |list: &'_ [Value], id: &Value| list.iter().position(|item| item.get(identity) == Some(id));
    let ids = |list: &[Value]| list.iter().filter_map(|item| item.get(identity).cloned()).collect::<Vec<_>>();
    let merged = |id: &Value| {
        merge_at(
            find(ours, id).map(|at| &ours[at]),
            find(base, id).map(|at| &base[at]),
            find(theirs, id).map(|at| &theirs[at]),
        )
    };
    let (our_ids, base_ids, their_ids) = (ids(ours), ids(base), ids(theirs));
    // The client put them into another order only if what it had before stands in another order now.
    let before: Vec<&Value> = base_ids.iter().filter(|id| their_ids.contains(id)).collect();
    let now: Vec<&Value> = their_ids.iter().filter(|id| base_ids.contains(id)).collect();
    let (first, then) = if before == now { (&our_ids, &their_ids) } else { (&their_ids, &our_ids) };
    first.iter().chain(then.iter().filter(|id| !first.contains(id))).filter_map(merged).collect()
}

/// Whether every item has the field, with unique values.
fn tells(identity: &str, list: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    list.iter().all(|item| item.get(identity).and_then(Value::as_str).is_some_and(|id| seen.insert(id)))
}

fn keys(maps: [&Map<String, Value>; 2]) -> BTreeSet<&String> {
    maps.into_iter().flat_map(Map::keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_client_left_alone_is_ours_and_what_it_changed_is_its() {
        for (name, ours, base, theirs, expected) in [
            ("nothing changed", json!({"a": 1, "h": 2}), json!({"a": 1}), json!({"a": 1}), json!({"a": 1, "h": 2})),
            ("a change wins", json!({"a": 1, "h": 2}), json!({"a": 1}), json!({"a": 5}), json!({"a": 5, "h": 2})),
            ("a removal wins", json!({"a": {"x": 1, "h": 2}}), json!({"a": {"x": 1}}), json!({}), json!({})),
            ("an addition stays", json!({"h": 2}), json!({}), json!({"b": 3}), json!({"b": 3, "h": 2})),
            ("finer value kept", json!({"t": "1.5s"}), json!({"t": "1s"}), json!({"t": "1s"}), json!({"t": "1.5s"})),
            ("finer value overruled", json!({"t": "1.5s"}), json!({"t": "1s"}), json!({"t": "2s"}), json!({"t": "2s"})),
            (
                "items by name: hidden fields, order and hidden items are kept",
                json!([{"name": "b", "h": 1}, {"name": "a"}, {"name": "hidden"}]),
                json!([{"name": "a"}, {"name": "b"}]),
                json!([{"name": "a"}, {"name": "b", "x": 2}, {"name": "c"}]),
                json!([{"name": "b", "h": 1, "x": 2}, {"name": "a"}, {"name": "hidden"}, {"name": "c"}]),
            ),
            (
                "items by name: one removed, and put into another order",
                json!([{"name": "a", "h": 1}, {"name": "b", "h": 2}, {"name": "c", "h": 3}]),
                json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]),
                json!([{"name": "c"}, {"name": "a"}]),
                json!([{"name": "c", "h": 3}, {"name": "a", "h": 1}]),
            ),
            (
                "items without a name: by place, or as they were",
                json!([{"v": 1, "h": 1}, {"v": 2, "h": 2}]),
                json!([{"v": 1}, {"v": 2}]),
                json!([{"v": 2}]),
                json!([{"v": 2, "h": 2}]),
            ),
        ] {
            let (ours, base, theirs) = (json!({"x": ours}), json!({"x": base}), json!({"x": theirs}));
            assert_eq!(merge(&ours, &base, &theirs), json!({"x": expected}), "{name}");
        }
    }

    #[test]
    fn pieces_that_differ_merge_as_the_whole_does() {
        let from = json!({"same": 1, "spec": {"t": "1s", "l": [1], "m": {"a": 1}}, "gone": 1});
        let to = json!({"same": 1, "spec": {"t": "1.5s", "l": [1, 2], "m": {"a": 1, "b": 2}}});
        let (was, is) = difference(&from, &to);
        assert_eq!(was, json!({"spec": {"t": "1s", "l": [1], "m": {}}, "gone": 1}));
        assert_eq!(is, json!({"spec": {"t": "1.5s", "l": [1, 2], "m": {"b": 2}}}));
        assert_eq!(merge(&is, &was, &from), to);
        assert_eq!(merge(&to, &from, &from), to);
    }
}
