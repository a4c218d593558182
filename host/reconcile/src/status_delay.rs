//! Status that may wait a moment, so that an object that gets on quickly is written once and not at every step.
//!
//! A reconciler says of its plan that its status is news for nobody but people ([`Plan::status_may_wait`]). Such a status is not
//! written at once; the key runs again when [`LONGEST`] is over, and before that whenever something changes. The first pass with
//! news writes all. What is held exists nowhere but in the next decision: a host that ends loses nothing that it would not find
//! again.

use std::time::{Duration, Instant};

use crate::plan::{Plan, Verdict};

/// How long a status may wait, counted from the first pass that did not write it, or from the last write of the rest of its
/// object: whoever writes that gets on, and what comes next can be told with it.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Since when a status waits that was not written now, `wrote` being whether the rest of its object was.
pub(crate) fn since(before: Option<Instant>, wrote: bool, now: Instant) -> Instant {
    before.filter(|_| !wrote).unwrap_or(now)
}

/// How long the plan's status may still wait; `None` when it is to be written now. `since` is what
/// [`since`] said of the last pass. Never while an object is deleted, nor after a failure: people wait for these.
pub(crate) fn remaining(plan: &Plan, deleting: bool, since: Option<Instant>, now: Instant) -> Option<Duration> {
    if !plan.status_may_wait || deleting || matches!(plan.verdict, Verdict::Failed { .. }) {
        return None;
    }
    let waited = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
    LONGEST.checked_sub(waited).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_begins_anew_only_when_the_rest_of_the_object_is_written() {
        let now = Instant::now() + LONGEST;
        let before = now - LONGEST / 2;
        let rows = [
            ("the first time", None, false, now),
            ("again", Some(before), false, before),
            ("the object got on", Some(before), true, now),
        ];
        for (row, before, wrote, expected) in rows {
            assert_eq!(since(before, wrote, now), expected, "{row}");
        }
    }

    #[test]
    fn a_status_waits_once_and_only_when_it_is_no_news() {
        let now = Instant::now() + LONGEST * 4;
        let plan = |status_may_wait, verdict| Plan { status_may_wait, verdict, ..Plan::default() };
        let quiet = || plan(true, Verdict::Waiting);
        let rows = [
            ("news", plan(false, Verdict::Done), false, None, None),
            ("the first time", quiet(), false, None, Some(LONGEST)),
            ("again, a little later", quiet(), false, Some(now - LONGEST / 5), Some(LONGEST / 5 * 4)),
            ("its time is over", quiet(), false, Some(now - LONGEST), None),
            ("long over", quiet(), false, Some(now - LONGEST * 3), None),
            ("being deleted", quiet(), true, None, None),
            ("a failure", plan(true, Verdict::retry("R", "m")), false, None, None),
        ];
        for (row, plan, deleting, since, expected) in rows {
            assert_eq!(remaining(&plan, deleting, since, now), expected, "{row}");
        }
    }
}
