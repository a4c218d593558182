//! Worker slots: how many passes run at a time, of one controller or of several that share them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Claim;
use crate::{
    fair_queue::{FairQueue, Flow, Granted},
    queue::Rank,
};

/// Slots for passes of one or several controllers, as `MaxConcurrentReconciles` in controller-runtime. Cheap to clone.
#[derive(Clone)]
pub struct WorkerSlots(Arc<Mutex<FairQueue<Claim>>>);

impl WorkerSlots {
    /// `count` slots, at least one.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(FairQueue::new(count))))
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.0.lock().count()
    }

    /// Changes the number of slots. Running passes keep theirs: with fewer slots none starts until enough have ended.
    pub fn resize(&self, count: usize) {
        let mut queue = self.0.lock();
        let granted = queue.resize(count);
        self.tell(granted);
    }

    /// Queues `claim` for a slot.
    pub(super) fn ask(&self, flow: Flow, claim: Claim, rank: Rank) {
        let mut queue = self.0.lock();
        let granted = queue.ask(flow, claim, rank);
        self.tell(granted);
    }

    /// Removes waiters.
    pub(super) fn forget(&self, whom: impl Fn(&Claim) -> bool) {
        self.0.lock().forget(whom);
    }

    /// Must be called with the lock held, so that nobody gets a slot after [`WorkerSlots::forget`].
    fn tell(&self, granted: impl IntoIterator<Item = Granted<Claim>>) {
        for Granted { who, flow } in granted {
            who.scheduler.grant(who.key, WorkerSlot { slots: self.clone(), flow });
        }
    }
}

/// Slot of a key, freed when dropped.
pub(super) struct WorkerSlot {
    slots: WorkerSlots,
    flow: Flow,
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        let mut queue = self.slots.0.lock();
        let granted = queue.release(&self.flow);
        self.slots.tell(granted);
    }
}
