//! Sets of field paths, and their `FieldsV1` form.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// One step of a field path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Element {
    /// `f:name`.
    Field(String),
    /// `k:{..}`: an item of a keyed list, as JSON text with sorted names.
    Key(String),
    /// `v:..`: a member of a set, as JSON text.
    Value(String),
    /// `i:0`: an item by position; nothing here writes it, but clients may.
    Index(i64),
}

/// A set of field paths, as a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    nodes: BTreeMap<Element, Node>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// The path that ends here is in the set.
    member: bool,
    children: Set,
}

impl Set {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.nodes.entry(first.clone()).or_default();
        match rest {
            [] => node.member = true,
            rest => node.children.insert(rest),
        }
    }

    /// Whether the path of this single step is in the set.
    pub(super) fn has(&self, element: &Element) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// The paths below a step, without it.
    pub(super) fn below(&self, element: &Element) -> Option<&Set> {
        self.nodes.get(element).map(|node| &node.children).filter(|children| !children.is_empty())
    }

    pub(super) fn union(&mut self, other: &Set) {
        for (element, theirs) in &other.nodes {
            let node = self.nodes.entry(element.clone()).or_default();
            node.member |= theirs.member;
            node.children.union(&theirs.children);
        }
    }

    pub(super) fn subtract(&mut self, other: &Set) {
        self.combine(other, &|mine, theirs| mine && !theirs);
    }

    pub(super) fn intersect(&mut self, other: &Set) {
        self.nodes.retain(|element, _| other.nodes.contains_key(element));
        self.combine(other, &|mine, theirs| mine && theirs);
    }

    /// Recomputes membership where `other` speaks, and drops what became empty.
    fn combine(&mut self, other: &Set, keep: &dyn Fn(bool, bool) -> bool) {
        self.nodes.retain(|element, node| {
            if let Some(theirs) = other.nodes.get(element) {
                node.member = keep(node.member, theirs.member);
                if keep(true, false) {
                    node.children.combine(&theirs.children, keep);
                } else {
                    node.children.intersect(&theirs.children);
                }
            } else if !keep(true, false) {
                *node = Node::default();
            }
            node.member || !node.children.is_empty()
        });
    }

    /// Removes a field with everything below it.
    pub(super) fn remove_tree(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else { return };
        let element = Element::Field((*first).to_owned());
        if rest.is_empty() {
            self.nodes.remove(&element);
        } else if let Some(node) = self.nodes.get_mut(&element) {
            node.children.remove_tree(rest);
            if !node.member && node.children.is_empty() {
                self.nodes.remove(&element);
            }
        }
    }

    /// Takes a single field out of the set but leaves what is below.
    pub(super) fn remove_member(&mut self, name: &str) {
        let element = Element::Field(name.to_owned());
        if let Some(node) = self.nodes.get_mut(&element) {
            node.member = false;
            if node.children.is_empty() {
                self.nodes.remove(&element);
            }
        }
    }

    /// Keeps only what is at or below one top-level field.
    pub(super) fn keep_only(&mut self, name: &str) {
        self.nodes.retain(|element, _| matches!(element, Element::Field(field) if field == name));
    }

    /// Visits the direct steps: element, membership and what is below.
    pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = (&Element, &mut bool, &mut Set)> {
        self.nodes.iter_mut().map(|(element, node)| (element, &mut node.member, &mut node.children))
    }

    /// Every path of the set as text, such as `.spec.list[name="a"].x`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.write_paths("", &mut paths);
        paths
    }

    fn write_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        for (element, node) in &self.nodes {
            let path = format!("{prefix}{element}");
            node.children.write_paths(&path, paths);
            if node.member {
                paths.push(path);
            }
        }
    }

    /// Whether a member is one of a set that is still in its `FieldsV1` form, as [`Set::to_fields_v1`] writes it.
    pub(super) fn meets(&self, fields: &Value) -> bool {
        let Some(fields) = fields.as_object().filter(|fields| !fields.is_empty()) else { return false };
        self.nodes.iter().any(|(element, node)| {
            fields.get(&element.key()).is_some_and(|inner| {
                let member = inner.as_object().is_none_or(|inner| inner.is_empty() || inner.contains_key("."));
                node.member && member || node.children.meets(inner)
            })
        })
    }

    pub(super) fn to_fields_v1(&self) -> Value {
        let mut fields = Map::new();
        for (element, node) in &self.nodes {
            let mut value = node.children.to_fields_v1();
            if node.member
                && !node.children.is_empty()
                && let Some(inner) = value.as_object_mut()
            {
                inner.insert(".".to_owned(), Value::Object(Map::new()));
            }
            fields.insert(element.key(), value);
        }
        Value::Object(fields)
    }

    pub(super) fn from_fields_v1(json: &Value) -> Option<Set> {
        let mut set = Set::default();
        for (key, value) in json.as_object()? {
            if key == "." {
                continue;
            }
            let (kind, text) = key.split_at_checked(2)?;
            let canonical = |text: &str| serde_json::from_str::<Value>(text).ok().map(|value| sorted(&value));
            let element = match kind {
                "f:" => Element::Field(text.to_owned()),
                "k:" => Element::Key(canonical(text)?),
                "v:" => Element::Value(canonical(text)?),
                "i:" => Element::Index(text.parse().ok()?),
                _ => return None,
            };
            let children = Set::from_fields_v1(value)?;
            let member = children.is_empty() || value.get(".").is_some();
            set.nodes.insert(element, Node { member, children });
        }
        Some(set)
    }
}

/// JSON text in which the names of objects are sorted, so that equal values have equal text.
pub(super) fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            let inner: Vec<String> = names
                .into_iter()
                .map(|(name, value)| format!("{}:{}", Value::String(name.clone()), sorted(value)))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        scalar => scalar.to_string(),
    }
}

impl Element {
    fn key(&self) -> String {
        match self {
            Element::Field(name) => format!("f:{name}"),
            Element::Key(json) => format!("k:{json}"),
            Element::Value(json) => format!("v:{json}"),
            Element::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Value(json) => write!(f, "[={json}]"),
            Element::Index(index) => write!(f, "[{index}]"),
            Element::Key(json) => {
                let keys: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
        }
    }
}
