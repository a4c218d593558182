//! Identity of list items: `x-kubernetes-list-type` set and map.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::checks::error;
use super::error::{FieldError, FieldReason};
use super::path::Path;
use super::{ListType, Schema};

/// Identity of an item of a keyed list: the values of its keys in the order of the schema, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ItemKey(String);

impl ItemKey {
    /// The key of `item`, or `None` when the item is not an object or all keys are missing.
    fn of(item: &Value, keys: &[Box<str>], items: Option<&Schema>) -> Option<ItemKey> {
        let fields = item.as_object()?;
        let mut text = String::new();
        let mut any = false;
        for key in keys {
            let fallback =
                || items.and_then(|schema| schema.property(key)).and_then(|schema| schema.default.as_deref());
            let value = fields.get(key.as_ref()).or_else(fallback);
            any |= value.is_some();
            match value {
                Some(value) => text.push_str(&value.to_string()),
                None => text.push('-'),
            }
            text.push('\u{1f}');
        }
        any.then_some(ItemKey(text))
    }
}

/// Finds the old item with the same key as a new item, for ratcheting and transition rules.
pub(super) struct Continuation<'a> {
    by_key: HashMap<ItemKey, &'a Value>,
    keys: &'a [Box<str>],
    items: Option<&'a Schema>,
}

impl<'a> Continuation<'a> {
    /// `None` when the schema does not tell items apart or there is no old list.
    pub(super) fn new(schema: &'a Schema, old: Option<&'a Value>) -> Option<Self> {
        let ListType::Map(keys) = &schema.list else { return None };
        let old = old?.as_array()?;
        let items = schema.items.as_deref();
        let by_key = old.iter().filter_map(|item| Some((ItemKey::of(item, keys, items)?, item))).collect();
        Some(Continuation { by_key, keys, items })
    }

    pub(super) fn of(&self, item: &Value) -> Option<&'a Value> {
        self.by_key.get(&ItemKey::of(item, self.keys, self.items)?).copied()
    }
}

/// Appends an error for every item that repeats an earlier one.
pub(super) fn check(schema: &Schema, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match &schema.list {
        ListType::Atomic => {}
        ListType::Set => check_set(items, path, errors),
        ListType::Map(keys) => {
            let item_schema = schema.items.as_deref();
            let mut seen = HashSet::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                let Some(key) = ItemKey::of(item, keys, item_schema) else { continue };
                if !seen.insert(key) {
                    let shown: serde_json::Map<String, Value> = keys
                        .iter()
                        .filter_map(|key| Some((key.to_string(), item.get(key.as_ref())?.clone())))
                        .collect();
                    let shown = Value::Object(shown);
                    errors.push(error(&path.index(index), FieldReason::Duplicate, format_args!("{shown}")));
                }
            }
        }
    }
}

/// Appends an error for every value that occurs twice.
pub(super) fn check_set(items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let text = item.to_string();
        if !seen.insert(text) {
            errors.push(error(&path.index(index), FieldReason::Duplicate, format_args!("{item}")));
        }
    }
}
