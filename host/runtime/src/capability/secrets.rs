//! `secrets`: Secrets of the object's namespace, and of others where both the name and the namespace are granted. The
//! machine's bootstrap data needs no grant.

use std::collections::BTreeMap;
use std::result::Result as Answer;

use capwasm_contract::Refused;
use capwasm_contract::recording::{Given, OnTape, Request, SecretRef};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::bindings::{secrets, types};
use crate::call::Secrets;
use crate::capability::names;
use crate::capability::scope::Scope;
use crate::record::tape::Tape;

/// A Secret behind a guest's handle.
pub struct OpenSecret {
    of: SecretRef,
    data: Data,
}

/// Data of a Secret. Recordings contain only what the guest read of it.
struct Data(BTreeMap<String, Vec<u8>>);

impl OnTape for Data {
    fn given(&self) -> Given {
        Given::Done
    }

    fn taken(given: Given) -> Option<Self> {
        (given == Given::Done).then(|| Data(BTreeMap::new()))
    }
}

pub(crate) struct SecretsView<'a> {
    pub(crate) source: &'a dyn Secrets,
    pub(crate) scope: &'a Scope,
    pub(crate) table: &'a mut ResourceTable,
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

async fn open(source: &dyn Secrets, scope: &Scope, of: &SecretRef) -> Answer<Data, Refused> {
    let SecretRef::Named { namespace, name } = of else {
        return source.bootstrap_data().await.map(Data);
    };
    let namespace = namespace.as_deref();
    if !scope.grants().covers_secret(name) {
        return Err(Refused::denied(format!("Secret {name:?} is not granted; add it to spec.grants.secrets")));
    }
    scope.namespace(namespace)?;
    names::namespace(namespace)?;
    names::name(name)?;
    source.open(namespace, name).await.map(Data)
}

impl SecretsView<'_> {
    async fn handle(&mut self, of: SecretRef) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        let data = self.tape.ask(|| Request::SecretOpen(of.clone()), open(self.source, self.scope, &of)).await?;
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
        self.table.delete(secret)?;
        Ok(())
    }
}
