//! Format of recordings: one call with its input and output, as a host writes it to a file.
//!
//! The tape has the requests of the guest with their answers. A host adds the settings of the call; [`RecordedCall`] is
//! the part that is needed to replay it.
//!
//! A recording contains what the guest saw, tokens and keys among it.

mod on_tape;
mod request;

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::on_tape::OnTape;
pub use self::request::{Class, Exchange, Request, SecretRef};
use crate::answer::Answer;
use crate::call::{Facts, Function};
use crate::etcd::EtcdMember;
use crate::failure::Failure;
use crate::http::HttpResponse;
use crate::outcome::Outcome;
use crate::pki::Pair;
use crate::problem::Problem;
use crate::refused::Refused;

/// The only version of the format.
pub const FORMAT: u32 = 1;

/// A recording in a file: the format version beside the fields of the recording.
#[derive(Serialize)]
pub struct Written<'a, T> {
    /// [`FORMAT`].
    pub format: u32,
    /// The call with its settings.
    #[serde(flatten)]
    pub recording: &'a T,
}

/// The part of a recording that is read first, to check the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub format: u32,
}

/// The call of a recording.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RecordedCall {
    /// Exported function that was called.
    pub function: Function,
    /// The object as JSON text, as the guest got it.
    pub object: String,
    /// Answers of the interface `call`.
    pub facts: Facts,
    /// Requests of the guest with their answers, in order.
    pub tape: Vec<Entry>,
    /// Result of the call.
    pub ended: Ended,
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// The call replied.
    Replied {
        /// Answer of the role's function, or the problem.
        answer: Result<Answer, Problem>,
        /// What the call collected.
        outcome: Outcome,
    },
    /// The call failed: a trap or a limit.
    Failed(Failure),
}

/// A request with its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The request.
    #[serde(flatten)]
    pub request: Request,
    /// The answer; `None` when the call ended while it waited.
    pub answer: Option<Answered>,
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answered {
    /// Successful.
    Given(Given),
    /// Refused.
    Refused(Refused),
}

/// Value of a successful answer; the contract says which request has which.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Given {
    /// No value.
    Done,
    /// An object, certificate, hash or token.
    Text(String),
    /// A list of objects.
    Texts(Vec<String>),
    /// A value of a Secret.
    #[serde(with = "crate::payload")]
    Bytes(Vec<u8>),
    /// A time in milliseconds.
    Number(u64),
    /// An HTTP response.
    Response(HttpResponse<Bytes>),
    /// Members of etcd.
    Members(Vec<EtcdMember>),
    /// A certificate with its key.
    Pair(Pair),
    /// A public and a private key, as PEM.
    Keys(String, String),
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens and keys must not reach a log by way of a Debug print.
        write!(f, "Given({} bytes)", self.bytes())
    }
}

/// Memory use of an entry besides its texts.
const ENTRY_BYTES: usize = 128;

impl Entry {
    /// Memory use in bytes, roughly.
    pub fn bytes(&self) -> usize {
        let answer = match &self.answer {
            Some(Answered::Given(given)) => given.bytes(),
            Some(Answered::Refused(refused)) => refused.reason.len() + refused.message.len(),
            None => 0,
        };
        ENTRY_BYTES + self.request.bytes() + answer
    }
}

impl Given {
    /// Size of its variable parts in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Given::Done | Given::Number(_) => 0,
            Given::Text(text) => text.len(),
            Given::Texts(texts) => texts.iter().map(|text| text.len() + size_of::<String>()).sum(),
            Given::Bytes(bytes) => bytes.len(),
            Given::Response(response) => {
                let headers: usize = response.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
                headers + response.body.len()
            }
            Given::Members(members) => members.iter().map(EtcdMember::bytes).sum(),
            Given::Pair(pair) => pair.certificate_pem.len() + pair.key_pem.len(),
            Given::Keys(public, private) => public.len() + private.len(),
        }
    }
}

/// Index of the entry that answers a request of this class, when another component, or a changed one, makes the call.
/// Reads may come in any order and be repeated: a repeated read gets the last answer. Effects must come in the recorded
/// order. `used` says which entries have answered already, `same` whether an entry has the request.
pub fn answering(entries: &[Entry], used: &[bool], class: Class, same: impl Fn(&Request) -> bool) -> Option<usize> {
    if class == Class::Effect {
        return next_effect(entries, used).filter(|at| same(&entries[*at].request));
    }
    let mut all = (0..entries.len()).filter(|at| same(&entries[*at].request));
    let first = all.clone().find(|at| !used[*at]);
    first.or_else(|| all.next_back())
}

/// Index of the first effect that was not used yet.
pub fn next_effect(entries: &[Entry], used: &[bool]) -> Option<usize> {
    (0..entries.len()).find(|at| !used[*at] && entries[*at].request.class() == Class::Effect)
}
