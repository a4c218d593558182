//! `status` of a WasmProvider, as far as it is remembered from pass to pass: which components serve, served, and might.

use capwasm_object::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rehearse::{Paint, Report};

/// One component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// `sha256:<hex>`
    pub digest: String,
    /// The provider's own version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Contract version that it speaks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contract: String,
    /// What it was pulled as: reference and digest of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// Since when it is in this state, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// Why it is in this state, in CamelCase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The component that the source has and that does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Candidate {
    /// Which, and why not.
    #[serde(flatten)]
    pub component: Record,
    /// Why not, for a person.
    pub message: String,
    /// `metadata.generation` when this was decided.
    pub generation: i64,
    /// What a rehearsal showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
}

/// Reasons of a candidate that waits for somebody.
pub const WAITING: [&str; 3] = ["AwaitingApproval", "RehearsalDiffers", "NothingRecorded"];

impl Candidate {
    /// Whether it serves as soon as somebody approves it.
    pub fn waits_for_approval(&self) -> bool {
        WAITING.contains(&self.component.reason.as_str())
    }
}

/// What a rehearsal showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rehearsal {
    /// Calls that were rehearsed.
    pub calls: usize,
    /// Calls that did not come to the same.
    pub differences: usize,
    /// The differences, shortened.
    pub summary: String,
}

/// Longest text of a difference in a status, characters.
const SUMMARY: usize = 4096;

impl From<&Report> for Rehearsal {
    fn from(report: &Report) -> Self {
        let summary = report.people(Paint::Plain).chars().take(SUMMARY).collect();
        Rehearsal { calls: report.total, differences: report.total.saturating_sub(report.same), summary }
    }
}

/// Reason of a candidate that served and was given up.
pub const ROLLED_BACK: &str = "RolledBack";

/// Which components serve, served, and might.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// What serves.
    pub active: Option<Record>,
    /// What might.
    pub candidate: Option<Candidate>,
    /// What served, the newest first.
    pub previous: Vec<Record>,
}

impl History {
    /// As it stands in the object; nothing where that makes no sense.
    pub fn of(object: &Value) -> Self {
        let part = |name: &str| object.pointer(&format!("/status/{name}")).cloned().filter(|value| !value.is_null());
        fn read<T: serde::de::DeserializeOwned>(value: Option<Value>) -> Option<T> {
            value.and_then(|value| serde_json::from_value(value).ok())
        }
        History {
            active: read(part("active")),
            candidate: read(part("candidate")),
            previous: read(part("previous")).unwrap_or_default(),
        }
    }

    /// Writes it into the object.
    ///
    /// # Errors
    /// Never, as far as is known: all of it is text.
    pub fn write(&self, object: &mut Value) -> Result<(), serde_json::Error> {
        json::set(object, &["status", "active"], serde_json::to_value(&self.active)?);
        json::set(object, &["status", "candidate"], serde_json::to_value(&self.candidate)?);
        let previous = if self.previous.is_empty() { Value::Null } else { serde_json::to_value(&self.previous)? };
        json::set(object, &["status", "previous"], previous);
        Ok(())
    }

    /// The digest that serves.
    pub fn active(&self) -> Option<&str> {
        self.active.as_ref().map(|record| record.digest.as_str())
    }

    /// The digest that was given up in this generation of the object.
    pub fn rejected(&self, generation: i64) -> Option<&str> {
        let candidate = self.candidate.as_ref()?;
        (candidate.component.reason == ROLLED_BACK && candidate.generation == generation)
            .then_some(candidate.component.digest.as_str())
    }

    /// Whether a component serves or served: whatever it needs was installed.
    pub fn served(&self, digest: &str) -> bool {
        self.active() == Some(digest) || self.previous.iter().any(|record| record.digest == digest)
    }

    /// Every digest in it.
    pub fn digests(&self) -> Vec<&str> {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.component.digest.as_str());
        self.active()
            .into_iter()
            .chain(candidate)
            .chain(self.previous.iter().map(|record| record.digest.as_str()))
            .collect()
    }

    /// `component` serves, and what served before is kept, unless it was given up.
    pub fn serve(&mut self, component: Record, limit: usize) {
        if self.candidate.as_ref().is_some_and(|candidate| candidate.component.digest == component.digest) {
            self.candidate = None;
        }
        let given_up = self.candidate.as_ref().filter(|candidate| candidate.component.reason == ROLLED_BACK);
        let given_up = given_up.map(|candidate| candidate.component.digest.clone());
        if let Some(before) = self.active.take() {
            if before.digest == component.digest {
                self.active = Some(Record { since: before.since, reason: before.reason, ..component });
                self.previous.truncate(limit);
                return;
            }
            if Some(&before.digest) != given_up.as_ref() {
                self.previous
                    .insert(0, Record { since: component.since.clone(), reason: "Replaced".to_owned(), ..before });
            }
        }
        self.previous.retain(|record| record.digest != component.digest);
        self.previous.truncate(limit);
        self.active = Some(component);
    }

    /// `component` might serve, and does not.
    pub fn hold(&mut self, candidate: Candidate) {
        let since = match &self.candidate {
            Some(known)
                if known.component.digest == candidate.component.digest
                    && known.component.reason == candidate.component.reason =>
            {
                known.component.since.clone()
            }
            _ => candidate.component.since.clone(),
        };
        self.candidate = Some(Candidate { component: Record { since, ..candidate.component }, ..candidate });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn record(digest: &str, since: &str) -> Record {
        Record { digest: digest.into(), since: since.into(), reason: "Swapped".into(), ..Record::default() }
    }

    fn candidate(digest: &str, reason: &str, since: &str) -> Candidate {
        let component = Record { reason: reason.into(), ..record(digest, since) };
        Candidate { component, message: "m".into(), generation: 3, rehearsal: None }
    }

    fn previous(history: &History) -> Vec<&str> {
        history.previous.iter().map(|record| record.digest.as_str()).collect()
    }

    #[test]
    fn what_served_is_kept_up_to_the_limit_and_never_twice() {
        let mut history = History::default();
        for (time, digest) in ["a", "b", "c", "c", "a", "d"].into_iter().enumerate() {
            history.serve(record(digest, &time.to_string()), 2);
        }
        assert_eq!((history.active(), previous(&history)), (Some("d"), vec!["a", "c"]));
        history.serve(record("d", "later"), 1);
        assert_eq!(history.active.as_ref().unwrap().since, "5", "it has not changed");
        assert_eq!(previous(&history), ["a"]);
        assert!(history.served("a") && history.served("d") && !history.served("c"));
    }

    #[test]
    fn what_was_given_up_is_a_candidate_and_not_kept() {
        let mut history = History::default();
        history.serve(record("a", "0"), 2);
        history.serve(record("b", "1"), 2);
        history.hold(candidate("b", ROLLED_BACK, "2"));
        history.serve(record("a", "2"), 2);
        assert_eq!((history.active(), previous(&history)), (Some("a"), vec![]));
        assert_eq!((history.rejected(3), history.rejected(4)), (Some("b"), None), "another spec is another try");
        assert_eq!(history.digests(), ["a", "b"]);
        history.serve(record("b", "3"), 2);
        assert_eq!((history.candidate.as_ref(), previous(&history)), (None, vec!["a"]));
    }

    #[test]
    fn it_stands_in_the_status_and_is_read_again() {
        let mut history = History::default();
        history.serve(record("a", "0"), 2);
        history.serve(record("b", "1"), 2);
        history.hold(candidate("c", "LoadFailed", "2"));
        history.hold(candidate("c", "LoadFailed", "9"));
        let mut object = json!({"status": {"version": "1"}});
        history.write(&mut object).unwrap();
        assert_eq!(object["status"]["candidate"]["since"], "2", "the same reason since then");
        assert_eq!(object["status"]["version"], "1");
        assert_eq!(History::of(&object), history);
        assert_eq!(History::of(&json!({"status": {"active": 7, "candidate": null}})), History::default());
    }
}
