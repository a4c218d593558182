//! Who is a member of one etcd cluster, and etcd's rules about changing that. Pure: `alive` says whose process answers.

use std::collections::BTreeSet;

use capwasm_etcd::Code;
use capwasm_etcd::message::{self, AlarmMember, ResponseHeader};
use capwasm_etcd::server::Status;
use serde::{Deserialize, Serialize};

/// Learners at a time, as etcd has it.
const MOST_LEARNERS: usize = 1;

/// Members of one cluster, and who leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Membership {
    id: u64,
    term: u64,
    revision: i64,
    /// Who was elected last; leads as long as it answers and there is a majority.
    leader: u64,
    members: Vec<Member>,
    /// Names of members that were taken out and not added again.
    removed: BTreeSet<String>,
}

/// One member. `name` and `client_url` are empty until it has started for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    id: u64,
    /// The node's, which kubeadm knows before the member has published its own.
    node: String,
    name: String,
    peer_urls: Vec<String>,
    client_url: String,
    learner: bool,
    lost: bool,
    alarms: BTreeSet<i32>,
}

/// Why something was not done, in etcd's words where they are etcd's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("etcdserver: request timed out")]
    TimedOut,
    #[error("etcdserver: member not found")]
    NotFound,
    #[error("etcdserver: Peer URLs already exists")]
    PeerExists,
    #[error("etcdserver: can only promote a learner member")]
    NotLearner,
    #[error("etcdserver: can only promote a learner member which is in sync with leader")]
    LearnerNotReady,
    #[error("etcdserver: too many learner members in cluster")]
    TooManyLearners,
    #[error("etcdserver: re-configuration failed due to not enough started members")]
    NotEnoughStarted,
    #[error("etcdserver: unhealthy cluster")]
    Unhealthy,
    #[error("etcdserver: not leader")]
    NotLeader,
    #[error("etcdserver: bad leader transferee")]
    BadTransferee,
    #[error("there is no etcd cluster yet")]
    NoCluster,
    #[error("etcd has members already, and {0} is none of them")]
    Initialized(String),
    #[error("unable to write the members down: {0}")]
    Disk(String),
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::NotFound => Code::NotFound,
            Refusal::TimedOut | Refusal::Unhealthy | Refusal::NoCluster => Code::Unavailable,
            Refusal::Disk(_) => Code::Internal,
            _ => Code::FailedPrecondition,
        };
        Status::new(code, refusal.to_string())
    }
}

fn some_id() -> u64 {
    // 0 stands for nobody.
    rand::random::<u64>().max(1)
}

impl Default for Membership {
    fn default() -> Self {
        Self { id: some_id(), term: 1, revision: 1, leader: 0, members: Vec::new(), removed: BTreeSet::new() }
    }
}

impl Membership {
    pub(super) fn initialize(&mut self, node: &str, peer_url: &str) -> Result<u64, Refusal> {
        if let Some(id) = self.id_of(node) {
            return Ok(id);
        }
        if !self.members.is_empty() {
            return Err(Refusal::Initialized(node.to_owned()));
        }
        Ok(self.insert(node, vec![peer_url.to_owned()], false))
    }

    /// As kubeadm joins: as a learner; it gets its vote when it starts.
    pub(super) fn join(&mut self, node: &str, peer_url: &str, alive: &BTreeSet<u64>) -> Result<u64, Refusal> {
        if let Some(id) = self.id_of(node) {
            return Ok(id);
        }
        // Added by its address, by somebody who did not know its name.
        let url = peer_url.to_owned();
        if let Some(added) =
            self.members.iter_mut().find(|member| member.node.is_empty() && member.peer_urls.contains(&url))
        {
            node.clone_into(&mut added.node);
            self.removed.remove(node);
            return Ok(added.id);
        }
        let id = self.add(vec![url], true, alive)?;
        if let Some(member) = self.members.iter_mut().find(|member| member.id == id) {
            node.clone_into(&mut member.node);
        }
        self.removed.remove(node);
        Ok(id)
    }

    pub(super) fn add(&mut self, peer_urls: Vec<String>, learner: bool, alive: &BTreeSet<u64>) -> Result<u64, Refusal> {
        self.majority(alive)?;
        if self.members.iter().any(|member| member.peer_urls.iter().any(|url| peer_urls.contains(url))) {
            return Err(Refusal::PeerExists);
        }
        if learner && self.members.iter().filter(|member| member.learner).count() >= MOST_LEARNERS {
            return Err(Refusal::TooManyLearners);
        }
        if !learner && self.voters().any(|member| !alive.contains(&member.id)) {
            return Err(Refusal::Unhealthy);
        }
        Ok(self.insert("", peer_urls, learner))
    }

    fn insert(&mut self, node: &str, peer_urls: Vec<String>, learner: bool) -> u64 {
        let id = some_id();
        self.members.push(Member {
            id,
            node: node.to_owned(),
            name: String::new(),
            peer_urls,
            client_url: String::new(),
            learner,
            lost: false,
            alarms: BTreeSet::new(),
        });
        self.removed.remove(node);
        self.revision += 1;
        id
    }

    pub(super) fn remove(&mut self, id: u64, alive: &BTreeSet<u64>) -> Result<(), Refusal> {
        self.majority(alive)?;
        let member = self.members.iter().find(|member| member.id == id).ok_or(Refusal::NotFound)?;
        if !member.learner {
            let left = self.voters().filter(|member| member.id != id);
            let (left, started) =
                left.fold((0, 0), |(left, started), member| (left + 1, started + usize::from(!member.name.is_empty())));
            if started < left / 2 + 1 {
                return Err(Refusal::NotEnoughStarted);
            }
            // One that is down is no part of the majority; one that answers may go if the others do.
            let active = self.voters().filter(|member| alive.contains(&member.id)).count();
            if alive.contains(&id) && active - 1 < left / 2 + 1 {
                return Err(Refusal::Unhealthy);
            }
        }
        let node = member.node.clone();
        self.members.retain(|member| member.id != id);
        if !node.is_empty() {
            self.removed.insert(node);
        }
        self.revision += 1;
        Ok(())
    }

    /// Takes a node's member out without a trace; how many are left.
    pub(super) fn withdraw(&mut self, node: &str) -> usize {
        self.members.retain(|member| member.node != node);
        self.revision += 1;
        self.members.len()
    }

    pub(super) fn promote(&mut self, id: u64, alive: &BTreeSet<u64>) -> Result<(), Refusal> {
        self.majority(alive)?;
        let member = self.members.iter_mut().find(|member| member.id == id).ok_or(Refusal::NotFound)?;
        if !member.learner {
            return Err(Refusal::NotLearner);
        }
        if !alive.contains(&id) {
            return Err(Refusal::LearnerNotReady);
        }
        member.learner = false;
        self.revision += 1;
        Ok(())
    }

    /// A member has started: it gets its vote, and so do those that had to wait for a majority.
    pub(super) fn promote_started(&mut self, alive: &BTreeSet<u64>) -> Result<(), Refusal> {
        let learners: Vec<u64> = self.members.iter().filter(|member| member.learner).map(|member| member.id).collect();
        self.majority(alive)?;
        learners.into_iter().filter(|id| alive.contains(id)).try_for_each(|id| self.promote(id, alive))
    }

    /// Refused by a member that does not lead: `from` is the one that is asked.
    pub(super) fn move_leader(&mut self, from: u64, to: u64, alive: &BTreeSet<u64>) -> Result<(), Refusal> {
        if self.leader(alive) != from {
            return Err(Refusal::NotLeader);
        }
        if !self.voters().any(|member| member.id == to) {
            return Err(Refusal::BadTransferee);
        }
        if !alive.contains(&to) {
            return Err(Refusal::TimedOut);
        }
        self.lead(to);
        Ok(())
    }

    /// Has somebody lead who answers, if there is a majority.
    pub(super) fn elect(&mut self, alive: &BTreeSet<u64>) {
        let able: Vec<u64> = self.voters().map(|member| member.id).filter(|id| alive.contains(id)).collect();
        if let Some(first) = able.first().filter(|_| self.has_quorum(alive) && !able.contains(&self.leader)) {
            self.lead(*first);
        }
    }

    fn lead(&mut self, id: u64) {
        if self.leader != id {
            self.leader = id;
            self.term += 1;
        }
    }

    /// A node's member publishes its name and where it serves.
    pub(super) fn started(&mut self, node: &str, client_url: String) -> Option<u64> {
        let member = self.members.iter_mut().find(|member| member.node == node)?;
        node.clone_into(&mut member.name);
        member.client_url = client_url;
        Some(member.id)
    }

    pub(super) fn lose(&mut self, node: &str) {
        for member in self.members.iter_mut().filter(|member| member.node == node) {
            member.lost = true;
        }
    }

    /// Raises an alarm, or takes it back. Members that there are not raise none.
    pub(super) fn alarm(&mut self, id: u64, alarm: i32, raised: bool, alive: &BTreeSet<u64>) -> Result<(), Refusal> {
        self.majority(alive)?;
        for member in self.members.iter_mut().filter(|member| member.id == id) {
            if raised {
                member.alarms.insert(alarm);
            } else {
                member.alarms.remove(&alarm);
            }
        }
        Ok(())
    }

    pub(super) fn alarms(&self) -> Vec<AlarmMember> {
        let of = |member: &Member| {
            let member_id = member.id;
            member.alarms.iter().map(|alarm| AlarmMember { member_id, alarm: *alarm }).collect::<Vec<_>>()
        };
        self.members.iter().flat_map(of).collect()
    }

    fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.learner)
    }

    pub(super) fn has_quorum(&self, alive: &BTreeSet<u64>) -> bool {
        let up = self.voters().filter(|member| alive.contains(&member.id)).count();
        2 * up > self.voters().count()
    }

    /// What needs a majority waits for it in vain.
    pub(super) fn majority(&self, alive: &BTreeSet<u64>) -> Result<(), Refusal> {
        if self.has_quorum(alive) { Ok(()) } else { Err(Refusal::TimedOut) }
    }

    /// Who leads; 0 when nobody does.
    pub(super) fn leader(&self, alive: &BTreeSet<u64>) -> u64 {
        if self.has_quorum(alive) && alive.contains(&self.leader) { self.leader } else { 0 }
    }

    /// Nodes and peer URLs, as `--initial-cluster` lists them.
    pub(super) fn peers(&self) -> Vec<(String, String)> {
        let peer = |member: &Member| Some((member.node.clone(), member.peer_urls.first()?.clone()));
        self.members.iter().filter_map(peer).collect()
    }

    pub(super) fn id_of(&self, node: &str) -> Option<u64> {
        self.members.iter().find(|member| member.node == node).map(|member| member.id)
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.members.iter().any(|member| member.id == id)
    }

    pub(super) fn is_learner(&self, id: u64) -> bool {
        self.members.iter().any(|member| member.id == id && member.learner)
    }

    pub(super) fn was_removed(&self, node: &str) -> bool {
        self.removed.contains(node)
    }

    pub(super) fn has_lost(&self, node: &str) -> bool {
        self.members.iter().any(|member| member.node == node && member.lost)
    }

    pub(super) fn header(&self, member_id: u64) -> ResponseHeader {
        ResponseHeader { cluster_id: self.id, member_id, revision: self.revision, raft_term: self.term }
    }

    pub(super) fn list(&self) -> Vec<message::Member> {
        self.members.iter().map(Member::message).collect()
    }

    pub(super) fn find(&self, id: u64) -> Option<message::Member> {
        self.members.iter().find(|member| member.id == id).map(Member::message)
    }
}

impl Member {
    fn message(&self) -> message::Member {
        let urls = |url: &String| if url.is_empty() { Vec::new() } else { vec![url.clone()] };
        message::Member {
            id: self.id,
            name: self.name.clone(),
            peer_urls: self.peer_urls.clone(),
            client_urls: urls(&self.client_url),
            is_learner: self.learner,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    /// A cluster of `count` voting members that have started: `n0` and so on, of which the first leads.
    fn cluster(count: usize) -> (Membership, Vec<u64>) {
        let mut cluster = Membership::default();
        let mut ids: Vec<u64> = Vec::new();
        for number in 0..count {
            let (node, url) = (format!("n{number}"), format!("https://10.0.0.{number}:2380"));
            let alive = ids.iter().copied().collect();
            let id = if ids.is_empty() { cluster.initialize(&node, &url) } else { cluster.join(&node, &url, &alive) };
            ids.push(id.unwrap());
            cluster.started(&node, String::new()).unwrap();
            let alive = ids.iter().copied().collect();
            cluster.promote_started(&alive).unwrap();
            cluster.elect(&alive);
        }
        (cluster, ids)
    }

    fn only(ids: &[u64], which: &[usize]) -> BTreeSet<u64> {
        which.iter().map(|at| ids[*at]).collect()
    }

    #[test]
    fn members_are_removed_as_far_as_a_majority_stays() {
        // Voting members, those that answer, the one to be removed.
        type Row = (&'static str, usize, &'static [usize], usize, Result<(), Refusal>);
        let rows: [Row; 9] = [
            ("one of three", 3, &[0, 1, 2], 2, Ok(())),
            ("the leader", 3, &[0, 1, 2], 0, Ok(())),
            ("one that is down", 3, &[0, 1], 2, Ok(())),
            ("one that answers while another is down", 3, &[0, 1], 1, Err(Refusal::Unhealthy)),
            ("without a majority", 3, &[0], 2, Err(Refusal::TimedOut)),
            ("one of two", 2, &[0, 1], 1, Ok(())),
            ("one of two that is down", 2, &[0], 1, Err(Refusal::TimedOut)),
            ("the last", 1, &[0], 0, Err(Refusal::NotEnoughStarted)),
            ("one of five with one down", 5, &[0, 1, 2, 3], 3, Ok(())),
        ];
        for (name, count, alive, which, expected) in rows {
            let (mut cluster, ids) = cluster(count);
            let alive = only(&ids, alive);
            assert_eq!(cluster.remove(ids[which], &alive), expected, "{name}");
            assert_eq!(cluster.contains(ids[which]), expected.is_err(), "{name}");
            if expected.is_ok() {
                let left: BTreeSet<u64> = alive.into_iter().filter(|id| *id != ids[which]).collect();
                cluster.elect(&left);
                assert!(cluster.has_quorum(&left) && left.contains(&cluster.leader(&left)), "{name}");
                assert!(cluster.was_removed(&format!("n{which}")), "{name}");
                assert_eq!(cluster.remove(ids[which], &left), Err(Refusal::NotFound), "{name}");
            }
        }
    }

    #[test]
    fn nobody_leads_without_a_majority_and_somebody_does_with_one() {
        let (mut cluster, ids) = cluster(3);
        let led = |cluster: &mut Membership, alive: &[usize]| {
            let alive = only(&ids, alive);
            cluster.elect(&alive);
            ids.iter().position(|id| *id == cluster.leader(&alive))
        };
        assert_eq!(led(&mut cluster, &[0, 1, 2]), Some(0));
        assert_eq!(led(&mut cluster, &[1, 2]), Some(1));
        assert_eq!(led(&mut cluster, &[2]), None);
        assert_eq!(led(&mut cluster, &[0, 2]), Some(0));
    }

    #[test]
    fn only_the_leader_hands_over_the_lead_and_only_to_a_voter_that_answers() {
        let (mut cluster, ids) = cluster(3);
        let all = only(&ids, &[0, 1, 2]);
        assert_eq!(cluster.move_leader(ids[1], ids[2], &all), Err(Refusal::NotLeader));
        assert_eq!(cluster.move_leader(ids[0], 7, &all), Err(Refusal::BadTransferee));
        assert_eq!(cluster.move_leader(ids[0], ids[1], &only(&ids, &[0, 2])), Err(Refusal::TimedOut));
        assert_eq!(cluster.move_leader(ids[0], ids[1], &all), Ok(()));
        cluster.elect(&all);
        assert_eq!(cluster.leader(&all), ids[1]);
    }

    #[test]
    fn members_join_as_learners_one_at_a_time_and_are_known_again() {
        let (mut cluster, ids) = cluster(2);
        let all = only(&ids, &[0, 1]);
        let id = cluster.join("n2", "https://10.0.0.2:2380", &all).unwrap();
        assert_eq!(cluster.join("n2", "https://10.0.0.2:2380", &all), Ok(id), "again, after a crash");
        assert_eq!(cluster.join("n3", "https://10.0.0.3:2380", &all), Err(Refusal::TooManyLearners));
        assert_eq!(cluster.add(vec!["https://10.0.0.1:2380".into()], false, &all), Err(Refusal::PeerExists));
        assert_eq!(cluster.promote(id, &all), Err(Refusal::LearnerNotReady));
        assert!(cluster.is_learner(id) && cluster.has_quorum(&all), "a learner has no vote");
        let with: BTreeSet<u64> = all.iter().copied().chain([id]).collect();
        assert_eq!(cluster.promote(id, &with), Ok(()));
        assert_eq!(cluster.promote(id, &with), Err(Refusal::NotLearner));
        assert_eq!(cluster.initialize("n9", "https://10.0.0.9:2380"), Err(Refusal::Initialized("n9".to_owned())));
    }
}
