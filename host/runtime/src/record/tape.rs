//! The tape of one call: off, recording, or answering in the host's place.

use serde::{Deserialize, Serialize};

use super::TAPE_BYTES;
use super::pki::Pair;
use super::player::Player;
use super::request::Request;
use crate::bindings::pki;
use crate::call::EtcdMember;
use crate::http::HttpResponse;
use crate::refused::{Refusal, Refused};

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
    #[serde(with = "super::payload")]
    Bytes(Vec<u8>),
    /// Milliseconds.
    Number(u64),
    /// An HTTP response.
    Response(HttpResponse),
    /// Members of etcd.
    Members(Vec<EtcdMember>),
    /// A certificate and its key.
    Pair(Pair),
    /// A public and a private key.
    Keys(String, String),
}

impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens and keys must not reach a log by way of a Debug print.
        write!(f, "Given({} bytes)", self.bytes())
    }
}

/// What an entry costs besides its texts.
const ENTRY_BYTES: usize = 128;

impl Entry {
    pub(crate) fn bytes(&self) -> usize {
        let answer = match &self.answer {
            Some(Answered::Given(given)) => given.bytes(),
            Some(Answered::Refused(refused)) => refused.reason.len() + refused.message.len(),
            None => 0,
        };
        ENTRY_BYTES + self.request.bytes() + answer
    }
}

impl Given {
    fn bytes(&self) -> usize {
        match self {
            Given::Done | Given::Number(_) => 0,
            Given::Text(text) => text.len(),
            Given::Texts(texts) => texts.iter().map(|text| text.len() + size_of::<String>()).sum(),
            Given::Bytes(bytes) => bytes.len(),
            Given::Response(response) => {
                let headers: usize = response.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
                headers + response.body.len()
            }
            Given::Members(members) => members
                .iter()
                .map(|member| {
                    let lists: usize = member.peer_urls.iter().chain(&member.alarms).map(String::len).sum();
                    size_of::<EtcdMember>() + member.name.len() + member.message.len() + lists
                })
                .sum(),
            Given::Pair(pair) => pair.certificate_pem.len() + pair.key_pem.len(),
            Given::Keys(public, private) => public.len() + private.len(),
        }
    }
}

/// An answer that can go onto a tape and come from one.
pub(crate) trait OnTape: Sized {
    fn given(&self) -> Given;
    fn taken(given: Given) -> Option<Self>;
}

macro_rules! on_tape {
    ($type:ty, $value:ident => $given:expr, $pattern:pat => $taken:expr) => {
        impl OnTape for $type {
            fn given(&self) -> Given {
                let $value = self;
                $given
            }

            fn taken(given: Given) -> Option<Self> {
                match given {
                    $pattern => Some($taken),
                    _ => None,
                }
            }
        }
    };
}

on_tape!((), _value => Given::Done, Given::Done => ());
on_tape!(String, value => Given::Text(value.clone()), Given::Text(text) => text);
on_tape!(Vec<String>, value => Given::Texts(value.clone()), Given::Texts(texts) => texts);
on_tape!(Vec<u8>, value => Given::Bytes(value.clone()), Given::Bytes(bytes) => bytes);
on_tape!(u64, value => Given::Number(*value), Given::Number(number) => number);
on_tape!(HttpResponse, value => Given::Response(value.clone()), Given::Response(response) => response);
on_tape!(Vec<EtcdMember>, value => Given::Members(value.clone()), Given::Members(members) => members);
on_tape!(pki::Pair, value => Given::Pair(value.into()), Given::Pair(pair) => pair.into());
on_tape!((String, String), value => Given::Keys(value.0.clone(), value.1.clone()),
    Given::Keys(public, private) => (public, private));

/// The tape of one call.
#[derive(Default)]
pub(crate) enum Tape {
    /// Nobody records.
    #[default]
    Off,
    /// What was asked so far, and its bytes.
    Recording { entries: Vec<Entry>, bytes: usize },
    /// It got too long.
    Torn,
    /// It answers.
    Playing(Box<Player>),
}

/// What to do about a request.
pub(crate) enum Turn {
    /// Ask whoever answers it.
    Ask,
    /// This is the answer.
    Take(Answered),
}

impl Tape {
    pub(crate) fn recording() -> Self {
        Tape::Recording { entries: Vec::new(), bytes: 0 }
    }

    /// Answers a request: from the tape, or by `answer`, which is then recorded. An error ends the call: the guest asked
    /// what the tape cannot answer.
    pub(crate) async fn ask<T: OnTape>(
        &mut self,
        request: impl FnOnce() -> Request,
        answer: impl Future<Output = Result<T, Refused>>,
    ) -> wasmtime::Result<Result<T, Refused>> {
        match self.begin(request)? {
            Turn::Take(answered) => Ok(take(answered)),
            Turn::Ask => {
                let answer = answer.await;
                self.end(&answer);
                Ok(answer)
            }
        }
    }

    /// As [`Tape::ask`], for what needs no waiting.
    pub(crate) fn ask_now<T: OnTape>(
        &mut self,
        request: impl FnOnce() -> Request,
        answer: impl FnOnce() -> Result<T, Refused>,
    ) -> wasmtime::Result<Result<T, Refused>> {
        match self.begin(request)? {
            Turn::Take(answered) => Ok(take(answered)),
            Turn::Ask => {
                let answer = answer();
                self.end(&answer);
                Ok(answer)
            }
        }
    }

    fn begin(&mut self, request: impl FnOnce() -> Request) -> wasmtime::Result<Turn> {
        match self {
            Tape::Off | Tape::Torn => Ok(Turn::Ask),
            Tape::Recording { entries, bytes } => {
                let entry = Entry { request: request(), answer: None };
                *bytes += entry.bytes();
                entries.push(entry);
                Ok(Turn::Ask)
            }
            Tape::Playing(player) => player.turn(request()),
        }
    }

    fn end<T: OnTape>(&mut self, answer: &Result<T, Refused>) {
        let Tape::Recording { entries, bytes } = self else { return };
        let Some(entry) = entries.last_mut() else { return };
        let answered = match answer {
            Ok(given) => Answered::Given(given.given()),
            Err(refused) => Answered::Refused(refused.clone()),
        };
        if let Answered::Given(given) = &answered {
            *bytes += given.bytes();
        }
        entry.answer = Some(answered);
        if *bytes > TAPE_BYTES {
            *self = Tape::Torn;
        }
    }
}

fn take<T: OnTape>(answered: Answered) -> Result<T, Refused> {
    // A tape that a person changed may answer what the request cannot be answered with.
    let broken = || Refused::new(Refusal::Invalid, "BrokenRecording", "the recorded answer is none to this request");
    match answered {
        Answered::Given(given) => T::taken(given).ok_or_else(broken),
        Answered::Refused(refused) => Err(refused),
    }
}
