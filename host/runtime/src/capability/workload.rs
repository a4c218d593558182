//! `workload`: the same as `lookup`, for the cluster being provisioned. Kinds need a grant; all namespaces are in reach,
//! because the whole cluster belongs to the object's owner.

use std::result::Result as Answer;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{types, workload};
use crate::call::Lookup;
use crate::capability::scope::not_granted;
use crate::grants::{Grants, covers};
use crate::outcome::{ObjectRef, group};
use crate::refused::Refused;

/// What `workload` sees.
pub(crate) struct WorkloadView<'a> {
    pub(crate) source: &'a dyn Lookup,
    pub(crate) grants: &'a Grants,
}

struct HasWorkload;

impl HasData for HasWorkload {
    type Data<'a> = WorkloadView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> WorkloadView<'_>,
) -> Result<()> {
    workload::add_to_linker::<T, HasWorkload>(linker, view)
}

impl WorkloadView<'_> {
    fn granted(&self, api_version: &str, kind: &str) -> Answer<(), Refused> {
        if covers(&self.grants.workload_reads, group(api_version), kind) {
            return Ok(());
        }
        Err(not_granted("workloadReads", api_version, kind))
    }

    async fn one(&self, target: ObjectRef) -> Answer<String, Refused> {
        self.granted(&target.api_version, &target.kind)?;
        self.source.get(&target).await
    }

    async fn many(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        labels: &str,
    ) -> Answer<Vec<String>, Refused> {
        self.granted(api_version, kind)?;
        self.source.list(api_version, kind, namespace, labels).await
    }
}

impl workload::Host for WorkloadView<'_> {
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
