//! From OpenAPI v3 JSON to [`Schema`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use super::checks::{Bound, Checks, Pattern};
use super::error::{FieldError, SchemaError};
use super::path::Path;
use super::rule::Rule;
use super::structural::{self, Place, forbidden, invalid};
use super::{ListType, Schema, Type, pattern};

/// Deepest schema that is parsed; every pass over objects recurses as deep.
const DEPTH_LIMIT: usize = 64;

pub(super) fn parse(json: &Value) -> Result<Schema, SchemaError> {
    let mut parser = Parser { errors: Vec::new() };
    let schema = parser.node(json, Place::Root, &Path::ROOT, 0);
    if parser.errors.is_empty() { Ok(schema) } else { Err(SchemaError { errors: parser.errors }) }
}

static SHARED: LazyLock<Mutex<HashMap<[u8; 32], Weak<Schema>>>> = LazyLock::new(Mutex::default);

pub(super) fn shared(json: &Value) -> Result<Arc<Schema>, SchemaError> {
    let digest: [u8; 32] = Sha256::digest(json.to_string()).into();
    if let Some(found) = SHARED.lock().get(&digest).and_then(Weak::upgrade) {
        return Ok(found);
    }
    let schema = Arc::new(Schema::parse(json)?);
    let mut all = SHARED.lock();
    // Someone else may have parsed it meanwhile; the first one stays.
    if let Some(found) = all.get(&digest).and_then(Weak::upgrade) {
        return Ok(found);
    }
    all.retain(|_, weak| weak.strong_count() > 0);
    all.insert(digest, Arc::downgrade(&schema));
    Ok(schema)
}

struct Parser {
    errors: Vec<FieldError>,
}

impl Parser {
    fn node(&mut self, json: &Value, place: Place, path: &Path<'_>, depth: usize) -> Schema {
        let Some(node) = json.as_object() else {
            self.errors.push(invalid(path, &json.to_string(), "must be a schema object"));
            return Schema::of(Type::Any);
        };
        if depth > DEPTH_LIMIT {
            self.errors.push(forbidden(path, &format!("schema is nested deeper than {DEPTH_LIMIT}")));
            return Schema::of(Type::Any);
        }
        structural::check_keywords(node, place, path, &mut self.errors);
        let flag = |key: &str| node.get(key).and_then(Value::as_bool) == Some(true);
        let int_or_string = flag("x-kubernetes-int-or-string");
        let mut schema = Schema::of(self.ty(node, int_or_string, path));
        schema.nullable = flag("nullable");
        schema.preserve = flag("x-kubernetes-preserve-unknown-fields");
        schema.resource = place == Place::Root || flag("x-kubernetes-embedded-resource");
        schema.list = self.list(node, path);
        let map_type = self.one_of(node, "x-kubernetes-map-type", &["granular", "atomic"], path);
        if map_type.is_some() && schema.ty != Type::Object {
            let detail = "must be object if x-kubernetes-map-type is specified";
            self.errors.push(invalid(&path.field("type"), text(node, "type").unwrap_or_default(), detail));
        }
        schema.atomic = map_type == Some("atomic");
        schema.format = text(node, "format").map(Into::into);
        schema.description = text(node, "description").map(Into::into);
        schema.default = node.get("default").filter(|value| !value.is_null()).map(|value| Box::new(value.clone()));
        schema.required = texts(node, "required");

        let inner = if place.is_nested() { Place::Nested } else { Place::Structure };
        schema.properties = self.properties(node, inner, path, depth);
        schema.items = node
            .get("items")
            .filter(|items| items.is_object())
            .map(|items| Arc::new(self.node(items, inner, &path.field("items"), depth + 1)));
        schema.additional = match node.get("additionalProperties") {
            Some(Value::Bool(true)) => {
                let mut anything = Schema::of(Type::Any);
                anything.preserve = true;
                anything.nullable = true;
                Some(Arc::new(anything))
            }
            Some(values @ Value::Object(_)) => {
                Some(Arc::new(self.node(values, inner, &path.field("additionalProperties"), depth + 1)))
            }
            _ => None,
        };
        let checks = self.checks(node, int_or_string, path, depth);
        schema.checks = (!checks.is_empty()).then(|| Box::new(checks));
        schema.rules = self.rules(node, path);
        let schema = schema.seal();
        structural::check_node(&schema, place, path, &mut self.errors);
        if self.errors.is_empty() {
            structural::check_default(&schema, path, &mut self.errors);
        }
        schema
    }

    fn properties(
        &mut self,
        node: &Map<String, Value>,
        place: Place,
        path: &Path<'_>,
        depth: usize,
    ) -> Box<[(Box<str>, Arc<Schema>)]> {
        let Some(fields) = node.get("properties").and_then(Value::as_object) else { return Box::default() };
        let path = path.field("properties");
        let mut properties: Vec<_> = fields
            .iter()
            .map(|(name, json)| (name.as_str().into(), Arc::new(self.node(json, place, &path.key(name), depth + 1))))
            .collect::<Vec<(Box<str>, _)>>();
        properties.sort_by(|(left, _), (right, _)| left.cmp(right));
        properties.into()
    }

    fn ty(&mut self, node: &Map<String, Value>, int_or_string: bool, path: &Path<'_>) -> Type {
        let name = text(node, "type");
        if int_or_string {
            if name.is_some() {
                self.errors.push(forbidden(&path.field("type"), "must be empty if x-kubernetes-int-or-string is true"));
            }
            return Type::IntOrString;
        }
        match name {
            None | Some("") => Type::Any,
            Some("object") => Type::Object,
            Some("array") => Type::Array,
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            Some(other) => {
                self.errors.push(invalid(
                    &path.field("type"),
                    other,
                    "must be array, boolean, integer, number, object or string",
                ));
                Type::Any
            }
        }
    }

    fn list(&mut self, node: &Map<String, Value>, path: &Path<'_>) -> ListType {
        let keys = texts(node, "x-kubernetes-list-map-keys");
        let ty = self.one_of(node, "x-kubernetes-list-type", &["atomic", "set", "map"], path);
        if ty != Some("map") && !keys.is_empty() {
            self.errors.push(forbidden(
                &path.field("x-kubernetes-list-map-keys"),
                "may only be set if x-kubernetes-list-type is map",
            ));
        }
        match ty {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(keys),
            _ => ListType::Atomic,
        }
    }

    fn one_of<'a>(
        &mut self,
        node: &'a Map<String, Value>,
        key: &str,
        allowed: &[&str],
        path: &Path<'_>,
    ) -> Option<&'a str> {
        let found = text(node, key)?;
        if !allowed.contains(&found) {
            self.errors.push(invalid(&path.field(key), found, &format!("must be one of {}", allowed.join(", "))));
        }
        Some(found)
    }

    fn checks(&mut self, node: &Map<String, Value>, int_or_string: bool, path: &Path<'_>, depth: usize) -> Checks {
        let number = |key: &str| node.get(key).and_then(Value::as_number).cloned();
        let count = |key: &str| node.get(key).and_then(Value::as_u64);
        let flag = |key: &str| node.get(key).and_then(Value::as_bool) == Some(true);
        let bound = |value: Option<Number>, exclusive: bool| value.map(|value| Bound { value, exclusive });
        Checks {
            minimum: bound(number("minimum"), flag("exclusiveMinimum")),
            maximum: bound(number("maximum"), flag("exclusiveMaximum")),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: self.pattern(node, path),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            unique_items: flag("uniqueItems"),
            one_of_values: node.get("enum").and_then(Value::as_array).map(|values| values.clone().into()),
            all_of: self.branches(node, "allOf", int_or_string, path, depth),
            any_of: self.branches(node, "anyOf", int_or_string, path, depth),
            one_of: self.branches(node, "oneOf", int_or_string, path, depth),
            not: node
                .get("not")
                .map(|branch| Box::new(self.node(branch, Place::Nested, &path.field("not"), depth + 1))),
        }
    }

    fn branches(
        &mut self,
        node: &Map<String, Value>,
        key: &str,
        int_or_string: bool,
        path: &Path<'_>,
        depth: usize,
    ) -> Box<[Schema]> {
        let Some(branches) = node.get(key).and_then(Value::as_array) else { return Box::default() };
        let place = if int_or_string { Place::NestedIntOrString } else { Place::Nested };
        let path = path.field(key);
        branches
            .iter()
            .enumerate()
            .map(|(index, branch)| self.node(branch, place, &path.index(index), depth + 1))
            .collect()
    }

    fn pattern(&mut self, node: &Map<String, Value>, path: &Path<'_>) -> Option<Pattern> {
        let text = text(node, "pattern").filter(|text| !text.is_empty())?;
        match pattern::compile(text) {
            Ok(regex) => Some(Pattern { text: text.into(), regex }),
            Err(message) => {
                let shown: String = text.chars().take(64).collect();
                self.errors.push(invalid(
                    &path.field("pattern"),
                    &shown,
                    &format!("must be a valid regular expression: {message}"),
                ));
                None
            }
        }
    }

    fn rules(&mut self, node: &Map<String, Value>, path: &Path<'_>) -> Box<[Rule]> {
        let Some(entries) = node.get("x-kubernetes-validations").and_then(Value::as_array) else {
            return Box::default();
        };
        let path = path.field("x-kubernetes-validations");
        let mut rules = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            match Rule::compile(entry) {
                Ok(rule) => rules.push(rule),
                Err((field, message)) => {
                    let shown = entry.get(field).map(ToString::to_string).unwrap_or_default();
                    self.errors.push(invalid(&path.index(index).field(field), &shown, &message));
                }
            }
        }
        rules.into()
    }
}

fn text<'a>(node: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    node.get(key).and_then(Value::as_str)
}

fn texts(node: &Map<String, Value>, key: &str) -> Box<[Box<str>]> {
    let list = node.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}
