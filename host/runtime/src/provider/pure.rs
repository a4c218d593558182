//! Calls of pure functions: conversion and admission.
//!
//! They get no capabilities or grants, a clock that stands at the epoch and a constant seed, under limits of their own,
//! since clients wait for them. Waiting for a time takes none, and each provider has a share of the places.

use std::sync::Arc;

use capwasm_contract::{Facts, Failure, Function, Problem};
use tracing::Instrument;
use wasmtime::Store;
use wasmtime::component::Instance;

use super::{Exports, Guest, contained};
use crate::bindings::types;
use crate::call::{Call, Capabilities};
use crate::failure::CallError;
use crate::grants::Grants;
use crate::places::Share;
use crate::record::tape::Tape;
use crate::reply::CallStats;
use crate::state::State;
use crate::wasi::Waits;

/// Reply of a pure function.
#[derive(Clone, Debug)]
pub struct PureReply<T> {
    /// The answer, or the provider's refusal.
    pub answer: Result<T, Problem>,
    /// Cost of the call.
    pub stats: CallStats,
}

/// Why a pure function gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum PureError {
    /// The call failed.
    #[error(transparent)]
    Call(Box<CallError>),
    /// It used the capability `outcome`, or its answer violates the contract.
    #[error("the provider breaks the contract of {function}: {problem}")]
    Contract {
        /// Function of the contract, such as `conversion.convert`.
        function: &'static str,
        /// The violation.
        problem: String,
    },
}

impl PureError {
    /// CamelCase reason: that of the failure, or `ProviderContractBroken`.
    pub fn reason(&self) -> &'static str {
        match self {
            PureError::Call(error) => error.failure.reason(),
            PureError::Contract { .. } => "ProviderContractBroken",
        }
    }
}

impl From<CallError> for PureError {
    fn from(error: CallError) -> Self {
        PureError::Call(Box::new(error))
    }
}

impl Guest {
    /// The component under the limits of pure functions.
    pub(super) fn pure(&self) -> Guest {
        Guest { limits: self.limits.for_pure(), ..self.clone() }
    }

    /// Runs a function in a fresh instance once a place is free. `bytes` measures its answer.
    pub(super) async fn ask<T>(
        self: &Arc<Self>,
        function: &'static str,
        places: &Share,
        work: impl AsyncFnOnce(&Exports, &mut Store<State>, Instance) -> wasmtime::Result<Result<T, types::Problem>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<PureReply<T>, PureError> {
        let waited = self.limits.wall_time();
        let place = tokio::time::timeout(waited, places.place()).await;
        let Ok(Some(_place)) = place else { return Err(self.error(function, Failure::Busy { waited }).into()) };
        let run = contained(self.run_pure(function, work, bytes)).instrument(self.span(function)).await;
        let (reply, acted) = run
            .map_err(|message| self.error(function, Failure::Panic { message }))?
            .map_err(|failure| self.error(function, failure))?;
        if acted && reply.answer.is_ok() {
            return Err(PureError::Contract { function, problem: "it used `outcome`".to_owned() });
        }
        Ok(reply)
    }

    /// The answer, and whether `outcome` was used.
    async fn run_pure<T>(
        &self,
        function: &'static str,
        work: impl AsyncFnOnce(&Exports, &mut Store<State>, Instance) -> wasmtime::Result<Result<T, types::Problem>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<(PureReply<T>, bool), Failure> {
        let call = Call {
            // Not used: pure functions belong to no role.
            function: Function::ClusterProvision,
            object: String::new(),
            facts: Facts { id: function.into(), attempt: 1, ..Facts::default() },
            capabilities: Capabilities::none(),
            grants: Arc::new(Grants::default()),
            seed: 0,
            recorder: None,
        };
        let mut running = self.start(function, call, Tape::Off, Waits::Virtual);
        let answer = running
            .run(self, async |store: &mut Store<State>, instance: Instance, _: &String| {
                let answer = work(&self.exports, store, instance).await?.map_err(Problem::from);
                store.data().charge_answer(answer.as_ref().map_or_else(Problem::bytes, bytes))?;
                Ok(answer)
            })
            .await?;
        let reply = PureReply { answer, stats: running.stats() };
        Ok((reply, !running.store.into_data().outcome.is_empty()))
    }
}
