//! Delayed status writes: an object that changes quickly is written once and not at every step.
//!
//! A reconciler marks a plan whose status changes only for human readers ([`Plan::status_may_wait`]). Such a status is not
//! written at once; the key runs again after [`LONGEST`], and before that whenever something changes. The first pass whose status
//! may not wait writes all. Nothing is stored meanwhile: the next pass computes the status again, also after a restart.

use std::time::{Duration, Instant};

use crate::plan::{Plan, Verdict};

/// How long a status may wait, from the first pass that did not write it, or from the last write to the rest of its
/// object.
pub const LONGEST: Duration = Duration::from_secs(1);

/// Start of the wait for a status that was not written in this pass; `wrote` is whether the rest of the object was.
pub(crate) fn since(before: Option<Instant>, wrote: bool, now: Instant) -> Instant {
    before.filter(|_| !wrote).unwrap_or(now)
}

/// How long the plan's status may still wait; `None`: write it now. `since` is the result of [`since`] for the last
/// pass. A status does not wait while the object is deleted, nor after a failure.
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
