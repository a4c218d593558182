//! `secrets`: Secrets of the object's namespace, and of others where both the name and the namespace are granted. The
//! machine's bootstrap data needs no grant.

use std::collections::{BTreeMap, HashMap};
use std::result::Result as Answer;
use std::sync::{Arc, Weak};

use capwasm_contract::Refused;
use capwasm_contract::recording::{Given, OnTape, Request, SecretRef};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::bindings::{secrets, types};
use crate::budget::{Budget, Limit};
use crate::call::Secrets;
use crate::capability::names;
use crate::capability::scope::Scope;
use crate::record::tape::Tape;

/// A Secret behind a guest's handle.
pub struct OpenSecret {
    of: SecretRef,
    data: Data,
}

type Keys = BTreeMap<String, Vec<u8>>;

/// Data of a Secret, which all handles to it share. Recordings contain only what the guest read of it.
struct Data(Arc<Keys>);

/// What the handles of a call have open.
#[derive(Default)]
pub(crate) struct Opened(HashMap<SecretRef, Weak<Keys>>);

impl Opened {
    /// The data that another handle has already, or this, charged.
    fn share(&mut self, of: &SecretRef, data: Keys, budget: &Budget) -> Answer<Data, Refused> {
        if let Some(same) = self.0.get(of).and_then(Weak::upgrade).filter(|known| **known == data) {
            return Ok(Data(same));
        }
        budget.charge(Limit::Held, bytes(&data))?;
        let data = Arc::new(data);
        self.0.insert(of.clone(), Arc::downgrade(&data));
        Ok(Data(data))
    }
}

/// Memory of a key of a Secret besides its name and value.
const KEY_BYTES: usize = 128;

fn bytes(data: &Keys) -> usize {
    data.iter().map(|(key, value)| KEY_BYTES + key.len() + value.len()).sum()
}

impl OnTape for Data {
    fn given(&self) -> Given {
        Given::Done
    }

    fn taken(given: Given) -> Option<Self> {
        (given == Given::Done).then(|| Data(Arc::default()))
    }
}

pub(crate) struct SecretsView<'a> {
    pub(crate) source: &'a dyn Secrets,
    pub(crate) scope: &'a Scope,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) opened: &'a mut Opened,
    pub(crate) budget: &'a Budget,
    pub(crate) tape: &'a mut Tape,
}

struct HasSecrets;

impl HasData for HasSecrets {
    type Data<'a> = SecretsView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> SecretsView<'_>,
) -> Result<()> {
    secrets::add_to_linker::<T, HasSecrets>(linker, view)
}

async fn open(source: &dyn Secrets, scope: &Scope, budget: &Budget, of: &SecretRef) -> Answer<Keys, Refused> {
    let SecretRef::Named { namespace, name } = of else {
        budget.charge_lookup(0)?;
        return source.bootstrap_data().await;
    };
    let namespace = namespace.as_deref();
    if !scope.grants().covers_secret(name) {
        return Err(Refused::denied(format!("Secret {name:?} is not granted; add it to spec.grants.secrets")));
    }
    scope.namespace(namespace)?;
    names::namespace(namespace)?;
    names::name(name)?;
    budget.charge_lookup(name.len() + namespace.map_or(0, str::len))?;
    source.open(namespace, name).await
}

impl SecretsView<'_> {
    async fn handle(&mut self, of: SecretRef) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        let shared = async {
            let data = open(self.source, self.scope, self.budget, &of).await?;
            self.opened.share(&of, data, self.budget)
        };
        let data = self.tape.ask(|| Request::SecretOpen(of.clone()), shared).await?;
        Ok(match data {
            Ok(data) => Ok(self.table.push(OpenSecret { of, data })?),
            Err(refused) => Err(refused.into()),
        })
    }
}

impl secrets::Host for SecretsView<'_> {
    async fn open(&mut self, name: String) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        self.handle(SecretRef::Named { namespace: None, name }).await
    }

    async fn open_in(
        &mut self,
        namespace: String,
        name: String,
    ) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        self.handle(SecretRef::Named { namespace: Some(namespace), name }).await
    }

    async fn bootstrap_data(&mut self) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        self.handle(SecretRef::BootstrapData).await
    }
}

impl secrets::HostSecret for SecretsView<'_> {
    fn reveal(&mut self, secret: Resource<OpenSecret>, key: String) -> Result<Answer<Vec<u8>, types::CallError>> {
        let OpenSecret { of, data } = self.table.get(&secret)?;
        let request = || Request::SecretReveal { secret: of.clone(), key: key.clone() };
        let missing = || Refused::not_found(format!("the Secret has no key {key:?}"));
        let value = self.tape.ask_now(request, || data.0.get(&key).cloned().ok_or_else(missing))?;
        Ok(value.map_err(Into::into))
    }

    fn drop(&mut self, secret: Resource<OpenSecret>) -> Result<()> {
        // Only the last handle gives it back.
        if let Some(data) = Arc::into_inner(self.table.delete(secret)?.data.0) {
            self.budget.refund(Limit::Held, bytes(&data));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use async_trait::async_trait;
    use parking_lot::Mutex;

    use super::*;
    use crate::bindings::secrets::{Host, HostSecret};
    use crate::grants::Grants;
    use crate::limits::Limits;

    /// Secrets of one key each, of a size that a test sets.
    struct OfSize(Mutex<usize>);

    #[async_trait]
    impl Secrets for OfSize {
        async fn open(&self, _: Option<&str>, _: &str) -> Answer<Keys, Refused> {
            Ok([("value".to_owned(), vec![b'x'; *self.0.lock()])].into())
        }

        async fn bootstrap_data(&self) -> Answer<Keys, Refused> {
            self.open(None, "").await
        }
    }

    #[tokio::test]
    async fn handles_to_a_secret_share_its_data_and_all_of_a_call_hold_so_many_bytes() {
        const MIB: usize = 1 << 20;
        let grants = Grants { secrets: vec!["*".into()], ..Grants::default() };
        let scope = Scope::new(Arc::new("{}".into()), Arc::new(grants));
        let source = OfSize(Mutex::new(MIB));
        let budget = Budget::new(&Limits { lookups: 1_000, ..Limits::default() });
        let (mut table, mut opened) = (ResourceTable::new(), Opened::default());
        let mut view = SecretsView {
            source: &source,
            scope: &scope,
            table: &mut table,
            opened: &mut opened,
            budget: &budget,
            tape: &mut Tape::Off,
        };
        let held = || usize::try_from(budget.used(Limit::Held)).unwrap() / MIB;
        let mut handles = Vec::new();
        for _ in 0..100 {
            handles.push(view.open("a".into()).await.unwrap().unwrap());
        }
        assert_eq!(held(), 1, "a hundred handles to one Secret");
        *source.0.lock() = 2 * MIB;
        let newer = view.open("a".into()).await.unwrap().unwrap();
        assert_eq!(held(), 3, "it is read live: what changed meanwhile is another");
        assert_eq!(view.reveal(handles.pop().unwrap(), "value".into()).unwrap().unwrap().len(), MIB);
        let last = view.reveal(Resource::new_borrow(newer.rep()), "value".into()).unwrap().unwrap();
        assert_eq!(last.len(), 2 * MIB);
        for number in 0..6 {
            view.open(format!("b{number}")).await.unwrap().unwrap();
        }
        assert_eq!(held(), 15);
        let refused = view.bootstrap_data().await.unwrap().unwrap_err();
        assert_eq!((refused.refusal, refused.reason.as_str()), (types::Refusal::Limit, "HandlesTooLarge"));
        HostSecret::drop(&mut view, newer).unwrap();
        assert_eq!(held(), 13, "a handle that is dropped gives back");
        assert!(view.bootstrap_data().await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn secrets_that_are_opened_count_as_reads() {
        let scope =
            Scope::new(Arc::new("{}".into()), Arc::new(Grants { secrets: vec!["*".into()], ..Grants::default() }));
        let budget = Budget::new(&Limits { lookups: 2, ..Limits::default() });
        let (mut table, mut opened) = (ResourceTable::new(), Opened::default());
        let source = OfSize(Mutex::new(1));
        let mut view = SecretsView {
            source: &source,
            scope: &scope,
            table: &mut table,
            opened: &mut opened,
            budget: &budget,
            tape: &mut Tape::Off,
        };
        assert!(view.open("a".into()).await.unwrap().is_ok() && view.bootstrap_data().await.unwrap().is_ok());
        assert_eq!(view.open("a".into()).await.unwrap().unwrap_err().reason, "TooManyLookups");
    }
}
