//! Recordings: one call with everything that went in and out, so that it can be had again, anywhere, without the world
//! that it ran in.
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
use capwasm_contract::{Facts, Function};
use serde::{Deserialize, Serialize, Serializer};

use crate::grants::Grants;
use crate::limits::Limits;

pub use self::file::{ReadError, is_draft, read, to_json, write};
pub use self::player::{Divergence, Rehearsal, Replay, Replayed};
pub use self::redact::redact;

/// One call, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// Whether something in it was replaced, as secrets are before it is shared. It may then not replay to the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inexact: bool,
    /// The provider's name.
    pub provider: String,
    /// Its version, as `describe()` says.
    pub version: String,
    /// `sha256:` and the hex digest of the component.
    pub digest: String,
    /// Version of the host that recorded.
    pub host: String,
    /// Which exported function.
    pub function: Function,
    /// The object, JSON text as the guest got it.
    pub object: Arc<String>,
    /// What the guest could ask about the call.
    pub facts: Facts,
    /// Seed of WASI's random numbers.
    pub seed: u64,
    /// Limits of the call.
    pub limits: Limits,
    /// What the provider might do. Decides which operations were refused; a file leaves out the endpoints, whose
    /// credentials no guest sees.
    #[serde(serialize_with = "without_endpoints")]
    pub grants: Arc<Grants>,
    /// Every import that had to be answered, in order.
    pub tape: Vec<Entry>,
    /// How it ended.
    pub ended: Ended,
}

/// Where recordings go. Called at the end of each call, by its own task: it must not wait.
pub trait Recorder: Send + Sync {
    /// A call that ended.
    fn take(&self, recording: Recording);
    /// A call whose tape grew past [`TAPE_BYTES`]: nothing of it was kept.
    fn lost(&self);
}

/// Most bytes that one tape holds.
pub const TAPE_BYTES: usize = 16 << 20;

impl Recording {
    /// The object as JSON; null when it is none.
    pub fn object(&self) -> serde_json::Value {
        serde_json::from_str(&self.object).unwrap_or_default()
    }

    /// Roughly the memory that it takes, bytes.
    pub fn bytes(&self) -> usize {
        let related: usize = self.facts.related.values().flatten().map(String::len).sum();
        let tape: usize = self.tape.iter().map(Entry::bytes).sum();
        // An outcome is counted by its collector while it is made; here a guess at twice the object will do.
        3 * self.object.len() + self.facts.configuration.len() + related + tape
    }
}

fn without_endpoints<S: Serializer>(grants: &Arc<Grants>, serializer: S) -> Result<S::Ok, S::Error> {
    Grants { endpoints: Default::default(), ..Grants::clone(grants) }.serialize(serializer)
}
