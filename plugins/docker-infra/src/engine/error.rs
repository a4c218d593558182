//! What can go wrong with a request to the engine, and what it means for the object.

use std::time::Duration;

use capwasm_object::bounded::ReadError;
use capwasm_sdk::{HttpResponse, Problem, Refusal, Refused};

/// Reason of the host's refusal when the deadline of a request has passed.
const LATE: &str = "RequestTimeout";
/// Bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 << 10;

/// A failed request. `act` reads on from "unable to".
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The host did not get an answer.
    #[error("unable to {act}: {refused}")]
    Unreachable { act: String, refused: Refused },
    /// The engine took the request and did not answer in the time of its kind.
    #[error("unable to {act}: the engine did not answer within {} s", deadline.as_secs())]
    Late { act: String, deadline: Duration },
    #[error("unable to {act}: the engine answers {status}: {message}")]
    Rejected {
        act: String,
        status: u16,
        /// The engine's own words.
        message: String,
    },
    /// The engine's answer makes no sense.
    #[error("unable to {act}: the engine's answer is not what it should be")]
    Garbled {
        act: String,
        #[source]
        source: ReadError,
    },
    /// The engine's archive makes no sense.
    #[error("unable to {act}: the engine's answer is not a tar archive")]
    NotAnArchive {
        act: String,
        #[source]
        source: std::io::Error,
    },
    /// What should be sent cannot be an archive.
    #[error("unable to {act}: it does not go into an archive: {source}")]
    Unwritable { act: String, source: std::io::Error },
}

impl EngineError {
    /// From the host's refusal of a request that had this deadline.
    pub fn unanswered(act: &str, deadline: Duration, refused: Refused) -> EngineError {
        let act = act.to_owned();
        // An answer that is too large is refused as a limit, too.
        match refused.refusal == Refusal::Limit && refused.reason == LATE {
            true => EngineError::Late { act, deadline },
            false => EngineError::Unreachable { act, refused },
        }
    }

    /// Whether the engine may have done, or may still do, what it was asked.
    pub fn is_unanswered(&self) -> bool {
        match self {
            EngineError::Unreachable { refused, .. } => refused.refusal != Refusal::Denied,
            // Not the engine's own words, but those of somebody before it.
            EngineError::Rejected { status, .. } => (502..=504).contains(status),
            EngineError::Late { .. } | EngineError::Garbled { .. } | EngineError::NotAnArchive { .. } => true,
            EngineError::Unwritable { .. } => false,
        }
    }

    /// Whether the engine does not know what the request was about.
    pub fn is_not_found(&self) -> bool {
        matches!(self, EngineError::Rejected { status: 404, .. })
    }

    /// From a response; its body is `{"message": …}` when it comes from the engine itself.
    pub fn rejected(act: String, response: &HttpResponse) -> EngineError {
        let body = &response.body[..response.body.len().min(ERROR_BYTES)];
        let told = serde_json::from_slice::<serde_json::Value>(body).ok();
        let told = told.as_ref().and_then(|body| body.get("message")?.as_str());
        let message = told.map_or_else(
            || String::from_utf8_lossy(body).chars().take(200).collect(),
            |message| message.chars().take(super::LONGEST_MESSAGE).collect(),
        );
        EngineError::Rejected { act, status: response.status, message }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Problem {
        let message = error.to_string();
        match error {
            EngineError::Unreachable { refused, .. } => match refused.refusal {
                Refusal::Denied => Problem::terminal("EngineDenied", message),
                _ => Problem::transient("EngineUnreachable", message),
            },
            EngineError::Late { .. } => Problem::transient("EngineTimeout", message),
            EngineError::Rejected { status: 400, .. } => Problem::invalid("EngineRejected", message),
            EngineError::Rejected { .. } => Problem::transient("EngineRejected", message),
            EngineError::Garbled { .. } | EngineError::NotAnArchive { .. } => {
                Problem::transient("EngineGarbled", message)
            }
            EngineError::Unwritable { .. } => Problem::invalid("BadBootstrapData", message),
        }
    }
}
