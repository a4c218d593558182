//! The format of recordings: one call with everything that went in and out, as a host writes it into a file.
//!
//! What the host was asked stands on a tape, request by request, as the guest saw it answered. A host adds under which terms
//! the call ran; [`RecordedCall`] is what anybody else needs to make it again.
//!
//! A recording has whatever the guest saw, tokens and keys among it.

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

/// The version of the format; the only one that there is.
pub const FORMAT: u32 = 1;

/// A recording as it is written: its format, and everything else beside it.
#[derive(Serialize)]
pub struct Written<'a, T> {
    /// [`FORMAT`].
    pub format: u32,
    /// The call, and the terms under which it ran.
    #[serde(flatten)]
    pub recording: &'a T,
}

/// What is read of a recording first: whether the rest can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// The version of its format.
    pub format: u32,
}

/// The call of a recording: what went in, what was asked, and how it ended.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RecordedCall {
    /// Which exported function.
    pub function: Function,
    /// The object, JSON text as the guest got it.
    pub object: String,
    /// What the guest could ask about the call.
    pub facts: Facts,
    /// Every import that had to be answered, in order.
    pub tape: Vec<Entry>,
    /// How it ended.
    pub ended: Ended,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ended {
    /// With a reply.
    Replied {
        /// The role's answer, or why there is none.
        answer: Result<Answer, Problem>,
        /// What should be, besides.
        outcome: Outcome,
    },
    /// With none: a trap, or a limit.
    Failed(Failure),
}

/// One import call and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was asked.
    #[serde(flatten)]
    pub request: Request,
    /// What was answered; none when the call ended while it waited.
    pub answer: Option<Answered>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answered {
    /// It was given.
    Given(Given),
    /// It was not.
    Refused(Refused),
}

/// What was given. Which form belongs to which request follows from the contract.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Given {
    /// Done; there is nothing to say.
    Done,
    /// An object, a certificate, a hash, a token.
    Text(String),
    /// Objects.
    Texts(Vec<String>),
    /// Of a Secret.
    #[serde(with = "crate::payload")]
    Bytes(Vec<u8>),
    /// Milliseconds.
    Number(u64),
    /// Of an HTTP request.
    Response(HttpResponse<Bytes>),
    /// Members of etcd.
    Members(Vec<EtcdMember>),
    /// A certificate and its key.
    Pair(Pair),
    /// A public and a private key.
    Keys(String, String),
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens and keys must not reach a log by way of a Debug print.
        write!(f, "Given({} bytes)", self.bytes())
    }
}

/// What an entry costs besides its texts.
const ENTRY_BYTES: usize = 128;

impl Entry {
    /// Roughly the memory that it takes, bytes.
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
    /// Bytes of everything of variable size in it.
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

/// The entry of a tape that answers a request of this class when another component makes the call, or the same one after it
/// was changed. Reads may come in any order, and again: what was read again reads as it did last. Effects have to come one
/// after another, as they were recorded. `used` has for each entry whether it answered already, and `same` says whether an
/// entry's request is the one that is made.
pub fn answering(entries: &[Entry], used: &[bool], class: Class, same: impl Fn(&Request) -> bool) -> Option<usize> {
    if class == Class::Effect {
        return next_effect(entries, used).filter(|at| same(&entries[*at].request));
    }
    let mut all = (0..entries.len()).filter(|at| same(&entries[*at].request));
    let first = all.clone().find(|at| !used[*at]);
    first.or_else(|| all.next_back())
}

/// The first effect on a tape that was not asked for yet.
pub fn next_effect(entries: &[Entry], used: &[bool]) -> Option<usize> {
    (0..entries.len()).find(|at| !used[*at] && entries[*at].request.class() == Class::Effect)
}
