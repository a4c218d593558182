//! Why a capability gave no answer: the contract's `call-error`, as a Rust type.

use serde::{Deserialize, Serialize};

use crate::bindings::types;

/// The kinds of refusal; a guest decides by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no such thing.
    NotFound,
    /// Somebody else changed or owns it.
    Conflict,
    /// It is there already.
    AlreadyExists,
    /// The call itself makes no sense.
    Invalid,
    /// Not granted by the WasmProvider.
    Denied,
    /// A granted limit was passed: size, time, number of requests.
    Limit,
    /// The other side cannot be reached just now.
    Unavailable,
    /// The host does not do that.
    Unsupported,
}

/// A refused call: the kind for the guest's control flow, the rest for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Refused {
    /// What kind of refusal.
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

    /// No such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Refusal::NotFound, "NotFound", message)
    }

    /// The call makes no sense.
    pub fn invalid(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Refusal::Invalid, reason, message)
    }
}

impl From<Refusal> for types::Refusal {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound => Self::NotFound,
            Refusal::Conflict => Self::Conflict,
            Refusal::AlreadyExists => Self::AlreadyExists,
            Refusal::Invalid => Self::Invalid,
            Refusal::Denied => Self::Denied,
            Refusal::Limit => Self::Limit,
            Refusal::Unavailable => Self::Unavailable,
            Refusal::Unsupported => Self::Unsupported,
        }
    }
}

impl From<Refused> for types::CallError {
    fn from(refused: Refused) -> Self {
        types::CallError { refusal: refused.refusal.into(), reason: refused.reason, message: refused.message }
    }
}
