//! Aggregates the same condition of many objects.

use std::borrow::Cow;

use capwasm_object::meta;
use serde_json::Value;

use super::merge::{Polarity, Priority, Reasons, priority, verdict};
use super::{Condition, Status, get};
use crate::names::reason;

/// Names per line, and lines, at most.
const MOST: usize = 3;

/// Parameters of an aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate<'a> {
    /// Type of the aggregated conditions.
    pub source: &'a str,
    /// Type of the result.
    pub target: &'a str,
    /// Polarity of both.
    pub polarity: Polarity,
    /// Reasons of the result.
    pub reasons: Reasons,
}

/// Aggregates one condition of many objects; a missing one counts as unknown. Objects with the same message share a
/// line: `* Machines a, b, c, ... (2 more): message`. Unknown without objects.
pub fn aggregate<'v>(objects: impl IntoIterator<Item = &'v Value>, of: Aggregate<'_>) -> Condition {
    let reported = objects.into_iter().map(|object| {
        let condition = get(object, of.source).map(Cow::Owned);
        Reported { kind: meta::kind(object), name: meta::name(object), condition }
    });
    aggregate_reported(reported, of)
}

/// Condition of an object, for [`aggregate_reported`].
#[derive(Clone, Debug)]
pub struct Reported<'v> {
    /// Kind of the object.
    pub kind: &'v str,
    /// Name of the object.
    pub name: &'v str,
    /// `None` if the object does not report it.
    pub condition: Option<Cow<'v, Condition>>,
}

/// As [`aggregate`], of parsed conditions.
pub fn aggregate_reported<'v>(objects: impl IntoIterator<Item = Reported<'v>>, of: Aggregate<'_>) -> Condition {
    let mut worst = Priority::Info;
    let mut any = false;
    let mut groups: Vec<Group> = Vec::new();
    for Reported { kind, name, condition } in objects {
        any = true;
        let condition = condition.unwrap_or_else(|| {
            let unreported = Condition::new(of.source, Status::Unknown, reason::NOT_YET_REPORTED);
            Cow::Owned(unreported.message(format!("Condition {} not yet reported", of.source)))
        });
        let priority = priority(&condition, of.polarity);
        worst = worst.min(priority);
        if priority == Priority::Info {
            continue;
        }
        let text = if condition.message.is_empty() { &condition.reason } else { &condition.message };
        match groups.iter_mut().find(|group| group.priority == priority && group.kind == kind && group.text == *text) {
            Some(group) => group.names.push(name.to_owned()),
            None => {
                groups.push(Group { priority, kind: kind.to_owned(), text: text.clone(), names: vec![name.to_owned()] })
            }
        }
    }
    if !any {
        worst = Priority::Unknown;
    }
    let (status, reason) = verdict(worst, of.polarity, of.reasons);
    // Stable: the worst first, then what concerns most objects, then the order of the objects' names.
    for group in &mut groups {
        group.names.sort();
    }
    groups.sort_by(|a, b| {
        a.priority.cmp(&b.priority).then(b.names.len().cmp(&a.names.len())).then(a.names.cmp(&b.names))
    });
    let mut lines: Vec<String> = groups.iter().take(MOST).map(Group::line).collect();
    let rest: usize = groups.iter().skip(MOST).map(|group| group.names.len()).sum();
    if rest > 0 {
        lines.push(format!("And {rest} more with other issues"));
    }
    Condition::new(of.target, status, reason).message(lines.join("\n"))
}

struct Group {
    priority: Priority,
    kind: String,
    text: String,
    names: Vec<String>,
}

impl Group {
    fn line(&self) -> String {
        let plural = if self.names.len() == 1 { "" } else { "s" };
        let mut names = self.names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
        if self.names.len() > MOST {
            names.push_str(&format!(", ... ({} more)", self.names.len() - MOST));
        }
        super::merge::bullet(&format!("{}{plural} {names}", self.kind), &self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const READY: Reasons = Reasons { issue: "NotReady", unknown: "ReadyUnknown", info: "Ready" };

    fn machine(name: &str, status: &str, message: &str) -> Value {
        json!({"kind": "Machine", "metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": status, "reason": "R", "message": message}]}})
    }

    fn of(machines: &[Value]) -> Condition {
        aggregate(
            machines,
            Aggregate { source: "Ready", target: "MachinesReady", polarity: Polarity::Positive, reasons: READY },
        )
    }

    #[test]
    fn objects_with_the_same_message_share_a_line() {
        let one = |name| machine(name, "False", "slow");
        for (what, machines, expected) in [
            ("none", vec![], Condition::new("MachinesReady", Status::Unknown, "ReadyUnknown")),
            ("all good", vec![machine("a", "True", "")], Condition::new("MachinesReady", true, "Ready")),
            (
                "many share, one is unknown, one is silent",
                vec![
                    one("e"),
                    one("b"),
                    one("c"),
                    one("d"),
                    machine("u", "Unknown", "no word"),
                    machine("s", "False", ""),
                ],
                Condition::new("MachinesReady", false, "NotReady")
                    .message("* Machines b, c, d, ... (1 more): slow\n* Machine s: R\n* Machine u: no word"),
            ),
            (
                "more than three different ones",
                vec![
                    machine("a", "False", "1"),
                    machine("b", "False", "2"),
                    machine("c", "False", "3"),
                    machine("d", "False", "4"),
                ],
                Condition::new("MachinesReady", false, "NotReady")
                    .message("* Machine a: 1\n* Machine b: 2\n* Machine c: 3\nAnd 1 more with other issues"),
            ),
            (
                "not yet reported",
                vec![json!({"kind": "Machine", "metadata": {"name": "n"}})],
                Condition::new("MachinesReady", Status::Unknown, "ReadyUnknown")
                    .message("* Machine n: Condition Ready not yet reported"),
            ),
        ] {
            assert_eq!(of(&machines), expected, "{what}");
        }
    }

    #[test]
    fn negative_polarity_is_true_when_one_is_true() {
        let out = json!({"kind": "MachineDeployment", "metadata": {"name": "a"}, "status": {"conditions": [{"type": "RollingOut", "status": "True", "reason": "RollingOut", "message": "1 to go"}]}});
        let of = Aggregate {
            source: "RollingOut",
            target: "RollingOut",
            polarity: Polarity::Negative,
            reasons: Reasons { issue: "RollingOut", unknown: "RollingOutUnknown", info: "NotRollingOut" },
        };
        assert_eq!(
            aggregate([&out], of),
            Condition::new("RollingOut", true, "RollingOut").message("* MachineDeployment a: 1 to go")
        );
    }
}
