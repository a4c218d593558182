//! `lookup`: objects of the management cluster. Kinds and namespaces need a grant.

use std::result::Result as Answer;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{lookup, types};
use crate::call::Lookup;
use crate::capability::names;
use crate::capability::scope::Scope;
use crate::outcome::ObjectRef;
use crate::refused::Refused;

/// What `lookup` sees.
pub(crate) struct LookupView<'a> {
    pub(crate) source: &'a dyn Lookup,
    pub(crate) scope: &'a Scope,
}

struct HasLookup;

impl HasData for HasLookup {
    type Data<'a> = LookupView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> LookupView<'_>,
) -> Result<()> {
    lookup::add_to_linker::<T, HasLookup>(linker, view)
}

impl LookupView<'_> {
    async fn one(&self, target: ObjectRef) -> Answer<String, Refused> {
        self.scope.read(&target.api_version, &target.kind, target.namespace.as_deref())?;
        names::object(&target)?;
        self.source.get(&target).await
    }

    async fn many(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: &str,
    ) -> Answer<Vec<String>, Refused> {
        self.scope.read(api_version, kind, namespace)?;
        names::namespace(namespace)?;
        self.source.list(api_version, kind, namespace, labels).await
    }
}

impl lookup::Host for LookupView<'_> {
    async fn get(&mut self, target: types::ObjectRef) -> Result<Answer<String, types::CallError>> {
        Ok(self.one(target.into()).await.map_err(Into::into))
    }

    async fn list(
        &mut self,
        api_version: String,
        kind: String,
        namespace: Option<String>,
        labels: String,
    ) -> Result<Answer<Vec<String>, types::CallError>> {
        Ok(self.many(&api_version, &kind, namespace.as_deref(), &labels).await.map_err(Into::into))
    }
}
