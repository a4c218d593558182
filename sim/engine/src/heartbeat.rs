//! Heartbeats of all simulated nodes of a process: one task, a wheel of slots, writes of a slot sent together so that the store
//! commits them as one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Slots of the wheel; a slot is due every second, so a node beats as often as a kubelet does by default.
const SLOTS: usize = 10;
/// How many heartbeats are sent at a time.
const CONCURRENCY: usize = 128;

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    pub keyspace: String,
    pub node: String,
}

#[async_trait]
pub trait Heart: Send + Sync {
    /// Called every ten seconds.
    async fn beat(&self);
}

#[derive(Default)]
struct State {
    wheel: [HashMap<Member, Arc<dyn Heart>>; SLOTS],
    next: usize,
    /// Those that are new, and do not wait for their turn.
    fresh: Vec<Arc<dyn Heart>>,
}

#[derive(Default)]
pub struct Heartbeats {
    state: Mutex<State>,
}

impl Heartbeats {
    pub fn new() -> Arc<Heartbeats> {
        Arc::default()
    }

    /// Adds a node, or moves it to another turn.
    pub fn add(&self, member: Member, heart: Arc<dyn Heart>) {
        let mut state = self.state.lock();
        for slot in &mut state.wheel {
            slot.remove(&member);
        }
        let slot = state.next;
        state.next = (slot + 1) % SLOTS;
        state.fresh.push(Arc::clone(&heart));
        state.wheel[slot].insert(member, heart);
    }

    /// Stops a node's heartbeat.
    pub fn remove(&self, member: &Member) {
        for slot in &mut self.state.lock().wheel {
            slot.remove(member);
        }
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
            let due: Vec<Arc<dyn Heart>> = {
                let mut state = self.state.lock();
                let fresh = std::mem::take(&mut state.fresh);
                fresh.into_iter().chain(state.wheel[slot].values().cloned()).collect()
            };
            let beats =
                futures::stream::iter(due).for_each_concurrent(CONCURRENCY, |heart| async move { heart.beat().await });
            tokio::select! {
                () = stop.cancelled() => return,
                () = beats => {}
            }
        }
    }
}
