//! Concurrency limit that controllers can share.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Claim;
use crate::{
    queue::Rank,
    slots::{Granted, Lines, Share},
};

/// Slots for passes of one or several controllers. Cheap to clone.
#[derive(Clone)]
pub struct Slots(Arc<Mutex<Lines<Claim>>>);

impl Slots {
    /// `count` slots, at least one.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines::new(count))))
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.0.lock().count()
    }

    /// Changes the number of slots. Running passes keep theirs: with fewer slots none starts until enough have ended.
    pub fn resize(&self, count: usize) {
        let mut lines = self.0.lock();
        let granted = lines.resize(count);
        self.tell(granted);
    }

    /// Queues `claim` for a slot.
    pub(super) fn ask(&self, share: Share, claim: Claim, rank: Rank) {
        let mut lines = self.0.lock();
        let granted = lines.ask(share, claim, rank);
        self.tell(granted);
    }

    /// Removes waiters.
    pub(super) fn forget(&self, whom: impl Fn(&Claim) -> bool) {
        self.0.lock().forget(whom);
    }

    /// Must be called with the lock held, so that nobody gets a slot after [`Slots::forget`].
    fn tell(&self, granted: impl IntoIterator<Item = Granted<Claim>>) {
        for Granted { who, share } in granted {
            who.scheduler.grant(who.key, Slot { slots: self.clone(), share });
        }
    }
}

/// Slot of a key, freed when dropped.
pub(super) struct Slot {
    slots: Slots,
    share: Share,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut lines = self.slots.0.lock();
        let granted = lines.leave(&self.share);
        self.slots.tell(granted);
    }
}
