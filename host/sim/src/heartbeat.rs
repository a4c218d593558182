//! Heartbeats of all simulated nodes of a process: one task, a wheel of slots, writes of a slot sent together so that the store
//! commits them as one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::kubelet::{self, LEASE_SECONDS, Registration};
use crate::workload::Workloads;

/// Slots of the wheel; a slot is due every second, so a node beats as often as a kubelet does by default.
const SLOTS: usize = 10;
/// Writes in flight at once.
const CONCURRENCY: usize = 128;

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Keyspace of the cluster.
    pub keyspace: String,
    /// Node name.
    pub node: String,
}

#[derive(Default)]
struct State {
    wheel: [HashMap<Member, Option<Registration>>; SLOTS],
    next: usize,
    /// Nodes that went silent, and when somebody should notice.
    silent: VecDeque<(Instant, Member)>,
}

/// The wheel.
pub struct Heartbeats {
    workloads: Arc<Workloads>,
    state: Mutex<State>,
}

impl Heartbeats {
    /// A wheel without nodes.
    pub fn new(workloads: Arc<Workloads>) -> Arc<Heartbeats> {
        Arc::new(Heartbeats { workloads, state: Mutex::default() })
    }

    /// Lets a node beat. With a registration it registers itself anew first, as a kubelet that starts does.
    pub fn add(&self, member: Member, registration: Option<Registration>) {
        let mut state = self.state.lock();
        state.silent.retain(|(_, silent)| *silent != member);
        if let Some(slot) = state.wheel.iter_mut().find(|slot| slot.contains_key(&member)) {
            if registration.is_some() {
                slot.insert(member, registration);
            }
            return;
        }
        let slot = state.next;
        state.next = (slot + 1) % SLOTS;
        state.wheel[slot].insert(member, registration);
    }

    /// Stops a node's heartbeat; when it stays silent, its Node becomes Unknown as if a lifecycle controller saw it.
    pub fn remove(&self, member: &Member) {
        let mut state = self.state.lock();
        for slot in &mut state.wheel {
            slot.remove(member);
        }
        let patience = Duration::from_secs(u64::try_from(LEASE_SECONDS).unwrap_or(40));
        state.silent.push_back((Instant::now() + patience, member.clone()));
    }

    /// Turns the wheel until cancelled.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for slot in (0..SLOTS).cycle() {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let (due, gone) = {
                let mut state = self.state.lock();
                let due: Vec<(Member, Option<Registration>)> =
                    state.wheel[slot].iter().map(|(m, r)| (m.clone(), r.clone())).collect();
                let mut gone = Vec::new();
                while state.silent.front().is_some_and(|(at, _)| *at <= Instant::now()) {
                    gone.extend(state.silent.pop_front().map(|(_, member)| member));
                }
                (due, gone)
            };
            futures::stream::iter(due)
                .for_each_concurrent(CONCURRENCY, |(member, registration)| self.beat(slot, member, registration))
                .await;
            futures::stream::iter(gone).for_each_concurrent(CONCURRENCY, |member| self.notice(member)).await;
        }
    }

    async fn beat(&self, slot: usize, member: Member, registration: Option<Registration>) {
        // No server of the cluster runs: as with a real kubelet, nobody hears it.
        let Some(rest) = self.workloads.node_client(&member.keyspace, &member.node) else { return };
        let outcome = match &registration {
            Some(registration) => registration.register(&rest).await,
            None => kubelet::beat(&rest, &member.node).await,
        };
        match outcome {
            Ok(()) if registration.is_some() => {
                if let Some(pending) = self.state.lock().wheel[slot].get_mut(&member)
                    && *pending == registration
                {
                    *pending = None;
                }
            }
            Ok(()) => {}
            Err(error) => tracing::debug!(node = member.node, keyspace = member.keyspace, %error, "heartbeat failed"),
        }
    }

    async fn notice(&self, member: Member) {
        let Some(rest) = self.workloads.controller_client(&member.keyspace) else { return };
        if let Err(error) = kubelet::mark_unknown(&rest, &member.node).await {
            tracing::debug!(node = member.node, keyspace = member.keyspace, %error, "unable to mark a silent node");
        }
    }
}
