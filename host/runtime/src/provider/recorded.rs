//! Recorded and replayed calls.

use std::sync::Arc;

use capwasm_contract::recording::Ended;
use capwasm_contract::{Failure, Function};

use super::{Finished, Provider, contained};
use crate::call::{Call, Capabilities};
use crate::failure::CallError;
use crate::grants::Grants;
use crate::limits::Limits;
use crate::record::player::Player;
use crate::record::tape::Tape;
use crate::record::{Recorder, Recording, Replay, Replayed};
use crate::reply::Reply;

/// The part of a recording that is known before its call.
pub(super) struct Begun {
    recorder: Arc<dyn Recorder>,
    provider: String,
    version: String,
    digest: String,
    function: Function,
    seed: u64,
    limits: Limits,
    grants: Arc<Grants>,
}

impl Begun {
    /// Passes the recording to the recorder, and returns the call's result.
    pub(super) fn hand_over(self, finished: Finished) -> Result<Reply, Failure> {
        let Finished { result, object, facts, tape } = finished;
        let Begun { recorder, provider, version, digest, function, seed, limits, grants } = self;
        let Tape::Recording { entries: tape, .. } = tape else {
            recorder.lost();
            return result;
        };
        recorder.take(Recording {
            inexact: false,
            provider,
            version,
            digest,
            host: env!("CARGO_PKG_VERSION").to_owned(),
            function,
            object,
            facts,
            seed,
            limits,
            grants,
            tape,
            ended: ended(&result),
        });
        result
    }
}

fn ended(result: &Result<Reply, Failure>) -> Ended {
    match result {
        Ok(Reply { answer, outcome, .. }) => Ended::Replied { answer: answer.clone(), outcome: outcome.clone() },
        Err(failure) => Ended::Failed(failure.clone()),
    }
}

impl Provider {
    pub(super) fn recording_of(&self, call: &Call) -> Option<Begun> {
        let recorder = call.recorder.clone()?;
        Some(Begun {
            recorder,
            provider: self.guest.name.clone(),
            version: self.descriptor.version.clone(),
            digest: self.guest.digest.clone(),
            function: call.function,
            seed: call.seed,
            limits: self.guest.limits.clone(),
            grants: call.grants.clone(),
        })
    }

    /// Makes a recorded call again: requests are answered by the recording, without side effects.
    ///
    /// # Errors
    /// When the call cannot be made: the role is not exported, no slot is free, or the host panicked. What the guest does
    /// is in the answer.
    pub async fn replay(&self, recording: &Recording, how: &Replay) -> Result<Replayed, CallError> {
        let function = recording.function;
        let fail = |failure| self.guest.error(function.name(), failure);
        if !self.roles.contains(&function.role()) {
            return Err(fail(Failure::NotExported));
        }
        let mut call = Call {
            function,
            object: String::clone(&recording.object),
            facts: recording.facts.clone(),
            capabilities: Capabilities::none(),
            grants: recording.grants.clone(),
            seed: recording.seed,
            recorder: None,
        };
        if let Replay::Rehearse(with) = how {
            call.grants = with.grants.clone().unwrap_or(call.grants);
            call.facts.configuration = with.configuration.clone().unwrap_or(call.facts.configuration);
            call.capabilities = with.live.clone().unwrap_or(call.capabilities);
        }
        let permits = self.slots().await.map_err(fail)?;
        let _permits = permits;
        let tape = Tape::Playing(Box::new(Player::new(recording.tape.clone(), how)));
        let run = contained(self.guest.clone().run(call, tape)).await;
        let Finished { result, tape, .. } = run.map_err(|message| fail(Failure::Panic { message }))?;
        let ended = ended(&result);
        Ok(match tape {
            Tape::Playing(player) => player.finish(ended, recording),
            // A tape that plays goes on playing.
            _ => Replayed { ended: Some(ended), divergence: None, requests: 0 },
        })
    }
}
