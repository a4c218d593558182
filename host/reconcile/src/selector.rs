//! Selectors of objects of a kind: by labels and by owner.
//!
//! A selector with an exact label (`k=v`) or an owner is *indexed*: lists and changed objects look only at objects, or
//! interests, with the same label or owner.

use std::{fmt, sync::Arc};

pub use capwasm_object::selector::SelectorError;
use capwasm_object::{owners, selector};
use serde_json::Value;

/// Label key and value.
pub type Label = (Arc<str>, Arc<str>);

/// Selects objects that meet all requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    labels: selector::Selector,
    owner: Option<Arc<str>>,
}

impl From<selector::Selector> for Selector {
    fn from(labels: selector::Selector) -> Self {
        Self { labels, owner: None }
    }
}

impl Selector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects objects that carry all of these labels.
    pub fn labels<K: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        selector::Selector::labels(labels).into()
    }

    /// Selects objects with an owner reference to this uid.
    pub fn owned_by(uid: &str) -> Self {
        Self::everything().and_owner(uid)
    }

    /// Reads a selector as kubectl takes it: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Empty selects everything.
    ///
    /// # Errors
    /// When it does not follow that form.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        selector::Selector::parse(text).map(Self::from)
    }

    /// Reads the `LabelSelector` of an object: `matchLabels` and `matchExpressions`. An empty one selects everything.
    ///
    /// # Errors
    /// When an expression has no key, an unknown operator, or no values where it needs some.
    pub fn from_label_selector(selector: &Value) -> Result<Self, SelectorError> {
        selector::Selector::of(selector).map(Self::from)
    }

    /// Adds: the label exists.
    #[must_use]
    pub fn with_label(mut self, key: &str) -> Self {
        self.labels = self.labels.with_label(key);
        self
    }

    /// Adds: the label has this value.
    #[must_use]
    pub fn and_label(mut self, key: &str, value: &str) -> Self {
        self.labels = self.labels.and_label(key, value);
        self
    }

    /// Adds: an owner reference to this uid.
    #[must_use]
    pub fn and_owner(mut self, uid: &str) -> Self {
        self.owner = Some(uid.into());
        self
    }

    /// Whether an object with these labels and owners is selected.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>, owners: &[Arc<str>]) -> bool {
        self.owner.as_ref().is_none_or(|owner| owners.contains(owner)) && self.labels.matches(label)
    }

    /// As [`Selector::matches`], for an object as JSON.
    pub fn matches_object(&self, object: &Value) -> bool {
        self.owner.as_ref().is_none_or(|owner| owners::is_owned_by(object, owner)) && self.labels.matches_object(object)
    }

    /// The required owner.
    pub(crate) fn owner(&self) -> Option<&Arc<str>> {
        self.owner.as_ref()
    }

    /// The required exact labels.
    pub(crate) fn exact(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.labels.exact()
    }
}

impl fmt::Display for Selector {
    /// The `labelSelector` parameter of requests; without the owner, which it cannot express.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.labels.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_is_a_requirement_like_a_label() {
        let object = json!({"metadata": {"labels": {}, "ownerReferences": [{"uid": "u1"}]}});
        assert!(Selector::owned_by("u1").matches_object(&object));
        assert!(!Selector::owned_by("u2").matches_object(&object));
        assert!(!Selector::labels([("a", "b")]).and_owner("u1").matches_object(&object));
    }
}
