//! Label selectors: as kubectl and `labelSelector=` have them (`app=web,tier in (a,b),!legacy,version>3`), and as objects carry them
//! (`LabelSelector`: `matchLabels` and `matchExpressions`).
//!
//! A selector is read once and then matched against many objects, which copies nothing. A requirement that excludes (`!=`, `notin`)
//! holds for objects that lack the label. Requirements are in the order of their keys, as upstream has them, so that selectors that
//! were written differently are equal and have one text.

mod parse;

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde_json::Value;

use crate::{json, meta};

/// A conjunction of requirements; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Requirement {
    Equals(Arc<str>, Arc<str>),
    In(Arc<str>, BTreeSet<Arc<str>>),
    NotIn(Arc<str>, BTreeSet<Arc<str>>),
    Exists(Arc<str>),
    Absent(Arc<str>),
    /// The label's value is an integer greater than this.
    Greater(Arc<str>, i64),
    Less(Arc<str>, i64),
}

/// Why a selector is refused, with the API server's messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A token that the grammar does not allow.
    #[error("unable to parse requirement: found '{found}', expected: {expected}")]
    Syntax {
        /// The token; empty at the end of the text.
        found: String,
        /// The allowed tokens.
        expected: &'static str,
    },
    /// A label key or value that no object can carry.
    #[error("unable to parse requirement: invalid label {what} '{text}'")]
    Label {
        /// `key` or `value`.
        what: &'static str,
        /// The invalid text.
        text: String,
    },
    /// The value of `>` or `<` is no integer.
    #[error("for 'Gt', 'Lt' operators, the value must be an integer: '{0}'")]
    NotInteger(String),
    /// A requirement of a `LabelSelector` is incomplete.
    #[error("label selector {selector}: {problem}")]
    Expression {
        /// The selector as JSON.
        selector: String,
        /// The problem.
        problem: &'static str,
    },
}

/// Whether a `LabelSelector` has no requirements; null has none.
pub fn is_empty(selector: &Value) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object).is_none_or(|labels| labels.is_empty());
    labels && json::items(selector, "/matchExpressions").is_empty()
}

/// Whether a `LabelSelector` matches these `metadata.labels`. An invalid one matches nothing.
pub fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    Selector::of(selector).is_ok_and(|selector| selector.matches_labels(labels))
}

impl Selector {
    /// Requires these labels with these values.
    pub fn labels<K: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let equals = |(key, value): (K, V)| Requirement::Equals(key.as_ref().into(), value.as_ref().into());
        Self::all(labels.into_iter().map(equals).collect())
    }

    /// Parses a selector as kubectl takes it. Empty text selects everything.
    ///
    /// # Errors
    /// When the text does not follow the grammar, or names a label that no object can have.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(Self::all)
    }

    /// Parses a `LabelSelector`. An empty one, or null, selects everything.
    ///
    /// # Errors
    /// When an expression has no key, an operator that is not known, or no values where it needs some.
    pub fn of(selector: &Value) -> Result<Self, SelectorError> {
        let error = |problem| SelectorError::Expression { selector: selector.to_string(), problem };
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| error("a label's value is no text"))?;
            requirements.push(Requirement::Equals(key.as_str().into(), value.into()));
        }
        for expression in json::items(selector, "/matchExpressions") {
            let key: Arc<str> = json::text(expression, "/key").ok_or_else(|| error("no key"))?.into();
            // One by one: collecting them would bring a sort of its own, 7 kB of every component.
            let mut values = BTreeSet::new();
            for value in json::items(expression, "/values").iter().filter_map(Value::as_str) {
                values.insert(Arc::from(value));
            }
            requirements.push(match json::text(expression, "/operator") {
                Some("In" | "NotIn") if values.is_empty() => return Err(error("no values")),
                Some("In") => Requirement::In(key, values),
                Some("NotIn") => Requirement::NotIn(key, values),
                Some("Exists") => Requirement::Exists(key),
                Some("DoesNotExist") => Requirement::Absent(key),
                _ => return Err(error("unknown operator")),
            });
        }
        Ok(Self::all(requirements))
    }

    /// Adds: the label exists.
    #[must_use]
    pub fn with_label(mut self, key: &str) -> Self {
        self.requirements.push(Requirement::Exists(key.into()));
        Self::all(self.requirements)
    }

    /// Adds: the label has this value.
    #[must_use]
    pub fn and_label(mut self, key: &str, value: &str) -> Self {
        self.requirements.push(Requirement::Equals(key.into(), value.into()));
        Self::all(self.requirements)
    }

    /// Sorts by key, keeping the order within a key. They are few, so no sort is linked into every component.
    fn all(given: Vec<Requirement>) -> Self {
        let mut requirements: Vec<Requirement> = Vec::with_capacity(given.len());
        for requirement in given {
            let at = requirements.partition_point(|known| known.key() <= requirement.key());
            requirements.insert(at, requirement);
        }
        Self { requirements }
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether these labels match; `label` returns a label's value by key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let number = |key: &str| label(key).and_then(|value| value.parse::<i64>().ok());
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::Equals(key, value) => label(key) == Some(value),
            Requirement::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
            Requirement::Greater(key, bound) => number(key).is_some_and(|found| found > *bound),
            Requirement::Less(key, bound) => number(key).is_some_and(|found| found < *bound),
        })
    }

    /// Whether these `metadata.labels` match.
    pub fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// Whether an object's labels match.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.matches(|key| meta::label(object, key))
    }

    /// Labels with one required value: an index of these finds all matching objects.
    pub fn exact(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.requirements.iter().filter_map(|requirement| match requirement {
            Requirement::Equals(key, value) => Some((key, value)),
            Requirement::In(key, values) if values.len() == 1 => Some((key, values.first()?)),
            _ => None,
        })
    }
}

impl Requirement {
    fn key(&self) -> &str {
        match self {
            Self::Equals(key, _)
            | Self::In(key, _)
            | Self::NotIn(key, _)
            | Self::Exists(key)
            | Self::Absent(key)
            | Self::Greater(key, _)
            | Self::Less(key, _) => key,
        }
    }
}

impl fmt::Display for Selector {
    /// The text that [`Selector::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match requirement {
                Requirement::Equals(key, value) => write!(f, "{key}={value}")?,
                Requirement::In(key, values) => set(f, key, "in", values)?,
                Requirement::NotIn(key, values) => set(f, key, "notin", values)?,
                Requirement::Exists(key) => f.write_str(key)?,
                Requirement::Absent(key) => write!(f, "!{key}")?,
                Requirement::Greater(key, bound) => write!(f, "{key}>{bound}")?,
                Requirement::Less(key, bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

fn set(f: &mut fmt::Formatter<'_>, key: &str, operator: &str, values: &BTreeSet<Arc<str>>) -> fmt::Result {
    write!(f, "{key} {operator} (")?;
    for (index, value) in values.iter().enumerate() {
        f.write_str(if index > 0 { "," } else { "" })?;
        f.write_str(value)?;
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests;
