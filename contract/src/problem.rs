//! Problems that a provider reports.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::refused::{Refusal, Refused};

/// Class of a problem, which decides retry, event and severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// Something else has to happen first; no error. Changes of what was read wake the object.
    Waiting,
    /// Retry with backoff.
    Transient,
    /// The object's spec is invalid; retried when it, or something that was read, changes.
    Invalid,
    /// As `Invalid`, reported as a failure that needs a person.
    Terminal,
    /// The provider does not support the request.
    Unsupported,
}

/// Why a call could not finish. The outcome so far is still carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{reason}: {message}")]
pub struct Problem {
    /// Class of the problem.
    pub fault: Fault,
    /// CamelCase; reason of the condition `Ready` and of the event.
    pub reason: String,
    /// What happened and what to do, for people.
    pub message: String,
    /// Retry after this time instead of the host's backoff.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// A problem of class [`Fault::Waiting`].
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Waiting, reason, message)
    }

    /// A problem of class [`Fault::Transient`].
    pub fn transient(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Transient, reason, message)
    }

    /// A problem of class [`Fault::Invalid`].
    pub fn invalid(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Invalid, reason, message)
    }

    /// A problem of class [`Fault::Terminal`].
    pub fn terminal(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Terminal, reason, message)
    }

    /// A problem of class [`Fault::Unsupported`].
    pub fn unsupported(reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem::new(Fault::Unsupported, reason, message)
    }

    /// A problem of any class.
    pub fn new(fault: Fault, reason: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { fault, reason: reason.into(), message: message.into(), retry_after: None }
    }

    /// Sets the time of the retry.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Problem {
        self.retry_after = Some(delay);
        self
    }

    /// Prefixes the message.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Problem {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Size of its texts in bytes.
    pub fn bytes(&self) -> usize {
        self.reason.len() + self.message.len()
    }
}

/// Delay of a retry when no change will announce that the other side is available.
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
