//! Answers requests from a tape, exactly or as far as another component makes the same ones.

use std::sync::Arc;

use capwasm_contract::Failure::{Cpu, Wall};
use capwasm_contract::recording::{Class, Ended, Entry, Request, answering, next_effect};
use serde::{Deserialize, Serialize};

use super::Recording;
use super::tape::Turn;
use crate::call::Capabilities;
use crate::failure::Stop;
use crate::grants::Grants;

/// How to replay a recording.
#[derive(Clone, Default)]
pub enum Replay {
    /// With the same component: it must make the same requests in the same order.
    #[default]
    Exact,
    /// With another component, without side effects. Reads are answered in any order, keys that were not recorded are
    /// made, and effects (`http`, changes of `etcd`) must be the recorded ones in order.
    Rehearse(Rehearsal),
}

/// Settings of another component.
#[derive(Clone, Default)]
pub struct Rehearsal {
    /// Its grants; `None`: the recorded ones.
    pub grants: Option<Arc<Grants>>,
    /// Its configuration as JSON text; `None`: the recorded one.
    pub configuration: Option<String>,
    /// Answers reads that are not recorded, except of Secrets; `None`: the call ends there.
    pub live: Option<Capabilities>,
}

/// Result of a replayed call.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Result of the call; `None` if it diverged.
    pub ended: Option<Ended>,
    /// Where it left the recording.
    pub divergence: Option<Divergence>,
    /// Number of its requests.
    pub requests: usize,
}

impl Replayed {
    /// Whether the call ended as recorded. Where a time limit stopped it, the place does not matter.
    pub fn is_as_recorded(&self, recording: &Recording) -> bool {
        let same = match (&self.ended, &recording.ended) {
            (Some(Ended::Failed(Cpu { .. })), Ended::Failed(Cpu { .. })) => true,
            (Some(Ended::Failed(Wall { .. })), Ended::Failed(Wall { .. })) => true,
            (Some(ended), recorded) => ended == recorded,
            (None, _) => false,
        };
        same && self.divergence.is_none()
    }
}

/// The point at which a replayed call left its recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Divergence {
    /// Number of the request, from 1.
    pub at: usize,
    /// The request; `None` if the call ended instead.
    pub asked: Option<Request>,
    /// The recorded request; `None` if there is no further one.
    pub recorded: Option<Request>,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Divergence { at, asked, recorded } = self;
        match (asked, recorded) {
            (Some(asked), Some(recorded)) if asked.line() == recorded.line() => {
                write!(f, "request {at}: {} was asked with other arguments than recorded", asked.line())
            }
            (Some(asked), Some(recorded)) => {
                write!(f, "request {at}: {} was asked; recorded is {}", asked.line(), recorded.line())
            }
            (Some(asked), None) => write!(f, "request {at}: {} was asked; it is not recorded", asked.line()),
            (None, Some(recorded)) => {
                write!(f, "request {at}: the call ended; recorded is {}", recorded.line())
            }
            (None, None) => write!(f, "request {at}: the recording is not clear"),
        }
    }
}

/// State of a replay.
pub(crate) struct Player {
    entries: Vec<Entry>,
    used: Vec<bool>,
    /// Next entry in exact order.
    next: usize,
    exact: bool,
    live: bool,
    asked: usize,
    /// The call was waiting for an answer when it ended.
    unanswered: bool,
    divergence: Option<Divergence>,
}

impl Player {
    pub(crate) fn new(entries: Vec<Entry>, how: &Replay) -> Self {
        let (exact, live) = match how {
            Replay::Exact => (true, false),
            Replay::Rehearse(rehearsal) => (false, rehearsal.live.is_some()),
        };
        let used = vec![false; entries.len()];
        Player { entries, used, next: 0, exact, live, asked: 0, unanswered: false, divergence: None }
    }

    /// The answer to a request. An error ends the call.
    pub(crate) fn turn(&mut self, request: Request) -> wasmtime::Result<Turn> {
        self.asked += 1;
        let found = if self.exact { self.next_exactly(&request) } else { self.find(&request) };
        let Some(at) = found else {
            let alone = match request.class() {
                Class::Effect | Class::Secret => false,
                Class::Make => !self.exact,
                Class::Read => self.live,
            };
            if alone {
                return Ok(Turn::Ask);
            }
            let recorded = match self.exact {
                true => self.entries.get(self.next),
                false => self.next_effect().filter(|_| request.class() == Class::Effect),
            };
            self.divergence = Some(Divergence {
                at: self.asked,
                recorded: recorded.map(|e| e.request.clone()),
                asked: Some(request),
            });
            return Err(Stop::Diverged.into());
        };
        self.used[at] = true;
        match &self.entries[at].answer {
            Some(answered) => Ok(Turn::Take(answered.clone())),
            None => {
                self.unanswered = true;
                Err(Stop::Diverged.into())
            }
        }
    }

    fn next_exactly(&mut self, request: &Request) -> Option<usize> {
        let at = self.next;
        let same = self.entries.get(at).is_some_and(|entry| entry.request == *request);
        self.next += usize::from(same);
        same.then_some(at)
    }

    fn find(&self, request: &Request) -> Option<usize> {
        let class = request.class();
        let effect = class == Class::Effect;
        let same = |known: &Request| if effect { known.same_effect(request) } else { known == request };
        answering(&self.entries, &self.used, class, same)
    }

    /// The effect that has to come next.
    fn next_effect(&self) -> Option<&Entry> {
        self.entries.get(next_effect(&self.entries, &self.used)?)
    }

    /// Compares the result of the call, `ended`, with the recording's.
    pub(crate) fn finish(mut self, ended: Ended, recording: &Recording) -> Replayed {
        let requests = self.asked;
        if self.unanswered {
            // It waits for the same as then; so it ends as then.
            return Replayed { ended: Some(recording.ended.clone()), divergence: None, requests };
        }
        if let Some(divergence) = self.divergence.take() {
            return Replayed { ended: None, divergence: Some(divergence), requests };
        }
        let left = match self.exact {
            true => self.entries.get(self.next),
            false => self.next_effect(),
        };
        let divergence =
            left.map(|entry| Divergence { at: self.asked + 1, asked: None, recorded: Some(entry.request.clone()) });
        Replayed { ended: Some(ended), divergence, requests }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_contract::recording::{Answered, Exchange, Given, SecretRef};
    use capwasm_contract::{Algorithm, ObjectRef};

    fn get(name: &str) -> Request {
        Request::LookupGet(ObjectRef::new("v1", "A", name))
    }

    fn post(body: &str) -> Request {
        Request::HttpSend(Exchange {
            method: "POST".into(),
            url: "http://x.endpoint/".into(),
            headers: Vec::new(),
            body: body.to_owned().into(),
            trust: None,
            deadline_ms: Some(1),
        })
    }

    fn entry(request: Request, text: &str) -> Entry {
        Entry { request, answer: Some(Answered::Given(Given::Text(text.into()))) }
    }

    fn rehearse() -> Replay {
        Replay::Rehearse(Rehearsal::default())
    }

    /// What each request gets: its text, `ask`, or `stop`.
    fn play(how: &Replay, requests: &[Request]) -> Vec<String> {
        let tape = vec![
            entry(get("a"), "1"),
            entry(post("x"), "2"),
            entry(get("a"), "3"),
            entry(post("y"), "4"),
            Entry { request: get("hangs"), answer: None },
        ];
        let mut player = Player::new(tape, how);
        let text = |turn: wasmtime::Result<Turn>| match turn {
            Ok(Turn::Take(Answered::Given(Given::Text(text)))) => text,
            Ok(Turn::Take(other)) => format!("{other:?}"),
            Ok(Turn::Ask) => "ask".to_owned(),
            Err(_) => "stop".to_owned(),
        };
        requests.iter().map(|request| text(player.turn(request.clone()))).collect()
    }

    #[test]
    fn what_a_tape_answers() {
        let later = Request::HttpSend(Exchange { deadline_ms: None, ..post("x").http().unwrap().clone() });
        let key = Request::NewSigningKey { algorithm: Algorithm::Ed25519 };
        let live = Replay::Rehearse(Rehearsal { live: Some(Capabilities::none()), ..Rehearsal::default() });
        let secret = SecretRef::Named { namespace: None, name: "s".into() };
        let open = Request::SecretOpen(secret.clone());
        let reveal = Request::SecretReveal { secret, key: "k".into() };
        let rows: [(&str, Replay, Vec<Request>, &[&str]); 12] = [
            ("exactly the recorded order", Replay::Exact, vec![get("a"), post("x"), get("a")], &["1", "2", "3"]),
            ("exactly, another order", Replay::Exact, vec![post("x")], &["stop"]),
            ("exactly, another deadline", Replay::Exact, vec![get("a"), later.clone()], &["1", "stop"]),
            ("another component: reads in any order", rehearse(), vec![post("x"), get("a")], &["2", "1"]),
            ("another component: a read again", rehearse(), vec![get("a"), get("a"), get("a")], &["1", "3", "3"]),
            ("another component: another deadline", rehearse(), vec![later], &["2"]),
            ("another component: effects in another order", rehearse(), vec![post("y")], &["stop"]),
            ("another component: a new read", rehearse(), vec![get("b")], &["stop"]),
            ("another component: a new read, live", live.clone(), vec![get("b"), post("z")], &["ask", "stop"]),
            ("another component: a new Secret, live", live.clone(), vec![open], &["stop"]),
            ("another component: another key of a Secret, live", live, vec![reveal], &["stop"]),
            ("another component: a new key", rehearse(), vec![key], &["ask"]),
        ];
        for (name, how, requests, expected) in rows {
            assert_eq!(play(&how, &requests), expected, "{name}");
        }
    }

    #[test]
    fn a_divergence_names_both_requests() {
        let mut player = Player::new(vec![entry(post("x"), "1")], &rehearse());
        assert!(player.turn(post("y")).is_err());
        let divergence = player.divergence.unwrap();
        assert_eq!(
            divergence.to_string(),
            "request 1: http.send POST http://x.endpoint/ was asked with other arguments than recorded"
        );
    }
}
