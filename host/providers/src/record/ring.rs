//! The last calls of one provider, bounded in number and bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use capwasm_runtime::record::Recording;

/// Calls kept at most.
const CALLS: usize = 64;
/// Bytes kept at most, roughly.
const BYTES: usize = 4 << 20;

#[derive(Default)]
pub(super) struct Ring {
    calls: VecDeque<(Arc<Recording>, usize)>,
    bytes: usize,
}

impl Ring {
    /// Adds a call and drops the oldest beyond the bounds. A call larger than the ring is dropped itself. Returns how
    /// many were dropped.
    pub(super) fn push(&mut self, recording: Arc<Recording>, bytes: usize) -> u64 {
        if bytes > BYTES {
            return 1;
        }
        self.calls.push_back((recording, bytes));
        self.bytes += bytes;
        let mut lost = 0;
        while (self.calls.len() > CALLS || self.bytes > BYTES) && self.pop().is_some() {
            lost += 1;
        }
        lost
    }

    pub(super) fn pop(&mut self) -> Option<Arc<Recording>> {
        let (recording, bytes) = self.calls.pop_front()?;
        self.bytes -= bytes;
        Some(recording)
    }

    pub(super) fn all(&self) -> Vec<Arc<Recording>> {
        self.calls.iter().map(|(recording, _)| recording.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use capwasm_contract::recording::Ended;
    use capwasm_contract::{Answer, Outcome};
    use serde_json::json;

    use super::*;
    use crate::rehearse::testing::recording;

    #[test]
    fn a_recording_counts_with_the_memory_of_its_outcome() {
        let mut outcome = Outcome::default();
        outcome.status(json!({"a": vec![json!({"": 0}); 10_000]}));
        let ended = Ended::Replied { answer: Ok(Answer::Reconciled), outcome };
        let large = Recording { ended, ..recording("large") };
        assert!(recording("small").bytes() < 1_000 && large.bytes() > BYTES, "{}", large.bytes());
        let bytes = large.bytes();
        assert_eq!(Ring::default().push(Arc::new(large), bytes), 1);
    }

    #[test]
    fn the_oldest_calls_go_first_by_number_and_by_bytes() {
        let names = |ring: &Ring| ring.all().iter().map(|call| call.facts.id.clone()).collect::<Vec<_>>();
        let mut ring = Ring::default();
        let lost: u64 = (0..CALLS + 2).map(|at| ring.push(Arc::new(recording(&at.to_string())), 1)).sum();
        assert_eq!(lost, 2);
        assert_eq!((ring.all().len(), names(&ring).first().map(String::as_str)), (CALLS, Some("2")));
        ring.push(Arc::new(recording("large")), BYTES - 1);
        assert_eq!(names(&ring), ["65", "large"]);
        assert_eq!(ring.push(Arc::new(recording("larger")), BYTES + 1), 1);
        assert_eq!(names(&ring), ["65", "large"], "what cannot be kept costs nothing else");
        assert_eq!(ring.pop().map(|call| call.facts.id.clone()).as_deref(), Some("65"));
        assert_eq!(ring.push(Arc::new(recording("small")), 1), 0, "there is room for it again");
    }
}
