//! Fair queuing for a limited number of slots: how many passes run at a time, and which is next.
//!
//! Pure: it neither wakes nor runs a pass. Slots that are divided give one flow (a cluster's objects) at most a quarter of
//! them, rounded up, however few others there are: a slot that is lent comes back only when its pass ends, so whoever lends more
//! cannot keep a promise to the next. A flow that has its quarter waits in a line of its own and holds nothing meanwhile;
//! these lines take turns. Whoever does not hurry gets every eighth slot, and those that nobody else waits for.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::queue::Rank;

/// What competes for slots, as in fair queuing: namespace and cluster of an object. `None` may take all slots.
pub(crate) type Flow = Option<Arc<str>>;

/// Slots for those who hurry, between two for those who do not.
const HURRIED: usize = 7;

/// Holder of a new slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Granted<W> {
    pub(crate) who: W,
    pub(crate) flow: Flow,
}

/// Taken slots, and waiters. Nobody waits while a slot is available to them.
pub(crate) struct FairQueue<W> {
    count: usize,
    taken: usize,
    /// Slots given to those who hurry since one who does not got one.
    hurried: usize,
    by_flow: HashMap<Flow, usize>,
    changes: RoundRobin<W>,
    resyncs: RoundRobin<W>,
}

/// Waiters of one urgency: in order within a flow, flows in turn.
struct RoundRobin<W> {
    waiting: HashMap<Flow, VecDeque<W>>,
    /// Flows with waiters, next one first.
    turns: VecDeque<Flow>,
}

impl<W> FairQueue<W> {
    pub(crate) fn new(count: usize) -> Self {
        let empty = || RoundRobin { waiting: HashMap::new(), turns: VecDeque::new() };
        Self { count: count.max(1), taken: 0, hurried: 0, by_flow: HashMap::new(), changes: empty(), resyncs: empty() }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Queues `who`. Returns whoever gets a slot by that.
    pub(crate) fn ask(&mut self, flow: Flow, who: W, rank: Rank) -> Option<Granted<W>> {
        match rank {
            Rank::First => self.changes.push(flow, |waiting| waiting.push_front(who)),
            Rank::Change => self.changes.push(flow, |waiting| waiting.push_back(who)),
            Rank::Resync => self.resyncs.push(flow, |waiting| waiting.push_back(who)),
        }
        self.next()
    }

    /// Frees a slot of the flow. Returns who gets it.
    pub(crate) fn release(&mut self, flow: &Flow) -> Option<Granted<W>> {
        if let Some(taken) = self.by_flow.get_mut(flow) {
            *taken -= 1;
            self.taken -= 1;
            if *taken == 0 {
                self.by_flow.remove(flow);
            }
        }
        // One slot more is free, or one flow is one below its quarter: either way that is one who may go on.
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
        let may = |flow: &Flow| {
            let most = if flow.is_some() { self.count.div_ceil(4) } else { self.count };
            self.taken < self.count && self.by_flow.get(flow).copied().unwrap_or(0) < most
        };
        let patient = if self.hurried >= HURRIED { self.resyncs.take(may) } else { None };
        let (flow, who) = match patient {
            Some(patient) => {
                self.hurried = 0;
                patient
            }
            None => match self.changes.take(may) {
                Some(hurried) => {
                    self.hurried = self.hurried.saturating_add(1);
                    hurried
                }
                None => self.resyncs.take(may)?,
            },
        };
        self.taken += 1;
        *self.by_flow.entry(flow.clone()).or_default() += 1;
        Some(Granted { who, flow })
    }
}

impl<W> RoundRobin<W> {
    fn push(&mut self, flow: Flow, push: impl FnOnce(&mut VecDeque<W>)) {
        let waiting = self.waiting.entry(flow.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(flow);
        }
        push(waiting);
    }

    /// The first waiter of the next flow that is allowed.
    fn take(&mut self, may: impl Fn(&Flow) -> bool) -> Option<(Flow, W)> {
        // Short: only flows that have their quarter are passed over, and these are four while slots are free.
        let turn = self.turns.iter().position(may)?;
        let flow = self.turns.remove(turn)?;
        let waiting = self.waiting.get_mut(&flow)?;
        let who = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&flow);
        } else {
            self.turns.push_back(flow.clone());
        }
        Some((flow, who))
    }

    fn forget(&mut self, whom: impl Fn(&W) -> bool) {
        self.waiting.values_mut().for_each(|waiting| waiting.retain(|who| !whom(who)));
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.turns.retain(|flow| self.waiting.contains_key(flow));
    }
}

#[cfg(test)]
mod tests;
