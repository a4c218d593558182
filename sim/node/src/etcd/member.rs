//! One member's answers, out of what its cluster knows.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use capwasm_etcd::message::{
    AlarmAction, AlarmRequest, AlarmResponse, AlarmType, MemberAddRequest, MemberAddResponse, MemberListRequest,
    MemberListResponse, MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
    MoveLeaderRequest, MoveLeaderResponse, ResponseHeader, StatusRequest, StatusResponse,
};
use capwasm_etcd::server::{Answers, Status};

use super::Etcd;
use super::membership::{Membership, Refusal};

/// The version that it reports, and whose behaviour it has.
const VERSION: &str = "3.6.4";

pub(super) struct SimulatedMember {
    etcd: Weak<Etcd>,
    keyspace: String,
    id: u64,
}

impl SimulatedMember {
    pub(super) fn new(etcd: Weak<Etcd>, keyspace: String, id: u64) -> Self {
        Self { etcd, keyspace, id }
    }

    fn etcd(&self) -> Result<Arc<Etcd>, Status> {
        self.etcd.upgrade().ok_or_else(|| Status::unavailable("etcdserver: server stopped"))
    }

    fn see<T>(&self, look: impl FnOnce(&Membership, &BTreeSet<u64>) -> Result<T, Refusal>) -> Result<T, Status> {
        let seen = self.etcd()?.see(&self.keyspace, look);
        Ok(seen.unwrap_or(Err(Refusal::NoCluster))?)
    }

    /// Changes the membership, and answers from what it is then.
    fn act<T, A>(
        &self,
        act: impl FnOnce(&mut Membership, &BTreeSet<u64>) -> Result<T, Refusal>,
        answer: impl FnOnce(T, Option<ResponseHeader>, &Membership) -> A,
    ) -> Result<A, Status> {
        let done = self.etcd()?.on(&self.keyspace, |cluster, alive| {
            let done = act(cluster, alive)?;
            Ok(answer(done, Some(cluster.header(self.id)), cluster))
        });
        Ok(done?)
    }
}

#[async_trait]
impl Answers for SimulatedMember {
    async fn status(&self, _: StatusRequest) -> Result<StatusResponse, Status> {
        self.see(|cluster, alive| {
            let header = cluster.header(self.id);
            let leader = cluster.leader(alive);
            let index = u64::try_from(header.revision).unwrap_or_default();
            let mut errors = Vec::new();
            if leader == 0 {
                errors.push("etcdserver: no leader".to_owned());
            }
            let alarm = |kind: AlarmType, id: u64| format!("memberID:{id} alarm:{} ", kind.name());
            errors.extend(cluster.alarms().iter().map(|raised| alarm(raised.alarm(), raised.member_id)));
            Ok(StatusResponse {
                header: Some(header),
                version: VERSION.to_owned(),
                // There are no data.
                db_size: 0,
                leader,
                raft_index: index,
                raft_term: header.raft_term,
                raft_applied_index: index,
                errors,
                is_learner: cluster.is_learner(self.id),
            })
        })
    }

    async fn alarm(&self, request: AlarmRequest) -> Result<AlarmResponse, Status> {
        let answer = |(), header, cluster: &Membership| AlarmResponse { header, alarms: cluster.alarms() };
        let raised = match request.action() {
            AlarmAction::Get => {
                return self.see(|cluster, alive| {
                    cluster.majority(alive)?;
                    Ok(answer((), Some(cluster.header(self.id)), cluster))
                });
            }
            AlarmAction::Activate => true,
            AlarmAction::Deactivate => false,
        };
        self.act(|cluster, alive| cluster.alarm(request.member_id, request.alarm, raised, alive), answer)
    }

    async fn move_leader(&self, request: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status> {
        let target = request.target_id;
        self.act(
            |cluster, alive| cluster.move_leader(self.id, target, alive),
            |(), header, _| MoveLeaderResponse { header },
        )
    }

    async fn member_list(&self, request: MemberListRequest) -> Result<MemberListResponse, Status> {
        self.see(|cluster, alive| {
            if request.linearizable {
                cluster.majority(alive)?;
            }
            Ok(MemberListResponse { header: Some(cluster.header(self.id)), members: cluster.list() })
        })
    }

    async fn member_add(&self, request: MemberAddRequest) -> Result<MemberAddResponse, Status> {
        self.act(
            |cluster, alive| cluster.add(request.peer_urls, request.is_learner, alive),
            |id, header, cluster| MemberAddResponse { header, member: cluster.find(id), members: cluster.list() },
        )
    }

    async fn member_remove(&self, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status> {
        self.act(
            |cluster, alive| cluster.remove(request.id, alive),
            |(), header, cluster| MemberRemoveResponse { header, members: cluster.list() },
        )
    }

    async fn member_promote(&self, request: MemberPromoteRequest) -> Result<MemberPromoteResponse, Status> {
        self.act(
            |cluster, alive| cluster.promote(request.id, alive),
            |(), header, cluster| MemberPromoteResponse { header, members: cluster.list() },
        )
    }
}
