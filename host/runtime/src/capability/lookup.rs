//! `lookup`: objects of the management cluster. Kinds and namespaces need a grant.

use std::result::Result as Answer;

use capwasm_contract::recording::Request;
use capwasm_contract::{ObjectRef, Refused, Selection};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{lookup, types};
use crate::call::Lookup;
use crate::capability::names;
use crate::capability::scope::Scope;
use crate::record::tape::Tape;

pub(crate) struct LookupView<'a> {
    pub(crate) source: &'a dyn Lookup,
    pub(crate) scope: &'a Scope,
    pub(crate) tape: &'a mut Tape,
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

async fn one(source: &dyn Lookup, scope: &Scope, target: &ObjectRef) -> Answer<String, Refused> {
    scope.read(&target.api_version, &target.kind, target.namespace.as_deref())?;
    names::object(target)?;
    source.get(target).await
}

async fn many(source: &dyn Lookup, scope: &Scope, of: &Selection) -> Answer<Vec<String>, Refused> {
    let namespace = of.namespace.as_deref();
    scope.read(&of.api_version, &of.kind, namespace)?;
    names::api_version(&of.api_version)?;
    names::namespace(namespace)?;
    source.list(of).await
}

impl lookup::Host for LookupView<'_> {
    async fn get(&mut self, target: types::ObjectRef) -> Result<Answer<String, types::CallError>> {
        let target = target.into();
        let request = || Request::LookupGet(ObjectRef::clone(&target));
        let answer = self.tape.ask(request, one(self.source, self.scope, &target)).await?;
        Ok(answer.map_err(Into::into))
    }

    async fn list(
        &mut self,
        api_version: String,
        kind: String,
        namespace: Option<String>,
        labels: String,
    ) -> Result<Answer<Vec<String>, types::CallError>> {
        let of = Selection { api_version, kind, namespace, labels };
        let answer = self.tape.ask(|| Request::LookupList(of.clone()), many(self.source, self.scope, &of)).await?;
        Ok(answer.map_err(Into::into))
    }
}
