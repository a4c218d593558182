//! Schemas that stand in a document several times become components of their own.
//!
//! kubectl decodes the document of its version anew for every object that it creates, which takes it longer than all else. Templates
//! repeat what they are templates of, and conditions stand everywhere: without repetitions a third less is decoded.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::reference;

/// Shorter ones stay: a reference is not much shorter.
const SHORTEST: usize = 150;

/// Shares structures below the schemas of kinds. `explain` shows the last part of a component's name as the type of a field; `Object`
/// is what it shows of structures in place.
pub(super) fn share(schemas: Map<String, Value>) -> Map<String, Value> {
    let mut sharing = Sharing { counts: HashMap::new(), components: HashMap::new(), shared: Map::new() };
    schemas.values().for_each(|schema| sharing.count(schema));
    let kinds = schemas.into_iter().map(|(name, schema)| {
        let schema = sharing.within(&name, schema);
        (name, schema)
    });
    let kinds: Vec<_> = kinds.collect();
    let mut all = sharing.shared;
    all.extend(kinds);
    all
}

struct Sharing {
    /// How often each structure occurs, by its text.
    counts: HashMap<String, usize>,
    /// Components of those that are shared already.
    components: HashMap<String, String>,
    shared: Map<String, Value>,
}

impl Sharing {
    fn count(&mut self, value: &Value) {
        if is_structure(value) {
            let count = self.counts.entry(value.to_string()).or_default();
            *count += 1;
            if *count > 1 {
                // What is below it repeats with it.
                return;
            }
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|value| self.count(value)),
            Value::Array(items) => items.iter().for_each(|value| self.count(value)),
            _ => {}
        }
    }

    /// The same value with references below it. `path` names it.
    fn within(&mut self, path: &str, value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let below = |key: &str| match key {
                    "properties" | "items" | "additionalProperties" => path.to_owned(),
                    field => format!("{path}.{field}"),
                };
                fields.into_iter().map(|(key, value)| (key.clone(), self.of(&below(&key), value))).collect()
            }
            Value::Array(items) => items.into_iter().map(|value| self.of(path, value)).collect(),
            other => other,
        }
    }

    fn of(&mut self, path: &str, value: Value) -> Value {
        if !is_structure(&value) {
            return self.within(path, value);
        }
        let text = value.to_string();
        if text.len() < SHORTEST || self.counts.get(&text).is_none_or(|count| *count < 2) {
            return self.within(path, value);
        }
        if let Some(component) = self.components.get(&text) {
            return reference(component);
        }
        let mut component = format!("{path}.Object");
        for number in 2.. {
            if !self.shared.contains_key(&component) {
                break;
            }
            component = format!("{path}.{number}.Object");
        }
        // Its place is taken before what is below it looks for a name.
        self.shared.insert(component.clone(), json!({}));
        self.components.insert(text, component.clone());
        let schema = self.within(path, value);
        self.shared.insert(component.clone(), schema);
        reference(&component)
    }
}

/// Whether a value is the schema of an object with declared fields, and not a map of properties that has such names.
fn is_structure(value: &Value) -> bool {
    value.get("type").is_some_and(|ty| ty == "object") && value.get("properties").is_some_and(Value::is_object)
}
