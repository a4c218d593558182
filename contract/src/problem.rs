//! Why a provider did not finish.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::refused::{Refusal, Refused};

/// Decides retry, event and severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// Somebody else has to act first. Not an error. What was read wakes the object.
    Waiting,
    /// Try again with backoff.
    Transient,
    /// The object asks for what cannot be; tried again when it, or something that was read, changes.
    Invalid,
    /// As `Invalid`, and reported as a failure that needs a person.
    Terminal,
    /// This provider does not do that.
    Unsupported,
}

/// An unfinished call. What the outcome collected before is still carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{reason}: {message}")]
pub struct Problem {
    /// Decides what happens next.
    pub fault: Fault,
    /// CamelCase; becomes the reason of the `Ready` condition and of the event.
    pub reason: String,
    /// For a person: what happened and what to do.
    pub message: String,
    /// Try again after this time, instead of the host's own backoff.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// Somebody else has to act first.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Waiting, reason, message)
    }

    /// Try again with backoff.
    pub fn transient(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Transient, reason, message)
    }

    /// The object asks for what cannot be.
    pub fn invalid(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Invalid, reason, message)
    }

    /// A failure that needs a person.
    pub fn terminal(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Terminal, reason, message)
    }

    /// This provider does not do that.
    pub fn unsupported(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Unsupported, reason, message)
    }

    /// A problem of any fault.
    pub fn new(fault: Fault, reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { fault, reason: reason.into(), message: message.into(), retry_after: None }
    }

    /// The same problem, tried again after `delay`.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Problem {
        self.retry_after = Some(delay);
        self
    }

    /// The same problem with `context` in front of its message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Problem {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.reason.len() + self.message.len()
    }
}

/// How long to wait for another side that nothing announces.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(10);

/// What a refusal means where the provider has no better idea: what is absent or unreachable is waited for, what is
/// not granted needs a person.
impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        let (fault, retry_after) = match refused.refusal {
            Refusal::NotFound => (Fault::Waiting, None),
            Refusal::Unavailable => (Fault::Waiting, Some(UNAVAILABLE_RETRY)),
            Refusal::Conflict | Refusal::AlreadyExists | Refusal::Limit => (Fault::Transient, None),
            Refusal::Invalid => (Fault::Invalid, None),
            Refusal::Denied => (Fault::Terminal, None),
            Refusal::Unsupported => (Fault::Unsupported, None),
        };
        Problem { fault, reason: refused.reason, message: refused.message, retry_after }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_refusal_becomes_the_fault_that_decides_its_retry() {
        let table = [
            (Refusal::NotFound, Fault::Waiting),
            (Refusal::Unavailable, Fault::Waiting),
            (Refusal::Conflict, Fault::Transient),
            (Refusal::AlreadyExists, Fault::Transient),
            (Refusal::Limit, Fault::Transient),
            (Refusal::Invalid, Fault::Invalid),
            (Refusal::Denied, Fault::Terminal),
            (Refusal::Unsupported, Fault::Unsupported),
        ];
        for (refusal, fault) in table {
            let problem = Problem::from(Refused::new(refusal, "Why", "because"));
            assert_eq!(problem.fault, fault, "{refusal:?}");
            assert_eq!((problem.reason.as_str(), problem.message.as_str()), ("Why", "because"));
        }
    }
}
