//! `lookup`: objects of the management cluster. Kinds and namespaces need a grant.

use std::result::Result as Answer;

use capwasm_contract::recording::Request;
use capwasm_contract::{ObjectRef, Refused, Selection};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{lookup, types};
use crate::budget::Budget;
use crate::call::Lookup;
use crate::capability::names;
use crate::capability::scope::Scope;
use crate::record::tape::Tape;

pub(crate) struct LookupView<'a> {
    pub(crate) source: &'a dyn Lookup,
    pub(crate) scope: &'a Scope,
    pub(crate) budget: &'a Budget,
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

async fn one(source: &dyn Lookup, scope: &Scope, budget: &Budget, target: &ObjectRef) -> Answer<String, Refused> {
    scope.read(&target.api_version, &target.kind, target.namespace.as_deref())?;
    names::object(target)?;
    budget.charge_lookup(target.bytes())?;
    source.get(target).await
}

async fn many(source: &dyn Lookup, scope: &Scope, budget: &Budget, of: &Selection) -> Answer<Vec<String>, Refused> {
    let namespace = of.namespace.as_deref();
    scope.read(&of.api_version, &of.kind, namespace)?;
    names::api_version(&of.api_version)?;
    names::namespace(namespace)?;
    budget.charge_lookup(names::bytes_of_list(of))?;
    source.list(of).await
}

impl lookup::Host for LookupView<'_> {
    async fn get(&mut self, target: types::ObjectRef) -> Result<Answer<String, types::CallError>> {
        let target = target.into();
        let request = || Request::LookupGet(ObjectRef::clone(&target));
        let answer = self.tape.ask(request, one(self.source, self.scope, self.budget, &target)).await?;
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
        let answer =
            self.tape.ask(|| Request::LookupList(of.clone()), many(self.source, self.scope, self.budget, &of)).await?;
        Ok(answer.map_err(Into::into))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use capwasm_contract::descriptor::KindPattern;

    use super::*;
    use crate::bindings::lookup::Host;
    use crate::grants::Grants;
    use crate::limits::Limits;

    #[derive(Default)]
    struct Counted(AtomicU32);

    #[async_trait]
    impl Lookup for Counted {
        async fn get(&self, _: &ObjectRef) -> Answer<String, Refused> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Refused::not_found("no"))
        }

        async fn list(&self, _: &Selection) -> Answer<Vec<String>, Refused> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Vec::new())
        }
    }

    async fn get(view: &mut LookupView<'_>, name: &str) -> String {
        let target = ObjectRef::new("v1", "ConfigMap", name);
        let ObjectRef { api_version, kind, namespace, name } = target;
        let target = types::ObjectRef { api_version, kind, namespace, name };
        view.get(target).await.unwrap().unwrap_err().reason
    }

    async fn list(view: &mut LookupView<'_>, labels: String) -> Answer<usize, String> {
        let listed = view.list("v1".into(), "ConfigMap".into(), None, labels).await.unwrap();
        listed.map(|found| found.len()).map_err(|refused| refused.reason)
    }

    #[tokio::test]
    async fn a_call_may_read_so_often_and_by_names_of_so_many_bytes() {
        let reads = vec![KindPattern { group: String::new(), kind: "ConfigMap".into() }];
        let scope = Scope::new(Arc::new("{}".into()), Arc::new(Grants { reads, ..Grants::default() }));
        let source = Counted::default();
        let budget = Budget::new(&Limits { lookups: 3, ..Limits::default() });
        let mut view = LookupView { source: &source, scope: &scope, budget: &budget, tape: &mut Tape::Off };
        assert_eq!(get(&mut view, "a").await, "NotFound");
        assert_eq!(get(&mut view, "a").await, "NotFound");
        assert_eq!(list(&mut view, "a=b".into()).await, Ok(0));
        assert_eq!(get(&mut view, "b").await, "TooManyLookups");
        assert_eq!(list(&mut view, String::new()).await, Err("TooManyLookups".into()));
        assert_eq!(source.0.load(Ordering::Relaxed), 3, "what is refused is not looked up");

        let budget = Budget::new(&Limits { lookups: 10, ..Limits::default() });
        let mut view = LookupView { source: &source, scope: &scope, budget: &budget, tape: &mut Tape::Off };
        assert_eq!(list(&mut view, "x".repeat(20_000)).await, Err("NamesTooLong".into()));
        assert_eq!(list(&mut view, "a,".repeat(100)).await, Err("NamesTooLong".into()), "many short requirements");
        assert_eq!(list(&mut view, "a in (b,c,d)".into()).await, Ok(0));
        assert_eq!(source.0.load(Ordering::Relaxed), 4);
    }
}
