//! The faults that are in force.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{CallFault, Fault, NodeFault};

/// A fault with the id by which it is lifted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Injected {
    /// Id by which it is lifted, unique in this engine.
    pub id: String,
    /// What was requested.
    pub fault: Fault,
}

struct Entry {
    injected: Injected,
    /// Calls that may still go wrong.
    left: Option<u32>,
    /// Calls that go well first.
    spared: u32,
    /// Grows by the share with every call that matches; a whole one is a call that goes wrong.
    due: f64,
}

#[derive(Default)]
struct State {
    next: u64,
    entries: Vec<Entry>,
}

/// How a call goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict(pub CallFault);

/// The faults of an engine, shared with whoever injects and lifts them. Cheap to clone.
#[derive(Clone)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<()>>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults { state: Arc::default(), changed: Arc::new(watch::Sender::new(())) }
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

impl Faults {
    /// Puts a fault into force and returns its id.
    pub fn inject(&self, fault: Fault) -> String {
        let id = {
            let mut state = self.state.lock();
            state.next += 1;
            let id = state.next.to_string();
            let (left, spared) = match &fault {
                Fault::Call(call) => (call.count, call.after.unwrap_or(0)),
                Fault::Node { .. } => (None, 0),
            };
            state.entries.push(Entry { injected: Injected { id: id.clone(), fault }, left, spared, due: 0.0 });
            id
        };
        self.changed.send_replace(());
        id
    }

    /// Ends a fault; false when there is none of that id.
    pub fn lift(&self, id: &str) -> bool {
        let found = {
            let mut state = self.state.lock();
            let before = state.entries.len();
            state.entries.retain(|entry| entry.injected.id != id);
            state.entries.len() < before
        };
        self.changed.send_replace(());
        found
    }

    /// Ends all faults.
    pub fn lift_all(&self) {
        self.state.lock().entries.clear();
        self.changed.send_replace(());
    }

    /// All faults in force.
    pub fn list(&self) -> Vec<Injected> {
        self.state.lock().entries.iter().map(|entry| entry.injected.clone()).collect()
    }

    /// Changes whenever a fault comes or goes.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Faults of a container, of its label first.
    pub fn of(&self, container: &str, label: Option<&str>) -> Vec<NodeFault> {
        let mut found = listed(label.unwrap_or_default());
        let state = self.state.lock();
        found.extend(state.entries.iter().filter_map(|entry| match &entry.injected.fault {
            Fault::Node { container: on, fault } if on == container => Some(fault.clone()),
            _ => None,
        }));
        found
    }

    /// Whether and how this call of the engine goes wrong.
    pub fn judge(&self, method: &str, path: &str) -> Option<Verdict> {
        let mut state = self.state.lock();
        let position = state.entries.iter_mut().position(|entry| {
            let Fault::Call(call) = &entry.injected.fault else { return false };
            if !call.matches(method, path) {
                return false;
            }
            if entry.spared > 0 {
                entry.spared -= 1;
                return false;
            }
            // A millionth more, so that three thirds are one.
            entry.due += call.share.unwrap_or(1.0).clamp(0.0, 1.0);
            if entry.due + 1e-6 < 1.0 {
                return false;
            }
            entry.due -= 1.0;
            true
        })?;
        let entry = &mut state.entries[position];
        let Fault::Call(call) = &entry.injected.fault else { return None };
        let verdict = Verdict(call.clone());
        if let Some(left) = &mut entry.left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                state.entries.remove(position);
            }
        }
        Some(verdict)
    }
}

/// The faults of a label's text; what is no fault is left out with a warning.
pub fn listed(text: &str) -> Vec<NodeFault> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .filter_map(|word| word.parse().inspect_err(|error| tracing::warn!(%error, "a fault is not known")).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn the_next_calls_that_match_go_wrong_and_no_more() {
        let faults = Faults::default();
        let call = CallFault { method: "POST".into(), path: "/x".into(), count: Some(2), ..CallFault::status(503) };
        faults.inject(Fault::Call(call.clone()));
        assert_eq!(faults.judge("GET", "/x"), None);
        assert_eq!(faults.judge("POST", "/x"), Some(Verdict(call.clone())));
        assert_eq!(faults.judge("POST", "/x"), Some(Verdict(call)));
        assert_eq!(faults.judge("POST", "/x"), None);
        assert!(faults.list().is_empty());
    }

    #[test]
    fn calls_go_well_until_the_one_that_is_meant() {
        let faults = Faults::default();
        faults.inject(Fault::Call(CallFault { after: Some(2), count: Some(1), ..CallFault::status(409) }));
        let wrong: Vec<bool> = (0..5).map(|_| faults.judge("GET", "/").is_some()).collect();
        assert_eq!(wrong, [false, false, true, false, false]);
    }

    #[test]
    fn a_share_of_calls_goes_wrong_evenly() {
        let faults = Faults::default();
        let id = faults.inject(Fault::Call(CallFault { share: Some(0.25), ..CallFault::status(500) }));
        let wrong: Vec<bool> = (0..8).map(|_| faults.judge("GET", "/").is_some()).collect();
        assert_eq!(wrong, [false, false, false, true, false, false, false, true]);
        assert!(faults.lift(&id) && !faults.lift(&id));
    }

    #[test]
    fn a_container_has_the_faults_of_its_label_and_of_requests() {
        let faults = Faults::default();
        faults.inject(Fault::node("a", NodeFault::Silent));
        assert_eq!(faults.of("a", Some("not-ready, nonsense")), [NodeFault::NotReady, NodeFault::Silent]);
        assert!(faults.of("b", None).is_empty());
        faults.lift_all();
        assert!(faults.of("a", None).is_empty());
    }
}
