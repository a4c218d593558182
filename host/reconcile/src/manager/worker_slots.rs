//! Worker slots: how many passes run at a time, of one controller or of several that share them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Claim;
use crate::{
    fair_queue::{FairQueue, Flow, Granted},
    queue::Rank,
};

/// Slots for passes, what `MaxConcurrentReconciles` is in controller-runtime; but several controllers may share them. Cheap to clone.
#[derive(Clone)]
pub struct WorkerSlots(Arc<Mutex<FairQueue<Claim>>>);

impl WorkerSlots {
    /// So many, at least one.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(FairQueue::new(count))))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().count()
    }

    /// So many from now on. A pass that has one keeps it: where there are fewer than before, none starts until so many ended.
    pub fn resize(&self, count: usize) {
        let mut queue = self.0.lock();
        let granted = queue.resize(count);
        self.tell(granted);
    }

    /// Gives `claim` a slot as soon as it may have one.
    pub(super) fn ask(&self, flow: Flow, claim: Claim, rank: Rank) {
        let mut queue = self.0.lock();
        let granted = queue.ask(flow, claim, rank);
        self.tell(granted);
    }

    /// These wait no more.
    pub(super) fn forget(&self, whom: impl Fn(&Claim) -> bool) {
        self.0.lock().forget(whom);
    }

    /// Called with the lock held: nobody of those is told of a slot after [`WorkerSlots::forget`].
    fn tell(&self, granted: impl IntoIterator<Item = Granted<Claim>>) {
        for Granted { who, flow } in granted {
            who.scheduler.grant(who.key, WorkerSlot { slots: self.clone(), flow });
        }
    }
}

/// A slot that a key has, until it is dropped.
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
