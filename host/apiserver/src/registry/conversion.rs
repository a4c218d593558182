//! Stored bytes in the version that a client asked for.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{events, parse, to_bytes};
use crate::catalog::Resource;
use crate::config::{Converter, GroupKind};
use crate::schema;
use crate::status::{ApiError, ApiResult};

/// The in-process converters of a server. A kind without one follows the strategy `None`: only `apiVersion` changes.
pub(crate) struct Conversion(Vec<(GroupKind, Arc<dyn Converter>)>);

impl Conversion {
    pub fn new(converters: &[(GroupKind, Arc<dyn Converter>)]) -> Self {
        Self(converters.to_vec())
    }

    /// `object` in another version of its kind.
    pub fn convert(&self, resource: &Resource, mut object: Value, to: &str) -> ApiResult<Value> {
        if object.get("apiVersion").and_then(Value::as_str) == Some(to) {
            return Ok(object);
        }
        if resource.is("events.k8s.io", "events") {
            return Ok(events::convert(object, to));
        }
        let kind = GroupKind::new(&resource.group, &resource.kind);
        if let Some((_, converter)) = self.0.iter().find(|(known, _)| *known == kind) {
            return converter
                .convert(object, to)
                .map_err(|why| ApiError::internal(format!("conversion of {} to {to} failed: {why}", resource.kind)));
        }
        object["apiVersion"] = Value::from(to);
        Ok(object)
    }

    /// Stored bytes as JSON in the version of `resource`, with the defaults of today.
    pub fn decode(&self, resource: &Resource, data: &[u8]) -> ApiResult<Value> {
        let mut object = self.convert(resource, parse(data)?, &resource.api_version())?;
        if let Some(schema) = &resource.schema
            && resource.custom()
        {
            schema::default(schema, &mut object);
        }
        Ok(object)
    }

    /// Stored bytes in the version of `resource`; the very same bytes when they are in it already.
    pub fn show(&self, resource: &Resource, data: &Bytes, revision: u64) -> ApiResult<Bytes> {
        if resource.serves_verbatim(data, revision) {
            return Ok(data.clone());
        }
        Ok(to_bytes(&self.decode(resource, data)?))
    }
}
