//! Refusals of capabilities and of operations: the contract's `call-error`.

use serde::{Deserialize, Serialize};

/// Kind of a refusal, for the guest's control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It does not exist (yet).
    NotFound,
    /// It was changed, or belongs to somebody else.
    Conflict,
    /// It exists and belongs to somebody else.
    AlreadyExists,
    /// The request is invalid.
    Invalid,
    /// Not granted by the WasmProvider.
    Denied,
    /// A limit was passed: size, time, number of requests.
    Limit,
    /// The other side is unreachable at present.
    Unavailable,
    /// Neither host nor other side supports it.
    Unsupported,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refused {
    /// For the guest's control flow.
    pub refusal: Refusal,
    /// Stable CamelCase reason.
    pub reason: String,
    /// Message for people, with advice where there is any.
    pub message: String,
}

impl Refused {
    /// A refusal of any kind.
    pub fn new(refusal: Refusal, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Refused { refusal, reason: reason.into(), message: message.into() }
    }

    /// A refusal for a missing grant, which `message` names.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Refusal::Denied, "NotGranted", message)
    }

    /// A refusal of kind and reason `NotFound`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Refusal::NotFound, "NotFound", message)
    }

    /// A refusal of kind `Invalid`.
    pub fn invalid(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Refusal::Invalid, reason, message)
    }

    /// Whether the kind is `NotFound`.
    pub fn is_not_found(&self) -> bool {
        self.refusal == Refusal::NotFound
    }
}

/// Makes `not-found` an `Ok(None)`.
pub trait Optional<T> {
    /// Turns `not-found` into `None`; other refusals remain.
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
