//! JSON merge patches (RFC 7396): the difference of two objects, and its application.
//!
//! A merge patch removes a field with null, so null and absence are the same here: neither is told from the other in a
//! difference, and what a patch adds carries no nulls, except within lists, which are replaced as a whole.

use serde_json::{Map, Value};

/// The patch from `from` to `to`; `None` when they are equal.
pub fn diff(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return (from != to).then(|| without_nulls(to));
    };
    let patch = diff_fields(old, new, |_| true);
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The patch from one map to another, of the fields that are `wanted`.
pub fn diff_fields(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    wanted: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    let keys = to.keys().chain(from.keys().filter(|key| !to.contains_key(*key))).filter(|key| wanted(key));
    keys.filter_map(|key| Some((key.clone(), diff_optional(from.get(key), to.get(key))?))).collect()
}

/// The patch of a field from one value to another, absent ones included; `None` when they are equal.
pub fn diff_optional(from: Option<&Value>, to: Option<&Value>) -> Option<Value> {
    match (from.filter(|from| !from.is_null()), to.filter(|to| !to.is_null())) {
        (None, None) => None,
        (None, Some(to)) => Some(without_nulls(to)),
        (Some(_), None) => Some(Value::Null),
        (Some(from), Some(to)) => diff(from, to),
    }
}

/// Applies a patch to `target`, which becomes a map if the patch is one.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(held) = target {
        apply_fields(held, changes);
    }
}

/// Applies the changes of a patch to the fields of a map.
pub fn apply_fields<'a>(held: &mut Map<String, Value>, changes: impl IntoIterator<Item = (&'a String, &'a Value)>) {
    for (key, change) in changes {
        if change.is_null() {
            held.remove(key);
        } else if let Some(known) = held.get_mut(key) {
            apply(known, change);
        } else {
            held.insert(key.clone(), without_nulls(change));
        }
    }
}

/// Whether the patch changes nothing in `target`.
pub fn is_in(target: &Value, patch: &Value) -> bool {
    let (Value::Object(held), Value::Object(changes)) = (target, patch) else {
        return target == patch;
    };
    changes.iter().all(|(key, change)| match held.get(key).filter(|held| !held.is_null()) {
        Some(held) => !change.is_null() && is_in(held, change),
        None => change.is_null(),
    })
}

/// A copy without null fields, at any depth outside of lists.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arbtest::arbitrary::{Result, Unstructured};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_holds_exactly_the_difference_and_leads_there() {
        let table = [
            ("same", json!({"a": 1}), json!({"a": 1}), None),
            ("null is absence", json!({"a": null}), json!({"b": null}), None),
            ("a null that goes", json!({"a": null}), json!({}), None),
            ("changed", json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), Some(json!({"b": 3}))),
            ("removed", json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            ("nested", json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}}))),
            ("lists are replaced", json!({"a": [1, 2]}), json!({"a": [1, 3]}), Some(json!({"a": [1, 3]}))),
            ("new subtree", json!({}), json!({"a": {"b": null, "c": {}}}), Some(json!({"a": {"c": {}}}))),
            ("kind of value", json!({"a": {"b": 1}}), json!({"a": 1}), Some(json!({"a": 1}))),
            ("a map in place of a text", json!({"a": "x"}), json!({"a": {"b": null}}), Some(json!({"a": {}}))),
        ];
        for (row, from, to, expected) in table {
            let patch = diff(&from, &to);
            assert_eq!(patch, expected, "{row}");
            if let Some(patch) = patch {
                let mut target = from;
                apply(&mut target, &patch);
                assert_eq!(target, without_nulls(&to), "{row}: the patch leads there");
            }
        }
    }

    #[test]
    fn a_patch_adds_replaces_and_clears() {
        let mut target = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
        apply(&mut target, &json!({"a": {"b": null, "c": [3], "e": {"f": null}}, "d": {"g": 1}}));
        assert_eq!(target, json!({"a": {"c": [3], "e": {}}, "d": {"g": 1}}));
    }

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn patches_do_what_the_rfc_says() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut object = target.clone();
            apply(&mut object, &patch);
            assert_eq!(object, expected, "{target} with {patch}");
        }
    }

    #[test]
    fn a_difference_leads_where_it_was_computed_for_and_is_in_nothing_else() {
        arbtest::arbtest(|u| {
            let (from, to) = (value(u, 3)?, value(u, 3)?);
            let mut target = from.clone();
            match diff(&from, &to) {
                None => assert!(is_in(&from, &to) || !from.is_object(), "{from} and {to}"),
                Some(patch) => {
                    assert!(!is_in(&from, &patch) || to.is_null(), "{patch} of {from} and {to}");
                    apply(&mut target, &patch);
                    assert!(is_in(&target, &patch), "{patch} is in {target}");
                    assert_eq!(without_nulls(&target), without_nulls(&to), "{patch} of {from}");
                    assert_eq!(diff(&target, &to), None);
                }
            }
            Ok(())
        });
    }

    /// Whatever a patch finds done already it does not change, and the other way round.
    #[test]
    fn a_patch_is_in_what_it_does_not_change() {
        arbtest::arbtest(|u| {
            let (target, patch) = (value(u, 3)?, value(u, 3)?);
            let mut changed = target.clone();
            apply(&mut changed, &patch);
            if target.is_object() && patch.is_object() {
                assert_eq!(is_in(&target, &patch), diff(&target, &changed).is_none(), "{patch} in {target}");
            }
            Ok(())
        });
    }

    fn value(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
        Ok(match u.int_in_range(0..=if depth == 0 { 2 } else { 5 })? {
            0 => Value::Null,
            1 => json!(u.int_in_range(0..=2)?),
            2 => json!(u.choose(&["", "x"])?),
            3 => Value::Array(vec![value(u, depth - 1)?]),
            _ => {
                let mut fields = Map::new();
                for key in ["a", "b", "c"] {
                    if u.arbitrary()? {
                        fields.insert(key.to_owned(), value(u, depth - 1)?);
                    }
                }
                Value::Object(fields)
            }
        })
    }
}
