//! Requests that OpenStack carries out after whoever sent them has gone: the host was killed, or did not wait any longer. What
//! they make shows up after everything was found to be gone, so an object that was being made when it was deleted is looked
//! after once more.

use std::time::Duration;

use capwasm_api::time;
use capwasm_sdk::{Context, object};
use serde_json::Value;

/// How long OpenStack may be at a request, in seconds.
const LATEST: u64 = 10;

/// Whether everything that was asked for before the object's deletion must have come by now. Comes back otherwise.
pub fn is_over(cx: &mut Context<'_>, object: &Value) -> bool {
    let left = LATEST.saturating_sub(deleting_for(cx, object));
    if left > 0 {
        cx.out.wake_after(Duration::from_secs(left));
    }
    left == 0
}

/// Seconds since the object was deleted.
pub fn deleting_for(cx: &Context<'_>, object: &Value) -> u64 {
    let since = time::parse(object::text(object, "/metadata/deletionTimestamp"));
    since.map_or(0, |since| (cx.host.now_ms() / 1_000).saturating_sub(since))
}
