//! When a key runs: once at a time, once for many changes, later after failures.
//!
//! Pure: the time is an argument. It says which keys may run ([`Queue::ready`]) and how urgently, not in which order. A
//! key that runs very often is slowed down to a steady rate, so that a reconciler whose writes wake itself cannot
//! occupy the host.
//!
//! A change may be one that nobody hurries for ([`Urgency::Later`]): what a key wrote itself, or what people alone read. Such changes
//! are looked at together, [`LATER`] after the first of them, unless the key runs earlier anyway, and behind the keys that somebody
//! hurries for.
//!
//! After a run a key rests for a few times as long as that took, so that changes that follow each other closely are one run: on an
//! idle host some milliseconds, on a busy one up to [`Rates::most_rest`].

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::Hash,
    time::{Duration, Instant},
};

/// How long a change waits that nobody hurries for.
pub const LATER: Duration = Duration::from_secs(1);

/// Versions of objects that are remembered while a key runs.
const MOST_VERSIONS: usize = 32;

/// How soon a change has a key run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// As soon as it may.
    Now,
    /// After [`LATER`], together with what else comes till then, and behind others.
    Later,
}

/// Delays and rates.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Delay after the first failure; doubled by each further one.
    pub backoff: Duration,
    /// Longest delay after a failure.
    pub most_backoff: Duration,
    /// Consecutive conflicts that are retried at once.
    pub free_conflicts: u32,
    /// Runs of one key in quick succession before it is rate limited.
    pub burst: f64,
    /// Runs of one key per second when it is rate limited.
    pub rate: f64,
    /// For how many times as long as its run took a key rests after it. The time that the run waited for its slot counts as well.
    pub rest: u32,
    /// Longest rest after a run.
    pub most_rest: Duration,
    /// Retries of all keys per second before they are delayed.
    pub retry_rate: f64,
    /// Retries of all keys in quick succession before they are delayed.
    pub retry_burst: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            backoff: Duration::from_millis(50),
            most_backoff: Duration::from_secs(60),
            free_conflicts: 5,
            burst: 30.0,
            rate: 4.0,
            rest: 4,
            most_rest: Duration::from_secs(1),
            retry_rate: 100.0,
            retry_burst: 500.0,
        }
    }
}

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Succeeded; run again after this time at the latest.
    Done(Duration),
    /// Succeeded; run again at once.
    Again,
    /// Decided on stale data; run again at once, the first few times.
    Conflict,
    /// Failed; run again with exponential backoff.
    Backoff,
    /// Failed; run again after this time at the latest.
    RetryAfter(Duration),
    /// The object does not exist any more.
    Forget,
}

/// Urgency of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Before all others: it has waited for an exclusion group.
    First,
    /// Something changed.
    Change,
    /// Periodic run without a known change, or with one that nobody hurries for.
    Resync,
}

/// The keys of one controller.
pub struct Queue<K> {
    rates: Rates,
    entries: HashMap<K, Entry>,
    /// Keys that became ready, or more urgent, since [`Queue::ready`] returned them.
    news: VecDeque<K>,
    timers: BTreeMap<(Instant, u64), K>,
    timer_count: u64,
    retries: Bucket,
    waiting: usize,
}

struct Entry {
    state: State,
    /// Changed during its run.
    changed: bool,
    /// Changed while it ran, but nobody hurries.
    changed_later: bool,
    /// Versions that its object, and those that it reads, had while it ran, until it is known which of them it wrote itself.
    versions: Vec<(u64, Urgency)>,
    timer: Option<(Instant, u64)>,
    /// How urgent it is when its timer fires.
    timer_rank: Rank,
    /// When the run that goes on became ready.
    since: Instant,
    /// Until then a change does not make it ready.
    rests_until: Instant,
    failures: u32,
    conflicts: u32,
    /// Runs since the last change.
    attempt: u32,
    runs: Bucket,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Idle,
    /// Ready since then.
    Ready {
        since: Instant,
        rank: Rank,
        /// Whether [`Queue::ready`] has not returned it yet.
        news: bool,
    },
    Running,
    /// Waits for something outside of the queue; see [`Queue::park`].
    Parked,
}

/// A started run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<K> {
    /// Key of the object.
    pub key: K,
    /// Time from ready to start.
    pub waited: Duration,
    /// 1 for the first run since a change.
    pub attempt: u32,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(rates: Rates, now: Instant) -> Self {
        Self {
            rates,
            entries: HashMap::new(),
            news: VecDeque::new(),
            timers: BTreeMap::new(),
            timer_count: 0,
            retries: Bucket { tokens: rates.retry_burst, filled: now },
            waiting: 0,
        }
    }

    /// Queues a key after a change.
    pub fn add(&mut self, key: &K, now: Instant) {
        let entry = self.entry(key, now);
        entry.attempt = 0;
        match entry.state {
            State::Idle => self.make_ready_rested(key, now, Rank::Change),
            State::Ready { since, rank: Rank::Resync, news } => {
                entry.state = State::Ready { since, rank: Rank::Change, news: true };
                if !news {
                    self.news.push_back(key.clone());
                }
            }
            State::Ready { .. } => {}
            State::Running | State::Parked => entry.changed = true,
        }
    }

    /// Something changed for the key, for which nobody hurries.
    pub fn add_later(&mut self, key: &K, now: Instant) {
        let entry = self.entry(key, now);
        match entry.state {
            State::Idle => self.set_timer(key, now + LATER, Rank::Resync),
            State::Ready { .. } => {}
            State::Running | State::Parked => entry.changed_later = true,
        }
    }

    /// The key's own object, or one that it reads, is at `version` now. While the key runs that may be its own work: see
    /// [`Queue::wrote`].
    pub fn add_version(&mut self, key: &K, version: u64, urgency: Urgency, now: Instant) {
        let entry = self.entry(key, now);
        match (entry.state, urgency) {
            (State::Running | State::Parked, _) if entry.versions.len() < MOST_VERSIONS => {
                entry.versions.push((version, urgency));
            }
            // A pass writes less; somebody else is at it.
            (State::Running | State::Parked, _) => entry.changed = true,
            (_, Urgency::Now) => self.add(key, now),
            (_, Urgency::Later) => self.add_later(key, now),
        }
    }

    /// The running key made these versions of objects. It decided on what it wrote, so that it only has to look at it later.
    pub fn wrote(&mut self, key: &K, versions: &[u64]) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.changed_later |= entry.versions.iter().any(|(version, _)| versions.contains(version));
        entry.versions.retain(|(version, _)| !versions.contains(version));
    }

    /// The key should run, but nothing is known to have changed. One that runs now runs once more.
    pub fn add_resync(&mut self, key: &K, now: Instant) {
        let entry = self.entry(key, now);
        match entry.state {
            State::Idle => self.make_ready_rested(key, now, Rank::Resync),
            State::Running | State::Parked => entry.changed = true,
            State::Ready { .. } => {}
        }
    }

    /// The next key that became ready, or more urgent, to be started when there is a slot.
    pub fn ready(&mut self, now: Instant) -> Option<(K, Rank)> {
        self.fire_timers(now);
        loop {
            let key = self.news.pop_front()?;
            // One that was started in the meantime is no news.
            if let Some(Entry { state: State::Ready { rank, news: news @ true, .. }, .. }) = self.entries.get_mut(&key)
            {
                *news = false;
                return Some((key, *rank));
            }
        }
    }

    /// Starts a ready key, which runs until [`Queue::done`]. `None` for a key that is not ready: one that became more
    /// urgent is returned twice.
    pub fn start(&mut self, key: &K, now: Instant) -> Option<Run<K>> {
        let rates = self.rates;
        let entry = self.entries.get_mut(key)?;
        let State::Ready { since, .. } = entry.state else { return None };
        entry.state = State::Running;
        entry.since = since;
        (entry.changed, entry.changed_later) = (false, false);
        entry.versions.clear();
        entry.attempt += 1;
        entry.runs.take(rates.burst, rates.rate, now);
        if let Some(timer) = entry.timer.take() {
            self.timers.remove(&timer);
        }
        self.waiting -= 1;
        let (key, attempt) = (key.clone(), entry.attempt);
        Some(Run { key, waited: now.saturating_duration_since(since), attempt })
    }

    /// Suspends a running key; changes meanwhile are not lost.
    pub fn park(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.state == State::Running
        {
            entry.state = State::Parked;
            entry.attempt = entry.attempt.saturating_sub(1);
        }
    }

    /// Continues the run of a parked key.
    pub fn resume(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.state == State::Parked
        {
            entry.state = State::Running;
            entry.attempt += 1;
        }
    }

    /// Makes a parked key ready.
    pub fn unpark(&mut self, key: &K, now: Instant) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.state == State::Parked
        {
            entry.state = State::Ready { since: now, rank: Rank::First, news: true };
            self.waiting += 1;
            self.news.push_back(key.clone());
        }
    }

    /// Ends a run. `jitter` between 0 and 1 spreads retries.
    pub fn done(&mut self, key: &K, outcome: Outcome, jitter: f64, now: Instant) {
        let rates = self.rates;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.state = State::Idle;
        let took = now.saturating_duration_since(entry.since);
        entry.rests_until = now + took.saturating_mul(rates.rest).min(rates.most_rest);
        let versions = std::mem::take(&mut entry.versions);
        let by_another = |urgency| versions.iter().any(|(_, one)| *one == urgency);
        let changed = std::mem::take(&mut entry.changed) || by_another(Urgency::Now);
        let later = std::mem::take(&mut entry.changed_later) || by_another(Urgency::Later);
        match outcome {
            Outcome::Done(_) | Outcome::Again => {
                (entry.failures, entry.conflicts) = (0, 0);
                entry.attempt = 0;
            }
            Outcome::Conflict => entry.conflicts += 1,
            Outcome::Backoff | Outcome::RetryAfter(_) => entry.failures += 1,
            Outcome::Forget => {}
        }
        let conflicts = entry.conflicts;
        let exponent = entry.failures.max(conflicts.saturating_sub(rates.free_conflicts)).clamp(1, 30) - 1;
        let backoff = rates.backoff.saturating_mul(1 << exponent).min(rates.most_backoff).mul_f64(0.75 + jitter / 2.0);
        match outcome {
            Outcome::Forget if !changed && !later => {
                self.entries.remove(key);
            }
            Outcome::Forget | Outcome::Again => self.make_ready(key, now, Rank::Change),
            _ if changed => self.make_ready_rested(key, now, Rank::Change),
            Outcome::Conflict if conflicts <= rates.free_conflicts => self.make_ready(key, now, Rank::Change),
            Outcome::Done(after) => self.set_timer(key, now + after, Rank::Change),
            Outcome::RetryAfter(after) => self.set_timer(key, now + after, Rank::Change),
            Outcome::Conflict | Outcome::Backoff => {
                let held_back = self.retries.take(rates.retry_burst, rates.retry_rate, now);
                self.set_timer(key, now + backoff + held_back, Rank::Change);
            }
        }
        if later && matches!(outcome, Outcome::Done(_) | Outcome::RetryAfter(_)) {
            self.add_later(key, now);
        }
    }

    /// When the next timer fires.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|((at, _), _)| *at)
    }

    /// Number of ready keys.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn entry(&mut self, key: &K, now: Instant) -> &mut Entry {
        let burst = self.rates.burst;
        self.entries.entry(key.clone()).or_insert_with(|| Entry {
            state: State::Idle,
            changed: false,
            changed_later: false,
            versions: Vec::new(),
            timer: None,
            timer_rank: Rank::Resync,
            since: now,
            rests_until: now,
            failures: 0,
            conflicts: 0,
            attempt: 0,
            runs: Bucket { tokens: burst, filled: now },
        })
    }

    /// Makes an idle key ready, or, if it has run too often lately, sets its timer.
    fn make_ready(&mut self, key: &K, now: Instant, rank: Rank) {
        let rates = self.rates;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let wait = entry.runs.wait(rates.burst, rates.rate, now);
        if !wait.is_zero() {
            self.set_timer(key, now + wait, rank);
            return;
        }
        entry.state = State::Ready { since: now, rank, news: true };
        self.waiting += 1;
        self.news.push_back(key.clone());
    }

    /// As [`Queue::make_ready`], once the rest after its last run is over.
    fn make_ready_rested(&mut self, key: &K, now: Instant, rank: Rank) {
        match self.entries.get(key).map(|entry| entry.rests_until) {
            Some(until) if until > now => self.set_timer(key, until, rank),
            _ => self.make_ready(key, now, rank),
        }
    }

    /// Sets the timer of a key, unless an earlier one is set, which is as urgent then as this one.
    fn set_timer(&mut self, key: &K, at: Instant, rank: Rank) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.timer {
            Some((earlier, _)) if earlier <= at => {
                if rank == Rank::Change {
                    entry.timer_rank = rank;
                }
                return;
            }
            Some(later) => {
                self.timers.remove(&later);
            }
            None => {}
        }
        self.timer_count += 1;
        let timer = (at, self.timer_count);
        (entry.timer, entry.timer_rank) = (Some(timer), rank);
        self.timers.insert(timer, key.clone());
    }

    fn fire_timers(&mut self, now: Instant) {
        while let Some(timer) = self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            let key = timer.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.timer = None;
                if entry.state == State::Idle {
                    let rank = entry.timer_rank;
                    self.make_ready_rested(&key, now, rank);
                }
            }
        }
    }
}

struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn fill(&mut self, burst: f64, rate: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * rate).min(burst);
        self.filled = now;
    }

    /// Time until a token is available.
    fn wait(&mut self, burst: f64, rate: f64, now: Instant) -> Duration {
        self.fill(burst, rate, now);
        if self.tokens >= 1.0 { Duration::ZERO } else { Duration::from_secs_f64((1.0 - self.tokens) / rate) }
    }

    /// Takes a token, on credit if necessary. Returns how long it takes to be available.
    fn take(&mut self, burst: f64, rate: f64, now: Instant) -> Duration {
        let wait = self.wait(burst, rate, now);
        self.tokens -= 1.0;
        wait
    }
}

#[cfg(test)]
mod tests;
