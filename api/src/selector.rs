//! metav1 label selectors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json;

/// Whether a selector has no requirement at all (null counts as empty).
pub fn is_empty(selector: &Value) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object).is_none_or(|labels| labels.is_empty());
    labels && json::items(selector, "/matchExpressions").is_empty()
}

/// Whether labels fulfil a selector. An empty selector matches everything; an operator that is not known matches nothing.
pub fn matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let equal = wanted.into_iter().flatten().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str());
    equal && json::items(selector, "/matchExpressions").iter().all(|expression| fulfilled(expression, labels))
}

fn fulfilled(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let Some(key) = json::text(expression, "/key") else {
        return false;
    };
    let value = labels.get(key);
    let listed =
        || value.is_some_and(|value| json::items(expression, "/values").iter().any(|one| one.as_str() == Some(value)));
    match json::text(expression, "/operator") {
        Some("In") => listed(),
        Some("NotIn") => !listed(),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

/// A selector as the text that list requests and `status.selector` take: `a=b,c in (d,e),!f`.
pub fn to_text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for expression in json::items(selector, "/matchExpressions") {
        let key = json::text(expression, "/key").unwrap_or_default();
        let mut values: Vec<&str> = json::items(expression, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match json::text(expression, "/operator") {
            Some("In") => parts.push(format!("{key} in ({values})")),
            Some("NotIn") => parts.push(format!("{key} notin ({values})")),
            Some("Exists") => parts.push(key.to_owned()),
            Some("DoesNotExist") => parts.push(format!("!{key}")),
            _ => {}
        }
    }
    parts.sort();
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_matched_as_kubernetes_does() {
        let labels = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("empty".to_owned(), String::new())]);
        for (selector, expected) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchLabels": {"empty": ""}}), true),
            (json!({"matchLabels": {"absent": ""}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}), false),
            (json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}), true),
            (
                json!({"matchExpressions": [{"key": "empty", "operator": "Exists"}, {"key": "b", "operator": "DoesNotExist"}]}),
                true,
            ),
            (json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}), false),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn a_selector_has_one_text() {
        let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]});
        assert_eq!(to_text(&selector), "!d,a=1,b=2,c in (x,y)");
        assert!(is_empty(&json!({"matchLabels": {}})) && is_empty(&Value::Null) && !is_empty(&selector));
    }
}
