//! `secrets`: Secrets of the object's namespace, and of others where both the name and the namespace are granted. The
//! machine's own bootstrap data needs no grant.

use std::collections::BTreeMap;
use std::result::Result as Answer;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::bindings::{secrets, types};
use crate::call::Secrets;
use crate::capability::names;
use crate::capability::scope::Scope;
use crate::refused::Refused;

/// A Secret that a guest holds a handle of.
pub struct OpenSecret(BTreeMap<String, Vec<u8>>);

/// What `secrets` sees.
pub(crate) struct SecretsView<'a> {
    pub(crate) source: &'a dyn Secrets,
    pub(crate) scope: &'a Scope,
    pub(crate) table: &'a mut ResourceTable,
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

async fn named(
    source: &dyn Secrets,
    scope: &Scope,
    namespace: Option<&str>,
    name: &str,
) -> Answer<OpenSecret, Refused> {
    if !scope.grants().covers_secret(name) {
        return Err(Refused::denied(format!("Secret {name:?} is not granted; add it to spec.grants.secrets")));
    }
    scope.namespace(namespace)?;
    names::namespace(namespace)?;
    names::name(name)?;
    source.open(namespace, name).await.map(OpenSecret)
}

impl SecretsView<'_> {
    fn handle(
        &mut self,
        secret: Answer<OpenSecret, Refused>,
    ) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        Ok(match secret {
            Ok(secret) => Ok(self.table.push(secret)?),
            Err(refused) => Err(refused.into()),
        })
    }
}

impl secrets::Host for SecretsView<'_> {
    async fn open(&mut self, name: String) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        let secret = named(self.source, self.scope, None, &name).await;
        self.handle(secret)
    }

    async fn open_in(
        &mut self,
        namespace: String,
        name: String,
    ) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        let secret = named(self.source, self.scope, Some(&namespace), &name).await;
        self.handle(secret)
    }

    async fn bootstrap_data(&mut self) -> Result<Answer<Resource<OpenSecret>, types::CallError>> {
        let secret = self.source.bootstrap_data().await.map(OpenSecret);
        self.handle(secret)
    }
}

impl secrets::HostSecret for SecretsView<'_> {
    fn reveal(&mut self, secret: Resource<OpenSecret>, key: String) -> Result<Answer<Vec<u8>, types::CallError>> {
        let secret = self.table.get(&secret)?;
        let missing = || Refused::not_found(format!("the Secret has no key {key:?}")).into();
        Ok(secret.0.get(&key).cloned().ok_or_else(missing))
    }

    fn drop(&mut self, secret: Resource<OpenSecret>) -> Result<()> {
        self.table.delete(secret)?;
        Ok(())
    }
}
