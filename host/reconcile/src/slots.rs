//! How many passes run at a time, and which key is next.
//!
//! Pure: it neither wakes nor runs a pass. Slots that are divided give one share (a cluster's objects) at most a quarter of
//! them, rounded up, however few others there are: a slot that is lent comes back only when its pass ends, so whoever lends more
//! cannot keep a promise to the next. A share that has its quarter waits in a line of its own and holds nothing meanwhile;
//! lines take turns.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::queue::Rank;

/// Group of passes among which slots are divided; `None` is unlimited.
pub(crate) type Share = Option<Arc<str>>;

/// Holder of a new slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Granted<W> {
    pub(crate) who: W,
    pub(crate) share: Share,
}

/// Taken slots, and waiters. Nobody waits while a slot is available to them.
pub(crate) struct Lines<W> {
    count: usize,
    taken: usize,
    by_share: HashMap<Share, usize>,
    changes: Line<W>,
    resyncs: Line<W>,
}

/// Waiters of one urgency: in order within a share, shares in turn.
struct Line<W> {
    waiting: HashMap<Share, VecDeque<W>>,
    /// Shares with waiters, next one first.
    turns: VecDeque<Share>,
}

impl<W> Lines<W> {
    pub(crate) fn new(count: usize) -> Self {
        let line = || Line { waiting: HashMap::new(), turns: VecDeque::new() };
        Self { count: count.max(1), taken: 0, by_share: HashMap::new(), changes: line(), resyncs: line() }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Queues `who`. Returns whoever gets a slot by that.
    pub(crate) fn ask(&mut self, share: Share, who: W, rank: Rank) -> Option<Granted<W>> {
        match rank {
            Rank::First => self.changes.push(share, |waiting| waiting.push_front(who)),
            Rank::Change => self.changes.push(share, |waiting| waiting.push_back(who)),
            Rank::Resync => self.resyncs.push(share, |waiting| waiting.push_back(who)),
        }
        self.next()
    }

    /// Frees a slot of the share. Returns who gets it.
    pub(crate) fn leave(&mut self, share: &Share) -> Option<Granted<W>> {
        if let Some(taken) = self.by_share.get_mut(share) {
            *taken -= 1;
            self.taken -= 1;
            if *taken == 0 {
                self.by_share.remove(share);
            }
        }
        // One slot more is free, or one share is one below its quarter: either way that is one who may go on.
        self.next()
    }

    pub(crate) fn resize(&mut self, count: usize) -> Vec<Granted<W>> {
        self.count = count.max(1);
        std::iter::from_fn(|| self.next()).collect()
    }

    pub(crate) fn forget(&mut self, whom: impl Fn(&W) -> bool) {
        self.changes.forget(&whom);
        self.resyncs.forget(&whom);
    }

    fn next(&mut self) -> Option<Granted<W>> {
        let may = |share: &Share| {
            let most = if share.is_some() { self.count.div_ceil(4) } else { self.count };
            self.taken < self.count && self.by_share.get(share).copied().unwrap_or(0) < most
        };
        let (share, who) = self.changes.take(may).or_else(|| self.resyncs.take(may))?;
        self.taken += 1;
        *self.by_share.entry(share.clone()).or_default() += 1;
        Some(Granted { who, share })
    }
}

impl<W> Line<W> {
    fn push(&mut self, share: Share, push: impl FnOnce(&mut VecDeque<W>)) {
        let waiting = self.waiting.entry(share.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(share);
        }
        push(waiting);
    }

    /// The first waiter of the next share that is allowed.
    fn take(&mut self, may: impl Fn(&Share) -> bool) -> Option<(Share, W)> {
        // Short: only shares that have their quarter are passed over, and these are four while slots are free.
        let turn = self.turns.iter().position(may)?;
        let share = self.turns.remove(turn)?;
        let waiting = self.waiting.get_mut(&share)?;
        let who = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&share);
        } else {
            self.turns.push_back(share.clone());
        }
        Some((share, who))
    }

    fn forget(&mut self, whom: impl Fn(&W) -> bool) {
        self.waiting.values_mut().for_each(|waiting| waiting.retain(|who| !whom(who)));
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.turns.retain(|share| self.waiting.contains_key(share));
    }
}

#[cfg(test)]
mod tests;
