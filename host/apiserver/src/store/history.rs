//! Superseded versions per keyspace, oldest first.

use std::collections::VecDeque;
use std::time::Instant;

use super::Retention;

/// A version with a successor, or a tombstone.
struct Superseded {
    revision: u64,
    /// Revision of the successor; its own for a tombstone.
    by: u64,
    at: Instant,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct History {
    queue: VecDeque<Superseded>,
    bytes: usize,
}

impl History {
    pub fn push(&mut self, revision: u64, by: u64, at: Instant, bytes: usize) {
        self.bytes += bytes;
        self.queue.push_back(Superseded { revision, by, at, bytes });
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Removes what exceeds `retention`. Returns the revisions to purge, and the revision up to which history is now
    /// incomplete.
    pub fn expire(&mut self, retention: &Retention, now: Instant) -> Option<(Vec<u64>, u64)> {
        let mut purged = Vec::new();
        let mut compacted = 0;
        while let Some(oldest) = self.queue.front() {
            let kept = now.saturating_duration_since(oldest.at) < retention.age
                && self.queue.len() <= retention.versions
                && self.bytes <= retention.bytes;
            // A write's predecessor and its own tombstone go together: `by` is the unit of compaction.
            if kept && oldest.by != compacted {
                break;
            }
            compacted = oldest.by;
            purged.push(oldest.revision);
            self.bytes -= oldest.bytes;
            self.queue.pop_front();
        }
        if self.queue.is_empty() {
            self.queue.shrink_to_fit();
        }
        (!purged.is_empty()).then_some((purged, compacted))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn retention(seconds: u64, versions: usize, bytes: usize) -> Retention {
        Retention { age: Duration::from_secs(seconds), versions, bytes }
    }

    #[test]
    fn history_goes_by_age_count_and_bytes_whichever_is_first() {
        let start = Instant::now();
        let filled = || {
            let mut history = History::default();
            for i in 1..=4 {
                history.push(i, i + 1, start + Duration::from_secs(i), 10);
            }
            history
        };
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(filled().expire(&retention(100, 10, 1000), at(5)), None, "young, few and small");
        assert_eq!(filled().expire(&retention(10, 10, 1000), at(12)), Some((vec![1, 2], 3)), "by age");
        assert_eq!(filled().expire(&retention(100, 3, 1000), at(5)), Some((vec![1], 2)), "by count");
        assert_eq!(filled().expire(&retention(100, 10, 15), at(5)), Some((vec![1, 2, 3], 4)), "by bytes");
    }

    #[test]
    fn a_tombstone_goes_with_the_version_that_it_ended() {
        let start = Instant::now();
        let mut history = History::default();
        history.push(1, 2, start, 10);
        history.push(2, 2, start, 10);
        assert_eq!(history.expire(&retention(100, 1, 1000), start), Some((vec![1, 2], 2)));
        assert!(history.is_empty());
    }
}
