//! `workload`: as `lookup`, for the workload cluster. Kinds need a grant; all namespaces are allowed, since the whole
//! cluster belongs to the object's owner.

use std::result::Result as Answer;

use capwasm_contract::recording::Request;
use capwasm_contract::{ObjectRef, Refused, Selection};
use capwasm_object::group_version::group;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{types, workload};
use crate::budget::{Budget, Limit};
use crate::call::{Lookup, ServingCertificates};
use crate::capability::names;
use crate::capability::scope::not_granted;
use crate::grants::{Grants, covers};
use crate::record::tape::Tape;

pub(crate) struct WorkloadView<'a> {
    pub(crate) source: &'a dyn Lookup,
    pub(crate) certificates: &'a dyn ServingCertificates,
    pub(crate) grants: &'a Grants,
    pub(crate) budget: &'a Budget,
    pub(crate) tape: &'a mut Tape,
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

fn granted(grants: &Grants, api_version: &str, kind: &str) -> Answer<(), Refused> {
    if covers(&grants.workload_reads, group(api_version), kind) {
        return Ok(());
    }
    Err(not_granted("workloadReads", api_version, kind))
}

async fn one(source: &dyn Lookup, grants: &Grants, budget: &Budget, target: &ObjectRef) -> Answer<String, Refused> {
    granted(grants, &target.api_version, &target.kind)?;
    names::object(target)?;
    budget.charge_lookup(target.bytes())?;
    source.get(target).await
}

async fn many(source: &dyn Lookup, grants: &Grants, budget: &Budget, of: &Selection) -> Answer<Vec<String>, Refused> {
    granted(grants, &of.api_version, &of.kind)?;
    names::api_version(&of.api_version)?;
    names::namespace(of.namespace.as_deref())?;
    budget.charge_lookup(names::bytes_of_list(of))?;
    source.list(of).await
}

impl workload::Host for WorkloadView<'_> {
    async fn get(&mut self, target: types::ObjectRef) -> Result<Answer<String, types::CallError>> {
        let target = target.into();
        let request = || Request::WorkloadGet(ObjectRef::clone(&target));
        let answer = self.tape.ask(request, one(self.source, self.grants, self.budget, &target)).await?;
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
        let answer = self
            .tape
            .ask(|| Request::WorkloadList(of.clone()), many(self.source, self.grants, self.budget, &of))
            .await?;
        Ok(answer.map_err(Into::into))
    }

    async fn serving_certificate(
        &mut self,
        namespace: String,
        pod: String,
        port: u16,
    ) -> Result<Answer<String, types::CallError>> {
        let request = || Request::ServingCertificate { namespace: namespace.clone(), pod: pod.clone(), port };
        let certificate = async {
            granted(self.grants, "v1", "Pod")?;
            names::name(&namespace).and_then(|()| names::name(&pod))?;
            self.budget.charge(Limit::Requests, 1_u32)?;
            self.certificates.serving_certificate(&namespace, &pod, port).await
        };
        Ok(self.tape.ask(request, certificate).await?.map_err(Into::into))
    }
}
