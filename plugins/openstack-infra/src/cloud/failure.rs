//! Why a request to OpenStack failed, and what that means for the object.

use std::fmt;
use std::time::Duration;

use capwasm_sdk::{Fault, Problem};

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// HTTP status; none when there was no answer.
    pub status: Option<u16>,
    /// CamelCase, for conditions and events: `QuotaExceeded`, `NotFound`, …
    pub reason: String,
    /// For a person: the request and the service's own words.
    pub message: String,
    /// When to try again, where the service says so.
    pub retry_after: Option<Duration>,
    /// What kind of problem this is unless the caller knows better.
    pub fault: Fault,
}

impl Failure {
    /// 409: in use, being changed, or there already.
    pub fn is_conflict(&self) -> bool {
        self.status == Some(409)
    }

    /// A quota of the project is used up.
    pub fn is_quota(&self) -> bool {
        self.reason == "QuotaExceeded"
    }

    /// 404.
    pub fn is_not_found(&self) -> bool {
        self.status == Some(404)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let problem = Problem::new(failure.fault, failure.reason, failure.message);
        match failure.retry_after {
            Some(delay) => problem.retry_after(delay),
            None => problem,
        }
    }
}
