//! What summaries and aggregates share: issues before unknowns before information.

use super::{Condition, Status};

/// Which status is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarity {
    /// `True` is good: `Ready`.
    Positive,
    /// `False` is good: `Deleting`.
    Negative,
}

/// Reasons of a merged condition by the worst that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// There is an issue.
    pub issue: &'static str,
    /// There is no issue, but something is unknown.
    pub unknown: &'static str,
    /// All is good.
    pub info: &'static str,
}

/// How much a condition weighs; the least wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Issue,
    Unknown,
    Info,
}

pub(super) fn priority(condition: &Condition, polarity: Polarity) -> Priority {
    match (condition.status, polarity) {
        (Status::Unknown, _) => Priority::Unknown,
        (Status::True, Polarity::Positive) | (Status::False, Polarity::Negative) => Priority::Info,
        _ => Priority::Issue,
    }
}

/// Status and reason of the merged condition.
pub(super) fn verdict(worst: Priority, polarity: Polarity, reasons: Reasons) -> (Status, &'static str) {
    let good = polarity == Polarity::Positive;
    match worst {
        Priority::Issue => (Status::from(!good), reasons.issue),
        Priority::Unknown => (Status::Unknown, reasons.unknown),
        Priority::Info => (Status::from(good), reasons.info),
    }
}

/// One bullet: `* head: message`, or the message's own bullets indented below the head.
pub(super) fn bullet(head: &str, message: &str) -> String {
    if message.starts_with("* ") {
        format!("* {head}:\n{}", message.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
    } else {
        format!("* {head}: {message}")
    }
}
