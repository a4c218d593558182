//! Why a capability gave no answer, or an operation of the previous pass was not carried out: the contract's `call-error`.

use serde::{Deserialize, Serialize};

/// The kinds of refusal; a guest decides by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no such thing (yet).
    NotFound,
    /// Somebody else changed or owns it.
    Conflict,
    /// It is there already, and it is not ours.
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

/// A refused call: the kind for the guest's control flow, the rest for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refused {
    /// Decides what the one who asked does next.
    pub refusal: Refusal,
    /// CamelCase, stable.
    pub reason: String,
    /// For a person; says what to do where something can be done.
    pub message: String,
}

impl Refused {
    /// A refusal of any kind.
    pub fn new(refusal: Refusal, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Refused { refusal, reason: reason.into(), message: message.into() }
    }

    /// Not granted. `message` names the missing grant.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Refusal::Denied, "NotGranted", message)
    }

    /// No such thing, with the reason `NotFound`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Refusal::NotFound, "NotFound", message)
    }

    /// The call makes no sense to the other side.
    pub fn invalid(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Refusal::Invalid, reason, message)
    }

    /// Whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.refusal == Refusal::NotFound
    }
}

/// `Ok(None)` instead of a `not-found`.
pub trait Optional<T> {
    /// Turns `not-found` into `None`; other refusals stay.
    ///
    /// # Errors
    /// Every other refusal.
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
