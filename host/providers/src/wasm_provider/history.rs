//! The part of a WasmProvider's `status` that is remembered: active, previous and candidate components.

use capwasm_object::json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rehearse::{Paint, Report};

/// A component in the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// `sha256:<hex>` of the component.
    pub digest: String,
    /// Version of the provider, from its descriptor.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Contract version of the component.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub contract: String,
    /// Reference with the digest of the manifest, for artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// Since when it is in this state; RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// CamelCase reason of this state.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A component of the source that does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Candidate {
    /// The component; its reason says why it does not serve.
    #[serde(flatten)]
    pub component: Record,
    /// Message to the reason.
    pub message: String,
    /// `metadata.generation` of the decision.
    pub generation: i64,
    /// Result of the rehearsal, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
}

/// Reasons of a candidate that an approval lets serve.
pub const WAITING: [&str; 3] = ["AwaitingApproval", "RehearsalDiffers", "NothingRecorded"];

impl Candidate {
    /// Whether an approval lets it serve.
    pub fn waits_for_approval(&self) -> bool {
        WAITING.contains(&self.component.reason.as_str())
    }
}

/// Result of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rehearsal {
    /// Number of rehearsed calls.
    pub calls: usize,
    /// Number of calls with another outcome.
    pub differences: usize,
    /// The differences as text, shortened.
    pub summary: String,
}

/// Longest summary in characters.
const SUMMARY: usize = 4096;

impl From<&Report> for Rehearsal {
    fn from(report: &Report) -> Self {
        let summary = report.people(Paint::Plain).chars().take(SUMMARY).collect();
        Rehearsal { calls: report.total, differences: report.total.saturating_sub(report.same), summary }
    }
}

/// Reason of a candidate that was rolled back.
pub const ROLLED_BACK: &str = "RolledBack";

/// The components in the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// The component that serves.
    pub active: Option<Record>,
    /// The component of the source, if it does not serve.
    pub candidate: Option<Candidate>,
    /// Components that served, newest first.
    pub previous: Vec<Record>,
}

impl History {
    /// Reads the status; what cannot be parsed is absent.
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

    /// Writes the status.
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

    /// Digest of the active component.
    pub fn active(&self) -> Option<&str> {
        self.active.as_ref().map(|record| record.digest.as_str())
    }

    /// Digest that was rolled back in this generation of the object.
    pub fn rejected(&self, generation: i64) -> Option<&str> {
        let candidate = self.candidate.as_ref()?;
        (candidate.component.reason == ROLLED_BACK && candidate.generation == generation)
            .then_some(candidate.component.digest.as_str())
    }

    /// Whether the component is active or previous, so that its CRDs were installed.
    pub fn served(&self, digest: &str) -> bool {
        self.active() == Some(digest) || self.previous.iter().any(|record| record.digest == digest)
    }

    /// Digests of all components.
    pub fn digests(&self) -> Vec<&str> {
        let candidate = self.candidate.as_ref().map(|candidate| candidate.component.digest.as_str());
        self.active()
            .into_iter()
            .chain(candidate)
            .chain(self.previous.iter().map(|record| record.digest.as_str()))
            .collect()
    }

    /// Makes `component` active; the former one becomes previous, unless it was rolled back.
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

    /// Makes a component the candidate; an unchanged one keeps its `since`.
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
