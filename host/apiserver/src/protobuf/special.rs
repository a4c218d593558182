//! Types whose JSON form differs from their message.

use serde_json::{Value, json};

use super::wire::Reader;
use super::{Place, ProtobufError, read_message};
use crate::builtin::{self, Type};
use crate::tree;

/// Seconds and nanoseconds since 1970, as RFC 3339; null when neither is set: the zero time is encoded as an empty
/// message.
pub(super) fn time(name: &str, bytes: &[u8], micros: bool) -> Result<Value, ProtobufError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => seconds = payload.varint(name)? as i64,
            2 => nanos = payload.varint(name)? as i32,
            _ => {}
        }
    }
    let time = jiff::Timestamp::new(seconds, nanos).map_err(|_| ProtobufError::Encoding(name.to_owned()))?;
    Ok(Value::String(if micros { format!("{time:.6}") } else { format!("{time:.0}") }))
}

pub(super) fn quantity(name: &str, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut text = "0".to_owned();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            text = payload.text(name)?;
        }
    }
    Ok(Value::String(text))
}

pub(super) fn int_or_string(name: &str, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number_value, mut text) = (false, 0i32, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => is_text = payload.varint(name)? == 1,
            2 => number_value = payload.varint(name)? as i32,
            3 => text = payload.text(name)?,
            _ => {}
        }
    }
    Ok(if is_text { Value::String(text) } else { Value::from(number_value) })
}

pub(super) fn json(name: &str, bytes: &[u8], at: Place<'_>) -> Result<Value, ProtobufError> {
    let mut raw: &[u8] = &[];
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            raw = payload.bytes(name)?;
        }
    }
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    tree::json(raw, at.tree, &mut Vec::new()).map_err(|_| ProtobufError::Json(name.to_owned()))
}

pub(super) fn strings(name: &str, bytes: &[u8], at: Place<'_>) -> Result<Value, ProtobufError> {
    let mut items = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            at.tree.item()?;
            items.push(Value::String(payload.text(name)?));
        }
    }
    Ok(Value::Array(items))
}

pub(super) fn schema_or(name: &str, ty: Type, bytes: &[u8], at: Place<'_>) -> Result<Value, ProtobufError> {
    let schema = |bytes: &[u8]| {
        let mut fields = serde_json::Map::new();
        read_message(builtin::message("apiextensions.v1.JSONSchemaProps"), bytes, &mut fields, at.deeper())
            .map(|()| Value::Object(fields))
    };
    let (mut one, mut many, mut allows) = (None, Vec::new(), false);
    let mut reader = Reader::new(bytes);
    while let Some((number, payload)) = reader.next()? {
        match (ty, number) {
            (Type::SchemaOrBool, 1) => allows = payload.varint(name)? != 0,
            (Type::SchemaOrBool, 2) | (_, 1) => one = Some(schema(payload.bytes(name)?)?),
            (Type::SchemaOrArray, 2) => {
                at.tree.item()?;
                many.push(schema(payload.bytes(name)?)?);
            }
            (Type::SchemaOrStrings, 2) => {
                at.tree.item()?;
                many.push(Value::String(payload.text(name)?));
            }
            _ => {}
        }
    }
    Ok(match (one, ty) {
        (Some(schema), _) => schema,
        (None, Type::SchemaOrBool) => json!(allows),
        (None, _) => Value::Array(many),
    })
}
