//! Stored bytes in the version that a client asked for.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{events, parse, to_bytes};
use crate::catalog::Resource;
use crate::config::{ConversionError, ConvertedKind, Converter};
use crate::schema;
use crate::status::{ApiError, ApiResult};
use crate::store::Record;
use crate::tree::Tree;
use crate::turn;

/// Objects converted in one call.
const BATCH: usize = 100;
/// `Retry-After` in seconds, when a converter is unavailable.
const RETRY_AFTER: u32 = 1;

/// The in-process converter of a server. Kinds whose CRD does not leave conversion to a webhook follow the strategy `None`:
/// only `apiVersion` changes.
pub(crate) struct Conversion(Option<Arc<dyn Converter>>);

impl Conversion {
    pub fn new(converter: Option<Arc<dyn Converter>>) -> Self {
        Self(converter)
    }

    /// `object` in another version of its kind.
    pub fn convert(&self, resource: &Resource, object: Value, to: &str) -> ApiResult<Value> {
        // One in, one out: `convert_all` holds the converter to that.
        let converted = self.convert_all(resource, vec![object], to)?.pop();
        converted.ok_or_else(|| ApiError::internal("a conversion lost its object"))
    }

    fn convert_all(&self, resource: &Resource, mut objects: Vec<Value>, to: &str) -> ApiResult<Vec<Value>> {
        let differs = |object: &Value| object.get("apiVersion").and_then(Value::as_str) != Some(to);
        if !objects.iter().any(differs) {
            return Ok(objects);
        }
        if resource.is("events.k8s.io", "events") {
            return Ok(objects.into_iter().map(|object| events::convert(object, to)).collect());
        }
        let Some(kind) = &resource.converted else {
            for object in &mut objects {
                object["apiVersion"] = Value::from(to);
            }
            return Ok(objects);
        };
        let Some(converter) = &self.0 else {
            let why = format!("this server has no converter for {}.{}", kind.kind, kind.group);
            return Err(refused(kind, to, ConversionError::Unavailable(why)));
        };
        let (asked, known): (Vec<_>, Vec<_>) = objects.into_iter().enumerate().partition(|(_, object)| differs(object));
        let (places, asked): (Vec<usize>, Vec<Value>) = asked.into_iter().unzip();
        let before: Vec<Value> = asked.iter().map(|object| object["metadata"].clone()).collect();
        let converted = converter.convert(kind, asked, to).map_err(|error| refused(kind, to, error))?;
        let broken = |why: &str| refused(kind, to, ConversionError::Failed(why.to_owned()));
        if converted.len() != before.len() {
            return Err(broken("the converter answered another number of objects"));
        }
        let mut all = known;
        for ((place, before), mut object) in places.into_iter().zip(before).zip(converted) {
            if differs(&object) || object.get("kind").and_then(Value::as_str) != Some(&kind.kind) {
                return Err(broken("the converter answered another version or kind"));
            }
            keep_metadata(&mut object, before);
            all.push((place, object));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, object)| object).collect())
    }

    /// Stored bytes as JSON in the version of `resource`, with present defaults.
    pub fn decode(&self, resource: &Resource, data: &[u8]) -> ApiResult<Value> {
        self.present(resource, parse(data)?)
    }

    /// A stored object in the version of `resource`, with present defaults.
    pub fn present(&self, resource: &Resource, object: Value) -> ApiResult<Value> {
        Ok(defaulted(resource, self.convert(resource, object, &resource.api_version())?))
    }

    /// Stored bytes in the version of `resource`; the same bytes when they are in it already.
    pub fn show(&self, resource: &Resource, data: &Bytes, revision: u64) -> ApiResult<Bytes> {
        if resource.serves_verbatim(data, revision) {
            return Ok(data.clone());
        }
        grown(data, to_bytes(&self.decode(resource, data)?))
    }

    /// As [`Conversion::show`], in batches.
    pub fn show_all(&self, resource: &Resource, records: &[Record]) -> ApiResult<Vec<Bytes>> {
        let mut shown = Vec::with_capacity(records.len());
        for records in records.chunks(BATCH) {
            let verbatim = |record: &&Record| resource.serves_verbatim(&record.data, record.revision);
            let decode = records.iter().filter(|record| !verbatim(record)).map(|record| parse(&record.data));
            let decoded = self.convert_all(resource, decode.collect::<ApiResult<_>>()?, &resource.api_version())?;
            let mut decoded = decoded.into_iter();
            for record in records {
                shown.push(match verbatim(&record) {
                    true => record.data.clone(),
                    // As many as were decoded: `convert_all` keeps the number.
                    false => {
                        let object = defaulted(resource, decoded.next().unwrap_or_default());
                        grown(&record.data, to_bytes(&object))?
                    }
                });
            }
        }
        Ok(shown)
    }
}

/// What is shown of stored bytes, which are charged: so is what it has more, defaults that came later above all.
fn grown(stored: &Bytes, shown: Bytes) -> ApiResult<Bytes> {
    turn::charge(shown.len().saturating_sub(stored.len())).map(|()| shown)
}

fn defaulted(resource: &Resource, mut object: Value) -> Value {
    if let Some(schema) = &resource.schema
        && resource.custom()
    {
        // One that was stored before there were so many defaults is shown with those for which there is room.
        let _ = schema::default(schema, &mut object, &Tree::uncharged());
    }
    object
}

/// Of the metadata a converter may change only labels and annotations.
pub(super) fn keep_metadata(object: &mut Value, mut metadata: Value) {
    if let Some(kept) = metadata.as_object_mut() {
        for field in ["labels", "annotations"] {
            match object.get_mut("metadata").and_then(|metadata| metadata.get_mut(field)).map(Value::take) {
                Some(value) if !value.is_null() => kept.insert(field.to_owned(), value),
                _ => kept.remove(field),
            };
        }
    }
    object["metadata"] = metadata;
}

fn refused(kind: &ConvertedKind, to: &str, error: ConversionError) -> ApiError {
    let message = format!("conversion of {}.{} to {to}: {error}", kind.kind, kind.group);
    match error {
        ConversionError::Unavailable(_) => ApiError::new(503, "ServiceUnavailable", message).retry_after(RETRY_AFTER),
        ConversionError::Failed(_) => ApiError::internal(message),
    }
}
