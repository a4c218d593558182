//! The conditions of a Machine as this pass leaves them. They are read once and looked at many times.

use capwasm_api::conditions::{self, Condition, Status};
use jiff::Timestamp;
use serde_json::Value;

/// Conditions, and what those that this pass changed said before.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    list: Vec<Condition>,
    before: Vec<(String, Option<Condition>)>,
}

/// What a pass says of a condition.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The condition as this pass has it.
    pub condition: &'a Condition,
    /// Whether an earlier pass reported a condition of this type.
    pub known: bool,
}

impl Conditions {
    /// Of a list as objects have it.
    pub fn read(list: &[Value]) -> Conditions {
        Conditions { list: list.iter().filter_map(Condition::from_value).collect(), before: Vec::new() }
    }

    /// A condition by its type.
    pub fn get(&self, name: &str) -> Option<&Condition> {
        self.list.iter().find(|one| one.name == name)
    }

    /// Says something. The time of the last transition changes only with the status.
    pub fn set(&mut self, now: Timestamp, name: &str, status: Status, reason: &str, message: &str) {
        let place = self.list.iter().position(|one| one.name == name);
        let old = place.and_then(|place| self.list.get_mut(place));
        if old.as_ref().is_some_and(|old| old.status == status && old.reason == reason && old.message == message) {
            return;
        }
        let since = match &old {
            Some(old) if old.status == status => old.last_transition_time.clone(),
            _ => Some(conditions::timestamp(now)),
        };
        let mut new = Condition::new(name, status, reason).message(message);
        new.last_transition_time = since;
        let old = match old {
            Some(old) => Some(std::mem::replace(old, new)),
            None => {
                self.list.push(new);
                None
            }
        };
        // What it said first.
        if !self.before.iter().any(|(known, _)| known == name) {
            self.before.push((name.to_owned(), old));
        }
    }

    /// What this pass says of a condition, if that is something else than before.
    pub fn change(&self, name: &str) -> Option<Change<'_>> {
        let (_, before) = self.before.iter().find(|(changed, _)| changed == name)?;
        let condition = self.get(name)?;
        let says = |one: &Condition| (one.status, one.reason.clone(), one.message.clone());
        (before.as_ref().map(says) != Some(says(condition))).then_some(Change { condition, known: before.is_some() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_said_anew_is_a_change_and_the_rest_is_not() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let (then, now) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        let list = ["Same", "Reason", "Status", "Back"]
            .map(|name| json!({"type": name, "status": "True", "reason": "R", "lastTransitionTime": then}));
        let mut conditions = Conditions::read(&list);
        for (name, status, reason) in [
            ("Same", true, "R"),
            ("Reason", true, "Other"),
            ("Status", false, "R"),
            ("Back", false, "R"),
            ("Back", true, "R"),
            ("New", false, "R"),
        ] {
            conditions.set(at(now), name, status.into(), reason, "");
        }
        let rows: [(&str, &str, Option<bool>); 6] = [
            ("Same", then, None),
            ("Reason", then, Some(true)),
            ("Status", now, Some(true)),
            ("Back", now, None),
            ("New", now, Some(false)),
            ("Absent", "", None),
        ];
        for (name, since, known) in rows {
            assert_eq!(conditions.change(name).map(|change| change.known), known, "{name}");
            let time = conditions.get(name).and_then(|one| one.last_transition_time.as_deref());
            assert_eq!(time.unwrap_or_default(), since, "{name}");
        }
    }
}
