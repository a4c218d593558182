//! Slots that controllers share, and the passes that have one.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Claim;
use crate::{
    queue::Rank,
    slots::{Granted, Lines, Share},
};

/// Places for passes: of one controller, or of several together. Cheap to clone.
#[derive(Clone)]
pub struct Slots(Arc<Mutex<Lines<Claim>>>);

impl Slots {
    /// So many, at least one.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines::new(count))))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().count()
    }

    /// So many from now on. A pass that has one keeps it: where there are fewer than before, none starts until so many ended.
    pub fn resize(&self, count: usize) {
        let mut lines = self.0.lock();
        let granted = lines.resize(count);
        self.tell(granted);
    }

    /// Gives `claim` a slot as soon as it may have one.
    pub(super) fn ask(&self, share: Share, claim: Claim, rank: Rank) {
        let mut lines = self.0.lock();
        let granted = lines.ask(share, claim, rank);
        self.tell(granted);
    }

    /// These wait no more.
    pub(super) fn forget(&self, whom: impl Fn(&Claim) -> bool) {
        self.0.lock().forget(whom);
    }

    /// Called with the lock held: nobody of those is told of a slot after [`Slots::forget`].
    fn tell(&self, granted: impl IntoIterator<Item = Granted<Claim>>) {
        for Granted { who, share } in granted {
            who.scheduler.grant(who.key, Slot { slots: self.clone(), share });
        }
    }
}

/// A slot that a key has, until it is dropped.
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
