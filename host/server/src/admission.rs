//! Admission for the embedded API server, by providers.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::{Context, Result};
use async_trait::async_trait;
use capwasm_apiserver::{Admitter, GroupKind};
use capwasm_object::json;
use capwasm_providers::{AdmittedKind, Conversions, NotAdmitted, NotConverted, wasm_provider};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

/// Implements [`Admitter`] in-process.
pub struct InProcess {
    providers: Arc<Conversions>,
}

impl InProcess {
    /// Admission by the components that are loaded into `providers`, now or later.
    pub fn new(providers: Arc<Conversions>) -> Self {
        Self { providers }
    }

    /// The object in another version than the stored one, if necessary.
    fn in_version<'a>(&self, kind: &AdmittedKind, object: &'a Value, to: &str) -> Result<Cow<'a, Value>, NotAdmitted> {
        if json::text(object, "/apiVersion") == Some(to) {
            return Ok(Cow::Borrowed(object));
        }
        let objects = std::slice::from_ref(object);
        let converted = self.providers.convert(&kind.group, &kind.kind, Some(&kind.provider), objects, to);
        let converted = converted.map_err(|error| match error {
            NotConverted::NotLoaded(why) => NotAdmitted::NotLoaded(why),
            NotConverted::Failed(why) => NotAdmitted::Failed(why),
        })?;
        // One in, one out.
        converted.into_iter().next().map(Cow::Owned).ok_or_else(|| NotAdmitted::Failed("a conversion lost it".into()))
    }

    fn spoken<'a>(&self, kind: &AdmittedKind, object: &'a Value) -> Result<Cow<'a, Value>, NotAdmitted> {
        self.in_version(kind, object, &format!("{}/{}", kind.group, kind.version))
    }
}

#[async_trait]
impl Admitter for InProcess {
    async fn default(
        &self,
        of: &GroupKind,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<Value>, capwasm_apiserver::NotAdmitted> {
        let Some(kind) = self.providers.admissions().admitted(&of.group, &of.kind) else { return Ok(None) };
        let work = async {
            let old = old.map(|old| self.spoken(&kind, old)).transpose()?;
            let asked = self.spoken(&kind, object)?;
            let changed = self.providers.admissions().with_defaults(asked.clone().into_owned(), old.as_deref()).await?;
            if changed == *asked {
                return Ok(None);
            }
            let stored = json::text(object, "/apiVersion").unwrap_or_default();
            Ok(Some(self.in_version(&kind, &changed, stored)?.into_owned()))
        };
        work.await.map_err(told)
    }

    async fn validate(
        &self,
        of: &GroupKind,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<String>, capwasm_apiserver::NotAdmitted> {
        let Some(kind) = self.providers.admissions().admitted(&of.group, &of.kind) else { return Ok(Vec::new()) };
        let work = async {
            let old = old.map(|old| self.spoken(&kind, old)).transpose()?;
            let object = self.spoken(&kind, object)?;
            self.providers.admissions().validate(&object, old.as_deref()).await
        };
        work.await.map_err(told)
    }
}

fn told(error: NotAdmitted) -> capwasm_apiserver::NotAdmitted {
    match error {
        NotAdmitted::Invalid { reason, message } => capwasm_apiserver::NotAdmitted::Invalid { reason, message },
        NotAdmitted::Forbidden(why) => capwasm_apiserver::NotAdmitted::Forbidden(why),
        NotAdmitted::NotLoaded(why) => capwasm_apiserver::NotAdmitted::Unavailable(why),
        NotAdmitted::Failed(why) => capwasm_apiserver::NotAdmitted::Failed(why),
    }
}

/// Refuses objects of installed providers with admission until these are loaded.
///
/// # Errors
/// When the WasmProviders cannot be listed.
pub async fn expect_installed(client: &kube::Client, providers: &Conversions) -> Result<()> {
    let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let installed = match api.list(&ListParams::default()).await {
        // A new API server has no such kind yet.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        listed => listed.context("unable to list the installed WasmProviders")?,
    };
    for object in installed {
        providers.admissions().expect(&serde_json::to_value(object)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
