//! Conversion for the embedded API server: of core kinds natively, of other kinds by providers.

use std::collections::HashSet;
use std::sync::Arc;

use capwasm_api::conversion;
use capwasm_apiserver::{ConversionError, ConvertedKind, Converter};
use capwasm_object::json;
use capwasm_providers::{Conversions, NotConverted, PROVIDER_LABEL};
use serde_json::Value;

/// Implements [`Converter`] in-process.
pub struct InProcess {
    core: HashSet<(String, String)>,
    providers: Arc<Conversions>,
}

impl InProcess {
    /// Conversion by core, and by the components that are loaded into `providers`, now or later.
    pub fn new(providers: Arc<Conversions>) -> Self {
        let name = |crd: &Value| {
            let part = |pointer| json::text(crd, pointer).unwrap_or_default().to_owned();
            (part("/spec/group"), part("/spec/names/kind"))
        };
        Self { core: capwasm_api::crds::core_crds().iter().map(name).collect(), providers }
    }

    fn core(&self, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, ConversionError> {
        let resolve = |group: &str, kind: &str| {
            self.providers.reference(group, kind).or_else(|| conversion::known_api_version(group, kind))
        };
        let convert = |object| conversion::convert_core_with(object, to, &resolve).map_err(ConversionError::Failed);
        objects.into_iter().map(convert).collect()
    }
}

impl Converter for InProcess {
    fn convert(&self, kind: &ConvertedKind, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, ConversionError> {
        if self.core.contains(&(kind.group.clone(), kind.kind.clone())) {
            return self.core(objects, to);
        }
        let provider = kind.labels.get(PROVIDER_LABEL).map(String::as_str);
        self.providers.convert(&kind.group, &kind.kind, provider, &objects, to).map_err(|error| match error {
            NotConverted::NotLoaded(why) => ConversionError::Unavailable(why),
            NotConverted::Failed(why) => ConversionError::Failed(why),
        })
    }
}

#[cfg(test)]
mod tests;
