//! Results of the calls of one component: figures for the status, and its probation.
//!
//! A component that has just replaced another is on probation: repeated traps bring back the earlier one. Limits,
//! timeouts and problems do not count, since they have causes outside of the component; nor do traps of objects whose
//! last call of the earlier component trapped too, since a rollback would not help them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use capwasm_contract::Failure;
use capwasm_reconcile::Key;
use capwasm_runtime::CallStats;
use parking_lot::Mutex;

/// Length of the probation.
const PROBATION: Duration = Duration::from_secs(600);
/// Traps that fail it.
const TRAPS: u32 = 5;
/// Objects with traps that are remembered; further ones count as new.
const TROUBLED: usize = 10_000;
/// Buckets of durations, each a tenth longer than the one before: from a microsecond to some minutes.
const BUCKETS: usize = 200;

/// Figures of calls in the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// All calls.
    pub count: u64,
    /// Calls without an answer.
    pub failed: u64,
    /// Failed calls that trapped.
    pub traps: u64,
    /// Median duration, within a tenth.
    pub median_microseconds: u64,
    /// Largest linear memory of one call.
    pub memory_peak_bytes: u64,
}

/// Calls of one component since it began to serve in this process.
#[derive(Debug)]
pub struct Health(Mutex<State>);

#[derive(Debug)]
struct State {
    figures: Figures,
    durations: Vec<u64>,
    /// Objects whose last call trapped, with this component and with the one before.
    troubled: HashSet<Key>,
    troubled_before: HashSet<Key>,
    probation: Option<Probation>,
    /// See [`Health::await_call`].
    awaited: bool,
}

#[derive(Clone, Copy, Debug)]
struct Probation {
    until: Instant,
    traps: u32,
}

impl Health {
    /// Without probation: there is no earlier component.
    pub fn new() -> Self {
        Self::with(HashSet::new(), None)
    }

    /// On probation, after replacing another component.
    pub fn on_probation(before: &Health, now: Instant) -> Self {
        let troubled = before.0.lock().troubled.clone();
        Self::with(troubled, Some(Probation { until: now + PROBATION, traps: 0 }))
    }

    fn with(troubled_before: HashSet<Key>, probation: Option<Probation>) -> Self {
        let figures = Figures::default();
        let durations = vec![0; BUCKETS];
        Health(Mutex::new(State {
            figures,
            durations,
            troubled: HashSet::new(),
            troubled_before,
            probation,
            awaited: false,
        }))
    }

    /// Counts a call. Returns whether its WasmProvider has to run: the call failed the probation, or is the first after
    /// [`Health::await_call`].
    pub fn ended(&self, key: &Key, call: Result<CallStats, &Failure>, now: Instant) -> bool {
        let mut state = self.0.lock();
        state.figures.count += 1;
        let awaited = std::mem::take(&mut state.awaited);
        awaited
            | match call {
                Ok(stats) => {
                    let bucket = bucket(stats.duration);
                    state.durations[bucket] += 1;
                    let peak = u64::try_from(stats.peak_memory).unwrap_or(u64::MAX);
                    state.figures.memory_peak_bytes = state.figures.memory_peak_bytes.max(peak);
                    state.troubled.remove(key);
                    false
                }
                Err(failure) => {
                    state.figures.failed += 1;
                    failure.is_trap() && state.trapped(key, now)
                }
            }
    }

    /// Sets whether the next call wakes the WasmProvider.
    pub fn await_call(&self, awaited: bool) {
        self.0.lock().awaited = awaited;
    }

    /// Whether the component has to be rolled back.
    pub fn failed_probation(&self) -> bool {
        self.0.lock().probation.is_some_and(|probation| probation.traps >= TRAPS)
    }

    /// Figures for the status.
    pub fn figures(&self) -> Figures {
        let state = self.0.lock();
        Figures { median_microseconds: median(&state.durations), ..state.figures }
    }
}

impl State {
    fn trapped(&mut self, key: &Key, now: Instant) -> bool {
        self.figures.traps += 1;
        if self.troubled.len() < TROUBLED {
            self.troubled.insert(key.clone());
        }
        let new_trouble = !self.troubled_before.contains(key);
        match &mut self.probation {
            Some(probation) if new_trouble && now < probation.until => {
                probation.traps += 1;
                probation.traps == TRAPS
            }
            _ => false,
        }
    }
}

fn bucket(duration: Duration) -> usize {
    let microseconds = duration.as_secs_f64() * 1e6;
    // Not negative, and cut off at both ends.
    (microseconds.max(1.0).ln() / 1.1_f64.ln()).round().min((BUCKETS - 1) as f64) as usize
}

fn median(durations: &[u64]) -> u64 {
    let half = durations.iter().sum::<u64>().div_ceil(2);
    let mut seen = 0;
    let found = durations.iter().position(|count| {
        seen += count;
        half > 0 && seen >= half
    });
    found.map_or(0, |bucket| 1.1_f64.powi(i32::try_from(bucket).unwrap_or(i32::MAX)).round() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use capwasm_reconcile::Kind;

    fn key(name: &str) -> Key {
        Key::new(&Kind::new("g", "v1", "K", "ks", true), "n", name)
    }

    fn trap() -> Failure {
        Failure::Trap { message: "unreachable".into(), backtrace: vec![], stderr: String::new() }
    }

    fn stats(microseconds: u64) -> CallStats {
        CallStats { duration: Duration::from_micros(microseconds), peak_memory: 1 << 20, ..CallStats::default() }
    }

    #[test]
    fn only_repeated_new_traps_on_probation_end_a_component() {
        let now = Instant::now();
        let first = Health::new();
        assert!((0..20).all(|_| !first.ended(&key("always"), Err(&trap()), now)), "there is nobody to go back to");

        let second = Health::on_probation(&first, now);
        assert!((0..20).all(|_| !second.ended(&key("always"), Err(&trap()), now)), "it trapped before");
        let timeout = Failure::Wall { limit: Duration::from_secs(1) };
        assert!((0..20).all(|_| !second.ended(&key("a"), Err(&timeout), now)), "a timeout is no trap");
        let ended: Vec<bool> = (0..6).map(|_| second.ended(&key("a"), Err(&trap()), now)).collect();
        assert_eq!(ended, [false, false, false, false, true, false], "told once");
        assert!(second.failed_probation());

        let third = Health::on_probation(&second, now);
        let later = now + PROBATION;
        assert!((0..20).all(|_| !third.ended(&key("b"), Err(&trap()), later)), "its probation is over");
    }

    #[test]
    fn an_object_that_recovered_is_in_trouble_no_more() {
        let now = Instant::now();
        let first = Health::new();
        first.ended(&key("a"), Err(&trap()), now);
        first.ended(&key("a"), Ok(stats(10)), now);
        let second = Health::on_probation(&first, now);
        assert!((0..5).any(|_| second.ended(&key("a"), Err(&trap()), now)));
    }

    #[test]
    fn the_next_call_is_news_once() {
        let health = Health::new();
        let call = || health.ended(&key("a"), Ok(stats(10)), Instant::now());
        assert!(!call());
        health.await_call(true);
        assert_eq!([call(), call()], [true, false]);
    }

    #[test]
    fn figures_have_the_median_within_a_tenth() {
        let health = Health::new();
        assert_eq!(health.figures(), Figures::default());
        for microseconds in [100, 200, 1_000, 50_000, 60_000_000] {
            health.ended(&key("a"), Ok(stats(microseconds)), Instant::now());
        }
        health.ended(&key("a"), Err(&trap()), Instant::now());
        let figures = health.figures();
        assert!((900..=1_100).contains(&figures.median_microseconds), "{figures:?}");
        assert_eq!((figures.count, figures.failed, figures.traps, figures.memory_peak_bytes), (6, 1, 1, 1 << 20));
    }
}
