//! `etcd`: membership of the workload cluster's etcd. Granted as a whole, since whoever removes members can end the
//! cluster; each function counts as one request of the call.

use std::result::Result as Answer;

use capwasm_contract::Refused;
use capwasm_contract::recording::Request;
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{etcd, types};
use crate::budget::{Budget, Limit};
use crate::call::Etcd;
use crate::record::tape::Tape;

pub(crate) struct EtcdView<'a> {
    pub(crate) source: &'a dyn Etcd,
    pub(crate) granted: bool,
    pub(crate) budget: &'a Budget,
    pub(crate) tape: &'a mut Tape,
}

struct HasEtcd;

impl HasData for HasEtcd {
    type Data<'a> = EtcdView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> EtcdView<'_>) -> Result<()> {
    etcd::add_to_linker::<T, HasEtcd>(linker, view)
}

/// Checks the grant and counts a request.
fn admit<'a>(source: &'a dyn Etcd, granted: bool, budget: &Budget) -> Answer<&'a dyn Etcd, Refused> {
    if !granted {
        return Err(Refused::denied("etcd is not granted; set spec.grants.etcd"));
    }
    budget.charge(Limit::Requests, 1_u32)?;
    Ok(source)
}

impl etcd::Host for EtcdView<'_> {
    async fn members(&mut self) -> Result<Answer<Vec<etcd::Member>, types::CallError>> {
        let members = async { admit(self.source, self.granted, self.budget)?.members().await };
        let members = self.tape.ask(|| Request::EtcdMembers, members).await?;
        Ok(members.map(|members| members.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    async fn remove(&mut self, id: u64) -> Result<Answer<(), types::CallError>> {
        let removed = async { admit(self.source, self.granted, self.budget)?.remove(id).await };
        Ok(self.tape.ask(|| Request::EtcdRemove { id }, removed).await?.map_err(Into::into))
    }

    async fn move_leader(&mut self, to: u64) -> Result<Answer<(), types::CallError>> {
        let moved = async { admit(self.source, self.granted, self.budget)?.move_leader(to).await };
        Ok(self.tape.ask(|| Request::EtcdMoveLeader { to }, moved).await?.map_err(Into::into))
    }
}
