//! Label and field selectors over stored bytes, parsing no more of an object than the selector needs.

use capwasm_object::selector::Selector;
use serde::Deserialize;
use serde_json::Value;

use crate::catalog::Resource;
use crate::field_selector::FieldSelector;
use crate::request::Query;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;

#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    labels: Option<Selector>,
    fields: Option<FieldSelector>,
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(default)]
    metadata: Labels,
}

#[derive(Default, Deserialize)]
struct Labels {
    labels: Option<Value>,
}

impl Filter {
    /// Parses selectors of a request. Custom resources support the fields that their CRD declares, and no other.
    pub fn parse(query: &Query, resource: &Resource) -> ApiResult<Self> {
        let labels = query
            .get("labelSelector")
            .map(Selector::parse)
            .transpose()
            .map_err(|e| ApiError::bad_request(e.to_string()))?;
        let fields = query
            .get("fieldSelector")
            .map(FieldSelector::parse)
            .transpose()
            .map_err(|e| ApiError::bad_request(e.to_string()))?;
        for term in fields.iter().flat_map(FieldSelector::terms) {
            let known = matches!(term.path.as_str(), "metadata.name" | "metadata.namespace");
            if !known && resource.selectable.as_ref().is_some_and(|paths| !paths.contains(&term.path)) {
                return Err(ApiError::bad_request(format!("field label not supported: {}", term.path)));
            }
        }
        Ok(Self { labels: labels.filter(|l| !l.is_everything()), fields: fields.filter(|f| !f.is_everything()) })
    }

    pub fn named(name: &str) -> ApiResult<Self> {
        let fields =
            FieldSelector::parse(&format!("metadata.name={name}")).map_err(|e| ApiError::bad_request(e.to_string()))?;
        Ok(Self { labels: None, fields: Some(fields) })
    }

    pub fn selects_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// The only name that can match, if the selector requires one.
    pub fn name(&self) -> Option<&str> {
        self.fields.as_ref()?.exact("metadata.name")
    }

    pub fn matches(&self, key: &Key, data: &[u8]) -> bool {
        self.fields_match(key, data) && self.labels_match(data)
    }

    fn labels_match(&self, data: &[u8]) -> bool {
        let Some(labels) = &self.labels else { return true };
        serde_json::from_slice::<Labelled>(data)
            .is_ok_and(|object| labels.matches_labels(object.metadata.labels.as_ref()))
    }

    fn fields_match(&self, key: &Key, data: &[u8]) -> bool {
        let Some(fields) = &self.fields else { return true };
        let mut beyond_the_key = false;
        for term in fields.terms() {
            let value = match term.path.as_str() {
                "metadata.name" => key.name(),
                "metadata.namespace" => key.namespace(),
                _ => {
                    beyond_the_key = true;
                    continue;
                }
            };
            if (value == term.value) != term.equal {
                return false;
            }
        }
        !beyond_the_key || serde_json::from_slice::<Value>(data).is_ok_and(|object| fields.matches(&object))
    }
}
