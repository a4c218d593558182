//! Structural schemas of the built-in kinds, made from their messages.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::{ListType, Merge, Schema, Type};
use crate::builtin::{self, Field, FieldList, Message, Shape, Type as Wire, kinds};

struct Schemas {
    /// In the order of the table of kinds.
    by_kind: Vec<Schema>,
    object_meta: Arc<Schema>,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let mut builder = Builder { done: HashMap::new(), open: Vec::new() };
    let by_kind = kinds().iter().map(|row| builder.resource(row.message.follow())).collect();
    let object_meta = builder.message(builtin::message("meta.v1.ObjectMeta"));
    Schemas { by_kind, object_meta }
});

/// The schema of a built-in kind, with list types and merge keys.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    let at = kinds().iter().position(|row| row.kind == kind && row.group == group && row.version == version)?;
    SCHEMAS.by_kind.get(at)
}

/// The schema of `metadata`, which custom resources share.
pub(crate) fn object_meta() -> &'static Schema {
    &SCHEMAS.object_meta
}

struct Builder {
    /// By message name.
    done: HashMap<&'static str, Arc<Schema>>,
    /// Messages under construction, to detect recursion.
    open: Vec<&'static str>,
}

impl Builder {
    /// The schema of a kind: the message and its type.
    fn resource(&mut self, message: &'static Message) -> Schema {
        let mut properties = type_meta();
        let mut required = Vec::new();
        self.fields(message, &mut properties, &mut required);
        let mut schema = object(properties, required);
        schema.resource = true;
        schema.seal()
    }

    fn message(&mut self, message: &'static Message) -> Arc<Schema> {
        if let Some(done) = self.done.get(message.name) {
            return Arc::clone(done);
        }
        if self.open.contains(&message.name) {
            // Only the schema of schemas contains itself; below its first level anything goes.
            return Arc::new(anything(Type::Object));
        }
        self.open.push(message.name);
        let (mut properties, mut required) = (Vec::new(), Vec::new());
        if is_kind(message) {
            properties = type_meta();
        }
        self.fields(message, &mut properties, &mut required);
        self.open.pop();
        let mut schema = object(properties, required);
        schema.atomic = message.atomic;
        let schema = Arc::new(schema.seal());
        self.done.insert(message.name, Arc::clone(&schema));
        schema
    }

    fn fields(
        &mut self,
        message: &'static Message,
        properties: &mut Vec<(Box<str>, Arc<Schema>)>,
        required: &mut Vec<Box<str>>,
    ) {
        for field in &message.fields {
            match (field.shape, field.ty) {
                (Shape::Inline, Wire::Of(inner)) => self.fields(inner.follow(), properties, required),
                _ => {
                    properties.push((field.name.into(), self.field(field)));
                    if field.required {
                        required.push(field.name.into());
                    }
                }
            }
        }
    }

    fn field(&mut self, field: &Field) -> Arc<Schema> {
        let value = self.value(field.ty);
        let merge = (field.merge.is_some() || field.retain_keys)
            .then_some(Merge { key: field.merge, retain_keys: field.retain_keys });
        match field.shape {
            Shape::Many => {
                let mut schema = typed(Type::Array);
                schema.list = match field.list {
                    FieldList::Atomic => ListType::Atomic,
                    FieldList::Set => ListType::Set,
                    FieldList::Keyed(keys) => ListType::Map(keys.split(',').map(Box::from).collect()),
                };
                schema.items = Some(value);
                schema.merge = merge;
                Arc::new(schema.seal())
            }
            Shape::Map => {
                let mut schema = typed(Type::Object);
                schema.additional = Some(value);
                schema.atomic = field.atomic;
                schema.merge = merge;
                Arc::new(schema.seal())
            }
            Shape::One | Shape::Pointer | Shape::Inline => self.single(field, value, merge),
        }
    }

    /// A field that is not repeated shares its type's schema unless it says more about itself.
    fn single(&mut self, field: &Field, value: Arc<Schema>, merge: Option<Merge>) -> Arc<Schema> {
        if field.default.is_none() && merge.is_none() && field.atomic == value.atomic {
            return value;
        }
        let mut schema = typed(value.ty);
        schema.properties.clone_from(&value.properties);
        schema.additional.clone_from(&value.additional);
        schema.required.clone_from(&value.required);
        schema.format.clone_from(&value.format);
        schema.preserve = value.preserve;
        schema.atomic = field.atomic || value.atomic;
        schema.default = field.default.map(|text| Box::new(Value::String(text.to_owned())));
        schema.merge = merge;
        Arc::new(schema.seal())
    }

    fn value(&mut self, ty: Wire) -> Arc<Schema> {
        match ty {
            Wire::String => scalar(Type::String),
            Wire::Bool => scalar(Type::Boolean),
            Wire::Int32 => formatted(Type::Integer, "int32"),
            Wire::Int64 => formatted(Type::Integer, "int64"),
            Wire::Double => formatted(Type::Number, "double"),
            Wire::Bytes => formatted(Type::String, "byte"),
            Wire::Time | Wire::MicroTime => formatted(Type::String, "date-time"),
            Wire::Quantity => scalar(Type::Quantity),
            Wire::IntOrString => scalar(Type::IntOrString),
            Wire::Fields => {
                let mut fields = anything(Type::Object);
                fields.atomic = true;
                Arc::new(fields)
            }
            Wire::Json | Wire::SchemaOrArray | Wire::SchemaOrBool | Wire::SchemaOrStrings => {
                Arc::new(anything(Type::Any))
            }
            Wire::Strings => {
                let mut list = typed(Type::Array);
                list.items = Some(scalar(Type::String));
                Arc::new(list)
            }
            Wire::Of(message) => self.message(message.follow()),
        }
    }
}

/// Whether objects inside others may name their type, as claims in a StatefulSet do.
fn is_kind(message: &'static Message) -> bool {
    message.name == "meta.v1.DeleteOptions" || kinds().iter().any(|row| row.message.follow().name == message.name)
}

fn type_meta() -> Vec<(Box<str>, Arc<Schema>)> {
    vec![(Box::from("apiVersion"), scalar(Type::String)), (Box::from("kind"), scalar(Type::String))]
}

fn typed(ty: Type) -> Schema {
    let mut schema = Schema::of(ty);
    schema.typed = true;
    schema
}

fn scalar(ty: Type) -> Arc<Schema> {
    Arc::new(typed(ty))
}

fn formatted(ty: Type, format: &'static str) -> Arc<Schema> {
    let mut schema = typed(ty);
    schema.format = Some(format.into());
    Arc::new(schema)
}

/// A schema that keeps everything, nulls included, since they are data in JSON of unknown shape.
fn anything(ty: Type) -> Schema {
    let mut schema = Schema::of(ty);
    schema.preserve = true;
    schema
}

fn object(mut properties: Vec<(Box<str>, Arc<Schema>)>, required: Vec<Box<str>>) -> Schema {
    properties.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut schema = typed(Type::Object);
    schema.properties = properties.into();
    schema.required = required.into();
    schema
}
