//! Request bodies in Kubernetes' protobuf encoding, decoded to JSON.
//!
//! A body is the magic `k8s\0` and a `runtime.Unknown` that names the type and carries its bytes. Fields are found by
//! number in the table of built-in messages; unknown numbers are skipped, as protobuf demands. Clients write every
//! field that is no pointer even when it is empty, so zero values are dropped where JSON would omit them.

mod special;
mod wire;

use base64::Engine;
use serde_json::{Map, Value};

use self::wire::{Payload, Reader};
use crate::builtin::{self, Field, Message, Shape, Type};
use crate::tree::{Refused, Tree};

const MAGIC: &[u8] = b"k8s\0";
/// Deepest nesting that is decoded. The deepest legitimate case is the schema inside a CRD.
const DEPTH_LIMIT: usize = 100;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The body does not begin with the magic bytes.
    #[error("provided data does not appear to be a protobuf message, expected prefix k8s")]
    NoMagic,
    /// The bytes end in the middle of a field or carry an impossible length.
    #[error("unexpected end of protobuf data")]
    Truncated,
    /// A field is encoded in a way that its type does not allow.
    #[error("protobuf field {0} has an unexpected encoding")]
    Encoding(String),
    /// A text is not UTF-8.
    #[error("protobuf field {0} is not valid UTF-8")]
    Utf8(String),
    /// Embedded JSON is malformed.
    #[error("protobuf field {0} does not hold valid JSON")]
    Json(String),
    /// What it becomes in memory is too much.
    #[error(transparent)]
    TooLarge(#[from] Refused),
    /// Messages nest too deep.
    #[error("protobuf message is nested too deep")]
    TooDeep,
    /// The body is compressed or not protobuf inside.
    #[error("unsupported content of a protobuf message: {0}")]
    Content(String),
    /// No built-in kind of this name is known.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// `apiVersion` of the body's `runtime.Unknown`.
        api_version: String,
        /// `kind` of the body's `runtime.Unknown`.
        kind: String,
    },
}

/// How deep a value is, and the tree that it is part of.
#[derive(Clone, Copy)]
struct Place<'a> {
    depth: usize,
    tree: &'a Tree,
}

impl Place<'_> {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// Decodes a request body to the JSON that the same client would have sent; what it takes is counted in `tree`.
pub fn decode(bytes: &[u8], tree: &Tree) -> Result<Value, ProtobufError> {
    let body = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
    let unknown = Unknown::read(body)?;
    if !unknown.encoding.is_empty() {
        return Err(ProtobufError::Content(unknown.encoding));
    }
    if !matches!(unknown.content_type.as_str(), "" | "application/vnd.kubernetes.protobuf") {
        return Err(ProtobufError::Content(unknown.content_type));
    }
    let (api_version, kind) = (unknown.api_version, unknown.kind);
    let Some(message) = builtin::message_of(&api_version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), Value::String(api_version));
    fields.insert("kind".to_owned(), Value::String(kind));
    read_message(message, unknown.raw, &mut fields, Place { depth: 0, tree })?;
    Ok(Value::Object(fields))
}

#[derive(Default)]
struct Unknown<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
    encoding: String,
    content_type: String,
}

impl<'a> Unknown<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        let mut unknown = Unknown::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, payload)) = reader.next()? {
            match number {
                1 => {
                    let mut inner = Reader::new(payload.bytes("typeMeta")?);
                    while let Some((number, payload)) = inner.next()? {
                        match number {
                            1 => unknown.api_version = payload.text("apiVersion")?,
                            2 => unknown.kind = payload.text("kind")?,
                            _ => {}
                        }
                    }
                }
                2 => unknown.raw = payload.bytes("raw")?,
                3 => unknown.encoding = payload.text("contentEncoding")?,
                4 => unknown.content_type = payload.text("contentType")?,
                _ => {}
            }
        }
        Ok(unknown)
    }
}

fn read_message(
    message: &Message,
    bytes: &[u8],
    fields: &mut Map<String, Value>,
    at: Place<'_>,
) -> Result<(), ProtobufError> {
    if at.depth > DEPTH_LIMIT {
        return Err(ProtobufError::TooDeep);
    }
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if let Ok(index) = message.fields.binary_search_by_key(&number, |field| field.number) {
            read_field(&message.fields[index], &payload, fields, at)?;
        }
    }
    Ok(())
}

fn read_field(
    field: &Field,
    payload: &Payload<'_>,
    fields: &mut Map<String, Value>,
    at: Place<'_>,
) -> Result<(), ProtobufError> {
    match field.shape {
        Shape::Inline => match field.ty {
            Type::Of(inner) => {
                let message = inner.follow();
                read_message(message, payload.bytes(message.name)?, fields, at.deeper())
            }
            _ => Err(ProtobufError::Encoding(field.name.to_owned())),
        },
        Shape::One | Shape::Pointer => {
            // The parts of a message may come in several pieces.
            if let (Type::Of(message), Some(Value::Object(known))) = (field.ty, fields.get_mut(field.name)) {
                return read_message(message.follow(), payload.bytes(field.name)?, known, at.deeper());
            }
            let value = read_value(field.name, field.ty, payload, at)?;
            if field.shape == Shape::Pointer || field.kept || field.required || !is_zero(&value) {
                // Times have no zero value in JSON.
                if !value.is_null() {
                    at.tree.field(field.name, fields.len())?;
                    fields.insert(field.name.to_owned(), value);
                }
            }
            Ok(())
        }
        Shape::Many => {
            if !fields.contains_key(field.name) {
                at.tree.field(field.name, fields.len())?;
            }
            let list = fields.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            let Some(list) = list.as_array_mut() else { return Err(ProtobufError::Encoding(field.name.to_owned())) };
            match (field.ty, payload) {
                (Type::Int32 | Type::Int64 | Type::Bool, Payload::Bytes(packed)) => {
                    let mut packed = Reader::new(packed);
                    while let Some(number) = packed.packed()? {
                        at.tree.item()?;
                        list.push(read_value(field.name, field.ty, &Payload::Varint(number), at)?);
                    }
                }
                _ => {
                    at.tree.item()?;
                    list.push(read_value(field.name, field.ty, payload, at)?);
                }
            }
            Ok(())
        }
        Shape::Map => {
            let mut key = String::new();
            let mut value = None;
            let mut entry = Reader::new(payload.bytes(field.name)?);
            while let Some((number, payload)) = entry.next()? {
                match number {
                    1 => key = payload.text(field.name)?,
                    2 => value = Some(read_value(field.name, field.ty, &payload, at)?),
                    _ => {}
                }
            }
            let value = match value {
                Some(value) => value,
                None => read_value(field.name, field.ty, &Payload::Bytes(&[]), at)?,
            };
            if !fields.contains_key(field.name) {
                at.tree.field(field.name, fields.len())?;
            }
            let map = fields.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Some(map) = map.as_object_mut() {
                at.tree.field(&key, map.len())?;
                map.insert(key, value);
            }
            Ok(())
        }
    }
}

fn read_value(name: &str, ty: Type, payload: &Payload<'_>, at: Place<'_>) -> Result<Value, ProtobufError> {
    if let Payload::Bytes(bytes) = payload
        && !matches!(ty, Type::Of(_))
    {
        // As base64.
        at.tree.text(bytes.len() * 4 / 3)?;
    }
    Ok(match ty {
        Type::String => Value::String(payload.text(name)?),
        Type::Bool => Value::Bool(payload.varint(name)? != 0),
        // Narrower integers are sign-extended on the wire.
        Type::Int32 => Value::from(payload.varint(name)? as i32),
        Type::Int64 => Value::from(payload.varint(name)? as i64),
        Type::Double => Value::from(payload.double(name)?),
        Type::Bytes => Value::String(base64::engine::general_purpose::STANDARD.encode(payload.bytes(name)?)),
        Type::Time => special::time(name, payload.bytes(name)?, false)?,
        Type::MicroTime => special::time(name, payload.bytes(name)?, true)?,
        Type::Quantity => special::quantity(name, payload.bytes(name)?)?,
        Type::IntOrString => special::int_or_string(name, payload.bytes(name)?)?,
        Type::Fields | Type::Json => special::json(name, payload.bytes(name)?, at)?,
        Type::Strings => special::strings(name, payload.bytes(name)?, at)?,
        Type::SchemaOrArray | Type::SchemaOrBool | Type::SchemaOrStrings => {
            special::schema_or(name, ty, payload.bytes(name)?, at)?
        }
        Type::Of(message) => {
            let mut fields = Map::new();
            read_message(message.follow(), payload.bytes(name)?, &mut fields, at.deeper())?;
            Value::Object(fields)
        }
    })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests;
