//! `Available`: ready for `minReadySeconds`.

use std::time::Duration;

use capwasm_api::conditions::{Condition, Status, get};
use capwasm_api::names::{condition, reason};

use super::decide::Decision;

/// Follows from the draft's `Ready`. A timer wakes the Machine when it will be available, since nothing changes then.
pub(super) fn decide(decision: &mut Decision<'_>) -> Condition {
    let name = condition::AVAILABLE;
    let ready = get(&decision.draft.object, condition::READY);
    let Some(ready) = ready.filter(|ready| ready.status == Status::True) else {
        return Condition::new(name, false, reason::NOT_READY);
    };
    let wanted = u64::try_from(decision.observed.machine.spec.min_ready_seconds.unwrap_or(0)).unwrap_or(0);
    let since = ready.since().unwrap_or(decision.observed.now);
    let passed = Duration::try_from(decision.observed.now.duration_since(since)).unwrap_or_default();
    match Duration::from_secs(wanted).checked_sub(passed) {
        Some(left) if !left.is_zero() => {
            decision.wake_after(left);
            Condition::new(name, false, reason::WAITING_FOR_MIN_READY_SECONDS)
        }
        _ => Condition::new(name, true, reason::AVAILABLE),
    }
}
