//! `workload`: the same as `lookup`, for the cluster being provisioned. Kinds need a grant; all namespaces are in reach,
//! because the whole cluster belongs to the object's owner.

use std::result::Result as Answer;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{types, workload};
use crate::call::{Lookup, ServingCertificates};
use crate::capability::http::count_request;
use crate::capability::names;
use crate::capability::scope::not_granted;
use crate::grants::{Grants, covers};
use crate::outcome::{ObjectRef, group};
use crate::refused::Refused;

/// What `workload` sees.
pub(crate) struct WorkloadView<'a> {
    pub(crate) source: &'a dyn Lookup,
    pub(crate) certificates: &'a dyn ServingCertificates,
    pub(crate) grants: &'a Grants,
    pub(crate) requests_left: &'a mut u32,
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
        self.granted(api_version, kind)?;
        names::namespace(namespace)?;
        self.source.list(api_version, kind, namespace, labels).await
    }

    async fn certificate(&mut self, namespace: &str, pod: &str, port: u16) -> Answer<String, Refused> {
        self.granted("v1", "Pod")?;
        names::name(namespace).and_then(|()| names::name(pod))?;
        count_request(self.requests_left)?;
        self.certificates.serving_certificate(namespace, pod, port).await
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

    async fn serving_certificate(
        &mut self,
        namespace: String,
        pod: String,
        port: u16,
    ) -> Result<Answer<String, types::CallError>> {
        Ok(self.certificate(&namespace, &pod, port).await.map_err(Into::into))
    }
}
