//! `etcd`: membership of the workload cluster's etcd. Granted as a whole, since whoever removes members can end the
//! cluster; each function counts as one request of the call.

use std::result::Result as Answer;

use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use crate::bindings::{etcd, types};
use crate::call::{Etcd, EtcdMember};
use crate::capability::http::count_request;
use crate::refused::Refused;

/// What `etcd` sees.
pub(crate) struct EtcdView<'a> {
    pub(crate) source: &'a dyn Etcd,
    pub(crate) granted: bool,
    pub(crate) requests_left: &'a mut u32,
}

struct HasEtcd;

impl HasData for HasEtcd {
    type Data<'a> = EtcdView<'a>;
}

pub(crate) fn add_to_linker<T: Send + 'static>(linker: &mut Linker<T>, view: fn(&mut T) -> EtcdView<'_>) -> Result<()> {
    etcd::add_to_linker::<T, HasEtcd>(linker, view)
}

impl EtcdView<'_> {
    /// The way to etcd, for one request.
    fn admit(&mut self) -> Answer<&dyn Etcd, Refused> {
        if !self.granted {
            return Err(Refused::denied("etcd is not granted; set spec.grants.etcd"));
        }
        count_request(self.requests_left)?;
        Ok(self.source)
    }

    async fn all(&mut self) -> Answer<Vec<EtcdMember>, Refused> {
        self.admit()?.members().await
    }

    async fn take_out(&mut self, id: u64) -> Answer<(), Refused> {
        self.admit()?.remove(id).await
    }

    async fn lead(&mut self, to: u64) -> Answer<(), Refused> {
        self.admit()?.move_leader(to).await
    }
}

impl etcd::Host for EtcdView<'_> {
    async fn members(&mut self) -> Result<Answer<Vec<etcd::Member>, types::CallError>> {
        let members = self.all().await;
        Ok(members.map(|members| members.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    async fn remove(&mut self, id: u64) -> Result<Answer<(), types::CallError>> {
        Ok(self.take_out(id).await.map_err(Into::into))
    }

    async fn move_leader(&mut self, to: u64) -> Result<Answer<(), types::CallError>> {
        Ok(self.lead(to).await.map_err(Into::into))
    }
}

impl From<EtcdMember> for etcd::Member {
    fn from(member: EtcdMember) -> Self {
        let EtcdMember { id, name, peer_urls, learner, leader, healthy, message, alarms } = member;
        etcd::Member { id, name, peer_urls, learner, leader, healthy, message, alarms }
    }
}
