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

/// A conjunction of requirements; without any, everything is selected.
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
    /// Both sides are integers.
    Greater(Arc<str>, i64),
    Less(Arc<str>, i64),
}

/// A selector that cannot be understood. The words are those of the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text ended or went on where the grammar does not allow it.
    #[error("unable to parse requirement: found '{found}', expected: {expected}")]
    Syntax {
        /// What stood there; empty at the end of the text.
        found: String,
        /// What would have been allowed.
        expected: &'static str,
    },
    /// A label key or value that no object can carry.
    #[error("unable to parse requirement: invalid label {what} '{text}'")]
    Label {
        /// `key` or `value`.
        what: &'static str,
        /// The offending text.
        text: String,
    },
    /// `>` and `<` compare integers.
    #[error("for 'Gt', 'Lt' operators, the value must be an integer: '{0}'")]
    NotInteger(String),
    /// A `LabelSelector` with a requirement that says too little.
    #[error("label selector {selector}: {problem}")]
    Expression {
        /// The selector as JSON.
        selector: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Whether a `LabelSelector` has no requirement at all; null has none.
pub fn is_empty(selector: &Value) -> bool {
    let labels = selector.get("matchLabels").and_then(Value::as_object).is_none_or(|labels| labels.is_empty());
    labels && json::items(selector, "/matchExpressions").is_empty()
}

/// Whether a `LabelSelector` selects what has these `metadata.labels`. One that cannot be understood selects nothing.
pub fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    Selector::of(selector).is_ok_and(|selector| selector.matches_labels(labels))
}

impl Selector {
    /// Demands all of these labels with these values.
    pub fn labels<K: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let equals = |(key, value): (K, V)| Requirement::Equals(key.as_ref().into(), value.as_ref().into());
        Self::all(labels.into_iter().map(equals).collect())
    }

    /// Reads the text that kubectl takes. Empty text selects everything.
    ///
    /// # Errors
    /// When the text does not follow the grammar, or names a label that no object can have.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(Self::all)
    }

    /// Reads a `LabelSelector`. An empty one, or null, selects everything.
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

    /// Demands in addition that the label is there.
    #[must_use]
    pub fn with_label(mut self, key: &str) -> Self {
        self.requirements.push(Requirement::Exists(key.into()));
        Self::all(self.requirements)
    }

    /// Demands in addition that the label has this value.
    #[must_use]
    pub fn and_label(mut self, key: &str, value: &str) -> Self {
        self.requirements.push(Requirement::Equals(key.into(), value.into()));
        Self::all(self.requirements)
    }

    /// In the order of their keys, those of one key as they came. They are few, so no sort is made part of every component.
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

    /// Whether what has these labels is selected; `label` finds a label's value by its key.
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

    /// Whether what has these `metadata.labels` is selected.
    pub fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// Whether an object is selected.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.matches(|key| meta::label(object, key))
    }

    /// The labels for which one value is demanded: an index of these finds all that can match.
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
