//! Shared by summaries and aggregates: issues before unknowns before information.

use super::{Condition, Status};

/// Polarity of a condition: which status is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarity {
    /// `True` is good: `Ready`.
    Positive,
    /// `False` is good: `Deleting`.
    Negative,
}

/// Reasons of a merged condition by its worst part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// Some part has an issue.
    pub issue: &'static str,
    /// No part has an issue, and some part is unknown.
    pub unknown: &'static str,
    /// All parts are good.
    pub info: &'static str,
}

/// Weight of a condition; the least wins.
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

/// Status and reason of a merged condition.
pub(super) fn verdict(worst: Priority, polarity: Polarity, reasons: Reasons) -> (Status, &'static str) {
    let good = polarity == Polarity::Positive;
    match worst {
        Priority::Issue => (Status::from(!good), reasons.issue),
        Priority::Unknown => (Status::Unknown, reasons.unknown),
        Priority::Info => (Status::from(good), reasons.info),
    }
}

/// A bullet: `* head: message`, or `head` with the message's bullets indented below.
pub(super) fn bullet(head: &str, message: &str) -> String {
    if message.starts_with("* ") {
        format!("* {head}:\n{}", message.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
    } else {
        format!("* {head}: {message}")
    }
}
