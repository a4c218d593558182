//! Label selectors, as kubectl writes them and as objects carry them, plus "owned by".
//!
//! A selector that demands an exact label (`k=v`) or an owner is *indexed*: neither a list nor a changed object has to
//! look at more than the objects, or the interests, that share that label or owner.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde_json::Value;

/// A label key and its value.
pub type Label = (Arc<str>, Arc<str>);

/// Which objects of a kind are meant. All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
    owner: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Requirement {
    Equals(Arc<str>, Arc<str>),
    In(Arc<str>, BTreeSet<Arc<str>>),
    NotIn(Arc<str>, BTreeSet<Arc<str>>),
    Exists(Arc<str>),
    Absent(Arc<str>),
}

/// A selector that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("label selector {selector:?}: {problem}")]
pub struct SelectorError {
    selector: String,
    problem: &'static str,
}

impl Selector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects objects that carry all of these labels.
    pub fn labels<K: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let requirements =
            labels.into_iter().map(|(k, v)| Requirement::Equals(k.as_ref().into(), v.as_ref().into())).collect();
        Self { requirements, owner: None }
    }

    /// Selects objects with an owner reference to this uid.
    pub fn owned_by(uid: &str) -> Self {
        Self { requirements: Vec::new(), owner: Some(uid.into()) }
    }

    /// Demands in addition that the label exists.
    #[must_use]
    pub fn with_label(mut self, key: &str) -> Self {
        self.requirements.push(Requirement::Exists(key.into()));
        self
    }

    /// Demands in addition that the label has this value.
    #[must_use]
    pub fn and_label(mut self, key: &str, value: &str) -> Self {
        self.requirements.push(Requirement::Equals(key.into(), value.into()));
        self
    }

    /// Demands in addition an owner reference to this uid.
    #[must_use]
    pub fn and_owner(mut self, uid: &str) -> Self {
        self.owner = Some(uid.into());
        self
    }

    /// Reads a selector as kubectl takes it: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Empty selects everything.
    ///
    /// # Errors
    /// When it does not follow that form.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let error = |problem| SelectorError { selector: text.to_owned(), problem };
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(error("empty requirement"));
            }
            requirements.push(parse_requirement(part).map_err(error)?);
        }
        Ok(Self { requirements, owner: None })
    }

    /// Reads the `LabelSelector` of an object: `matchLabels` and `matchExpressions`. An empty one selects everything.
    ///
    /// # Errors
    /// When an expression has no key, an unknown operator, or no values where it needs some.
    pub fn from_label_selector(selector: &Value) -> Result<Self, SelectorError> {
        let error = |problem| SelectorError { selector: selector.to_string(), problem };
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().ok_or_else(|| error("a label value is not a string"))?;
                requirements.push(Requirement::Equals(key.as_str().into(), value.into()));
            }
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key: Arc<str> = expression.get("key").and_then(Value::as_str).ok_or_else(|| error("no key"))?.into();
            let values: BTreeSet<Arc<str>> = expression
                .get("values")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(Arc::from)
                .collect();
            let requirement = match expression.get("operator").and_then(Value::as_str) {
                Some("In" | "NotIn") if values.is_empty() => return Err(error("no values")),
                Some("In") => Requirement::In(key, values).simplified(),
                Some("NotIn") => Requirement::NotIn(key, values),
                Some("Exists") => Requirement::Exists(key),
                Some("DoesNotExist") => Requirement::Absent(key),
                _ => return Err(error("unknown operator")),
            };
            requirements.push(requirement);
        }
        Ok(Self { requirements, owner: None })
    }

    /// Whether an object with these labels and owners is meant. An owner requirement holds when `owners` has it.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>, owners: &[Arc<str>]) -> bool {
        self.owner.as_ref().is_none_or(|owner| owners.contains(owner))
            && self.requirements.iter().all(|requirement| match requirement {
                Requirement::Equals(key, value) => label(key) == Some(value),
                Requirement::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
                Requirement::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
                Requirement::Exists(key) => label(key).is_some(),
                Requirement::Absent(key) => label(key).is_none(),
            })
    }

    /// The same for an object as JSON.
    pub fn matches_object(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let owners: Vec<Arc<str>> = object
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|owner| owner.get("uid").and_then(Value::as_str))
            .map(Arc::from)
            .collect();
        self.matches(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str), &owners)
    }

    /// The owner that is demanded.
    pub(crate) fn owner(&self) -> Option<&Arc<str>> {
        self.owner.as_ref()
    }

    /// The exact labels that are demanded.
    pub(crate) fn exact(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.requirements.iter().filter_map(|requirement| match requirement {
            Requirement::Equals(key, value) => Some((key, value)),
            _ => None,
        })
    }
}

impl Requirement {
    /// A set of one value is an exact label, which is indexed.
    fn simplified(self) -> Self {
        match self {
            Self::In(key, values) if values.len() == 1 => match values.into_iter().next() {
                Some(value) => Self::Equals(key, value),
                None => Self::Exists(key),
            },
            other => other,
        }
    }
}

impl fmt::Display for Selector {
    /// The form that the server takes; an owner cannot be said there and is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |values: &BTreeSet<Arc<str>>| values.iter().map(|v| &**v).collect::<Vec<_>>().join(",");
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match requirement {
                Requirement::Equals(key, value) => write!(f, "{key}={value}")?,
                Requirement::In(key, values) => write!(f, "{key} in ({})", set(values))?,
                Requirement::NotIn(key, values) => write!(f, "{key} notin ({})", set(values))?,
                Requirement::Exists(key) => f.write_str(key)?,
                Requirement::Absent(key) => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_requirement(part: &str) -> Result<Requirement, &'static str> {
    let key = |text: &str| -> Result<Arc<str>, &'static str> {
        let text = text.trim();
        let fine = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        if fine { Ok(text.into()) } else { Err("bad label key") }
    };
    if let Some(rest) = part.strip_suffix(')') {
        let (head, values) = rest.split_once('(').ok_or("no opening parenthesis")?;
        let values: BTreeSet<Arc<str>> = values.split(',').map(|value| Arc::from(value.trim())).collect();
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(name), Some("in"), None) => Ok(Requirement::In(key(name)?, values).simplified()),
            (Some(name), Some("notin"), None) => Ok(Requirement::NotIn(key(name)?, values)),
            _ => Err("neither `in` nor `notin` before the values"),
        };
    }
    if let Some(name) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(key(name)?));
    }
    if let Some((name, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key(name)?, BTreeSet::from([Arc::from(value.trim())])));
    }
    if let Some((name, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::Equals(key(name)?, value.trim().into()));
    }
    Ok(Requirement::Exists(key(part)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn object(labels: Value) -> Value {
        json!({"metadata": {"labels": labels, "ownerReferences": [{"uid": "u1"}]}})
    }

    #[test]
    fn selectors_select_as_kubectl_would() {
        let table = [
            ("", json!({}), true),
            ("a=b", json!({"a": "b"}), true),
            ("a==b", json!({"a": "c"}), false),
            ("a!=b", json!({}), true),
            ("a!=b", json!({"a": "b"}), false),
            ("a in (b, c),d", json!({"a": "c", "d": ""}), true),
            ("a in (b)", json!({}), false),
            ("a notin (b,c)", json!({"a": "c"}), false),
            ("a notin (b,c)", json!({}), true),
            ("!a", json!({"a": ""}), false),
            ("x.io/a, !x.io/b", json!({"x.io/a": "1"}), true),
        ];
        for (text, labels, expected) in table {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(selector.matches_object(&object(labels.clone())), expected, "{text} on {labels}");
            assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector, "{text} survives printing");
        }
        for text in ["a=b,", "a in b)", "a under (b)", "=b", "a b"] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_objects_selector_reads_like_the_textual_one() {
        let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "c", "operator": "Exists"}, {"key": "d", "operator": "NotIn", "values": ["e"]},
            {"key": "f", "operator": "In", "values": ["g"]}]});
        let selector = Selector::from_label_selector(&selector).unwrap();
        assert_eq!(selector, Selector::parse("a=b,c,d notin (e),f in (g)").unwrap());
        assert!(Selector::from_label_selector(&json!({"matchExpressions": [{"key": "a", "operator": "In"}]})).is_err());
    }

    #[test]
    fn an_owner_is_a_requirement_like_a_label() {
        assert!(Selector::owned_by("u1").matches_object(&object(json!({}))));
        assert!(!Selector::owned_by("u2").matches_object(&object(json!({}))));
        assert!(!Selector::labels([("a", "b")]).and_owner("u1").matches_object(&object(json!({}))));
    }
}
