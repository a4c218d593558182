//! Summarises conditions of an object in one.

use serde_json::Value;

use super::merge::{Polarity, Priority, Reasons, bullet, priority, verdict};
use super::{Condition, Status, get};
use crate::names::reason;

/// A part of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Type of the condition.
    pub name: &'a str,
    /// Polarity of the condition.
    pub polarity: Polarity,
    /// Ignored if the object does not report it; otherwise it counts as unknown then.
    pub optional: bool,
}

impl<'a> Part<'a> {
    /// A condition that must be True.
    pub fn positive(name: &'a str) -> Part<'a> {
        Part { name, polarity: Polarity::Positive, optional: false }
    }

    /// A condition that must be False.
    pub fn negative(name: &'a str) -> Part<'a> {
        Part { name, polarity: Polarity::Negative, optional: false }
    }

    /// Ignores the condition if it is not reported.
    pub fn optional(mut self) -> Part<'a> {
        self.optional = true;
        self
    }
}

/// Summarises conditions in `target`: false if a part has an issue, else unknown if one is unknown, else true. The
/// message has a bullet for each part that is not good, or, if all are, for parts with a message.
pub fn summary(object: &Value, target: &str, parts: &[Part<'_>], reasons: Reasons) -> Condition {
    let found: Vec<(Priority, Condition)> = parts
        .iter()
        .filter_map(|part| match get(object, part.name) {
            Some(condition) => Some((priority(&condition, part.polarity), condition)),
            None if part.optional => None,
            None => Some((
                Priority::Unknown,
                Condition::new(part.name, Status::Unknown, reason::NOT_YET_REPORTED)
                    .message("Condition not yet reported"),
            )),
        })
        .collect();
    let worst = found.iter().map(|(priority, _)| *priority).min().unwrap_or(Priority::Unknown);
    let (status, reason) = verdict(worst, Polarity::Positive, reasons);
    let mut bullets = Vec::new();
    for wanted in [Priority::Issue, Priority::Unknown, Priority::Info] {
        if wanted == Priority::Info && worst != Priority::Info {
            continue;
        }
        for (_, condition) in found.iter().filter(|(priority, _)| *priority == wanted) {
            match condition.message.as_str() {
                "" if wanted == Priority::Info => {}
                "" => bullets.push(bullet(&condition.name, &condition.reason)),
                message => bullets.push(bullet(&condition.name, message)),
            }
        }
    }
    Condition::new(target, status, reason).message(bullets.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const REASONS: Reasons = Reasons { issue: "NotReady", unknown: "ReadyUnknown", info: "Ready" };

    fn of(conditions: Value) -> Condition {
        let parts =
            [Part::negative("Deleting"), Part::positive("A"), Part::positive("B"), Part::positive("C").optional()];
        summary(&json!({"status": {"conditions": conditions}}), "Ready", &parts, REASONS)
    }

    #[test]
    fn the_worst_part_decides_and_every_bad_part_is_named() {
        let good = json!({"type": "Deleting", "status": "False", "reason": "NotDeleting"});
        for (what, conditions, expected) in [
            (
                "all good",
                json!([good, {"type": "A", "status": "True"}, {"type": "B", "status": "True"}]),
                Condition::new("Ready", true, "Ready"),
            ),
            (
                "all good with something to say",
                json!([good, {"type": "A", "status": "True", "message": "by the way"}, {"type": "B", "status": "True"}]),
                Condition::new("Ready", true, "Ready").message("* A: by the way"),
            ),
            (
                "a part is missing",
                json!([good, {"type": "A", "status": "True", "message": "by the way"}]),
                Condition::new("Ready", Status::Unknown, "ReadyUnknown").message("* B: Condition not yet reported"),
            ),
            (
                "issues come before unknowns, nested bullets are indented",
                json!([good, {"type": "A", "status": "Unknown", "message": "no word"}, {"type": "B", "status": "False", "message": "* x: y\n* z: w"}]),
                Condition::new("Ready", false, "NotReady").message("* B:\n  * x: y\n  * z: w\n* A: no word"),
            ),
            (
                "negative polarity: true is an issue",
                json!([{"type": "Deleting", "status": "True", "reason": "DrainingNode"}, {"type": "A", "status": "True"}, {"type": "B", "status": "True"}]),
                Condition::new("Ready", false, "NotReady").message("* Deleting: DrainingNode"),
            ),
            (
                "an optional part counts once it is there",
                json!([good, {"type": "A", "status": "True"}, {"type": "B", "status": "True"}, {"type": "C", "status": "False", "message": "bad"}]),
                Condition::new("Ready", false, "NotReady").message("* C: bad"),
            ),
        ] {
            assert_eq!(of(conditions), expected, "{what}");
        }
    }
}
