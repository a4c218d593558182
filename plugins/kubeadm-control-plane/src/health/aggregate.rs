//! Several conditions of many machines as one of the control plane: only what is wrong or unknown is told.

use capwasm_api::conditions::Status;

use super::{LONGEST_OF_ALL, REASONS, Verdict, bounded};
use crate::machine::Machine;

/// `issues` are those that no machine can be blamed for. None without machines and issues.
pub fn of(machines: &[Machine], names: &[&str], issues: &[String]) -> Option<Verdict> {
    let (not_healthy, unknown_reason, healthy) = REASONS;
    let (mut failing, mut unknown, mut any) = (false, false, false);
    let mut told: Vec<(Vec<String>, Vec<&str>)> = Vec::new();
    for machine in machines {
        let mut lines = Vec::new();
        for condition in names.iter().filter_map(|name| machine.conditions.get(name)) {
            any = true;
            match condition.status {
                Status::True => continue,
                Status::False => failing = true,
                Status::Unknown => unknown = true,
            }
            let text = if condition.message.is_empty() {
                format!("condition is {}", condition.status.as_str())
            } else {
                condition.message.clone()
            };
            lines.push(format!("  * {}: {text}", condition.name));
        }
        match told.iter_mut().find(|(known, _)| *known == lines) {
            _ if lines.is_empty() => {}
            Some((_, names)) => names.push(&machine.name),
            None => told.push((lines, vec![&machine.name])),
        }
    }
    if !any && issues.is_empty() {
        return None;
    }
    let mut message: Vec<String> = issues.iter().map(|issue| format!("* {issue}")).collect();
    for (lines, names) in told {
        let plural = if names.len() == 1 { "" } else { "s" };
        message.push(format!("* Machine{plural} {}:\n{}", names.join(", "), lines.join("\n")));
    }
    let message = bounded(&message.join("\n"), LONGEST_OF_ALL).to_owned();
    Some(match () {
        () if !issues.is_empty() || failing => (Some(false), not_healthy, message),
        () if unknown => (None, unknown_reason, message),
        () => (Some(true), healthy, String::new()),
    })
}
