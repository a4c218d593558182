//! Tape of one call: off, recording, or playing.

use capwasm_contract::Refused;
use capwasm_contract::recording::{Answered, Entry, OnTape, Request};

use super::TAPE_BYTES;
use super::player::Player;

#[derive(Default)]
pub(crate) enum Tape {
    /// Not recorded.
    #[default]
    Off,
    /// Requests with answers so far, and their bytes.
    Recording { entries: Vec<Entry>, bytes: usize },
    /// Recording stopped: too long.
    Torn,
    /// Answers requests of a replay.
    Playing(Box<Player>),
}

/// How to answer a request.
pub(crate) enum Turn {
    /// By the host.
    Ask,
    /// By this recorded answer.
    Take(Answered),
}

impl Tape {
    pub(crate) fn recording() -> Self {
        Tape::Recording { entries: Vec::new(), bytes: 0 }
    }

    /// Answers a request from the tape, or by `answer`, which is recorded. An error ends the call: the tape has no
    /// answer.
    pub(crate) async fn ask<T: OnTape>(
        &mut self,
        request: impl FnOnce() -> Request,
        answer: impl Future<Output = Result<T, Refused>>,
    ) -> wasmtime::Result<Result<T, Refused>> {
        match self.begin(request)? {
            Turn::Take(answered) => Ok(answered.take()),
            Turn::Ask => {
                let answer = answer.await;
                self.end(&answer);
                Ok(answer)
            }
        }
    }

    /// As [`Tape::ask`], synchronously.
    pub(crate) fn ask_now<T: OnTape>(
        &mut self,
        request: impl FnOnce() -> Request,
        answer: impl FnOnce() -> Result<T, Refused>,
    ) -> wasmtime::Result<Result<T, Refused>> {
        match self.begin(request)? {
            Turn::Take(answered) => Ok(answered.take()),
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
