//! Recordings: one call with all of its input and output, so that it can be replayed on any machine, without network or
//! API server.
//!
//! ```text
//! call ─► guest ─► import ─► host answers ─► tape        recorded
//! recording ─► guest ─► import ─► tape answers           replayed: no network, no API server, no clock
//! ```
//!
//! Facts, clocks and random numbers follow from what is in the [`Recording`] itself; what the host was asked besides
//! stands on its tape, request by request, as the guest saw it answered: after grants and limits. So the same component
//! does the same again. [`Provider::replay`](crate::Provider::replay) says so, or where it did not.
//!
//! A recording has whatever the guest saw, tokens and keys among it.

pub(crate) mod file;
pub(crate) mod player;
mod redact;
pub(crate) mod tape;

use std::sync::Arc;

use capwasm_contract::recording::{Ended, Entry};
use capwasm_contract::{Answer, Facts, Function, Problem};
use serde::{Deserialize, Serialize, Serializer};

use crate::grants::Grants;
use crate::limits::Limits;

pub use self::file::{ReadError, is_draft, read, to_json, write};
pub use self::player::{Divergence, Rehearsal, Replay, Replayed};
pub use self::redact::redact;

/// Recording of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// Whether secrets were replaced. It may then not replay to the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inexact: bool,
    /// Name of the provider.
    pub provider: String,
    /// Version of the provider, from its descriptor.
    pub version: String,
    /// `sha256:<hex>` of the component.
    pub digest: String,
    /// Version of the recording host.
    pub host: String,
    /// Exported function that was called.
    pub function: Function,
    /// The object, JSON text as the guest got it.
    pub object: Arc<String>,
    /// Answers of the capability `call`.
    pub facts: Facts,
    /// Seed of WASI's random numbers.
    pub seed: u64,
    /// Limits of the call.
    pub limits: Limits,
    /// Grants of the provider; they decide which operations were refused. Files leave out endpoints, whose credentials
    /// no guest sees.
    #[serde(serialize_with = "without_endpoints")]
    pub grants: Arc<Grants>,
    /// Requests of the guest with their answers, in order.
    pub tape: Vec<Entry>,
    /// Result of the call.
    pub ended: Ended,
}

/// Receives recordings at the end of each call, on the call's task: must not block.
pub trait Recorder: Send + Sync {
    /// Takes the recording of a finished call.
    fn take(&self, recording: Recording);
    /// Notes a call whose tape exceeded [`TAPE_BYTES`], and of which nothing was kept.
    fn lost(&self);
}

/// Largest tape in bytes.
pub const TAPE_BYTES: usize = 16 << 20;

impl Recording {
    /// The object as JSON; null if it does not parse.
    pub fn object(&self) -> serde_json::Value {
        serde_json::from_str(&self.object).unwrap_or_default()
    }

    /// Memory use in bytes, roughly.
    pub fn bytes(&self) -> usize {
        let related: usize = self.facts.related.values().flatten().map(String::len).sum();
        let tape: usize = self.tape.iter().map(Entry::bytes).sum();
        let ended = match &self.ended {
            Ended::Replied { answer, outcome } => {
                answer.as_ref().map_or_else(Problem::bytes, Answer::bytes) + outcome.bytes()
            }
            Ended::Failed(_) => 0,
        };
        self.object.len() + self.facts.configuration.len() + related + tape + ended
    }
}

fn without_endpoints<S: Serializer>(grants: &Arc<Grants>, serializer: S) -> Result<S::Ok, S::Error> {
    Grants { endpoints: Default::default(), ..Grants::clone(grants) }.serialize(serializer)
}
