//! Mirrors a condition of another object.

use serde_json::Value;

use super::{Condition, get};
use crate::names::reason;

/// The condition `source_name` of `source` with the type `target`; `fallback` if it is not reported.
pub fn mirror(source: &Value, source_name: &str, target: &str, fallback: impl FnOnce() -> Condition) -> Condition {
    match get(source, source_name) {
        None => fallback().named(target),
        Some(mut found) => {
            if found.reason.is_empty() {
                found.reason = reason::NO_REASON_REPORTED.to_owned();
            }
            found.last_transition_time = None;
            found.named(target)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reported_condition_is_repeated_and_a_missing_one_falls_back() {
        let fallback = || Condition::new("", false, "NotReady").message("not provisioned");
        let infra = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        assert_eq!(
            mirror(&infra, "Ready", "InfrastructureReady", fallback),
            Condition::new("InfrastructureReady", true, "NoReasonReported")
        );
        assert_eq!(
            mirror(&json!({}), "Ready", "InfrastructureReady", fallback),
            Condition::new("InfrastructureReady", false, "NotReady").message("not provisioned")
        );
    }
}
