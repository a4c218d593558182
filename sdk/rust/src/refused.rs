//! Why a capability gave no answer.

use std::error::Error;
use std::fmt;

/// The kinds of refusal; mirrors `refusal` of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// There is no such thing (yet).
    NotFound,
    /// Somebody else changed or owns it.
    Conflict,
    /// It is there, and it is not ours.
    AlreadyExists,
    /// The request makes no sense to the other side.
    Invalid,
    /// Not granted by the WasmProvider.
    Denied,
    /// A granted limit was passed: size, time, number of requests.
    Limit,
    /// The other side cannot be reached just now.
    Unavailable,
    /// The host or the other side does not do that.
    Unsupported,
}

/// A refused call of a capability, or a failed operation of the previous pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What kind of refusal.
    pub refusal: Refusal,
    /// CamelCase, for conditions and events.
    pub reason: String,
    /// For a person.
    pub message: String,
}

impl Refused {
    /// A refusal with its reason and message.
    pub fn new(refusal: Refusal, reason: impl Into<String>, message: impl Into<String>) -> Refused {
        Refused { refusal, reason: reason.into(), message: message.into() }
    }

    /// A `not-found` with the reason `NotFound`.
    pub fn not_found(message: impl Into<String>) -> Refused {
        Refused::new(Refusal::NotFound, "NotFound", message)
    }

    /// Whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.refusal == Refusal::NotFound
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl Error for Refused {}

/// `Ok(None)` instead of a `not-found`.
pub trait Optional<T> {
    /// Turns `not-found` into `None`; other refusals stay.
    fn optional(self) -> Result<Option<T>, Refused>;
}

impl<T> Optional<T> for Result<T, Refused> {
    fn optional(self) -> Result<Option<T>, Refused> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(refused) if refused.is_not_found() => Ok(None),
            Err(refused) => Err(refused),
        }
    }
}
