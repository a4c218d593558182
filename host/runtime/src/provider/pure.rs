//! Calls of pure functions: conversion and admission.
//!
//! They get no capability, no grant, a clock that stands at the epoch and one seed, under limits of their own: one that takes
//! long or asks for anything is a mistake, and a client waits for it.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::Store;
use wasmtime::component::Instance;

use super::{Exports, Guest, contained};
use crate::answer::Problem;
use crate::bindings::types;
use crate::call::{Call, Capabilities, Facts, Function};
use crate::failure::{CallError, Failure};
use crate::grants::Grants;
use crate::record::tape::Tape;
use crate::state::State;

/// Why a pure function gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum PureError {
    /// The call came to nothing.
    #[error(transparent)]
    Call(Box<CallError>),
    /// The provider says no.
    #[error("{0}")]
    Refused(Problem),
    /// It collected an outcome, or answered what it must not.
    #[error("the provider breaks the contract of {function}: {problem}")]
    Contract {
        /// `conversion.convert`, say.
        function: &'static str,
        /// What it did.
        problem: String,
    },
}

impl From<CallError> for PureError {
    fn from(error: CallError) -> Self {
        PureError::Call(Box::new(error))
    }
}

impl Guest {
    /// The same component under the limits of pure functions.
    pub(super) fn pure(&self) -> Guest {
        Guest { limits: self.limits.for_pure(), ..self.clone() }
    }

    /// Runs one in an instance of its own, once there is a place. `bytes` measures its answer.
    pub(super) async fn ask<T>(
        self: &Arc<Self>,
        function: &'static str,
        places: &Arc<Semaphore>,
        work: impl AsyncFnOnce(&Exports, &mut Store<State>, Instance) -> wasmtime::Result<Result<T, types::Problem>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<T, PureError> {
        let run = contained(self.run_pure(function, places, work, bytes)).await;
        let (answer, acted) = run
            .map_err(|message| self.error(function, Failure::Panic { message }))?
            .map_err(|failure| self.error(function, failure))?;
        let answer = answer.map_err(PureError::Refused)?;
        if acted {
            return Err(PureError::Contract { function, problem: "it used `outcome`".to_owned() });
        }
        Ok(answer)
    }

    /// The answer, and whether it collected an outcome.
    async fn run_pure<T>(
        &self,
        function: &'static str,
        places: &Arc<Semaphore>,
        work: impl AsyncFnOnce(&Exports, &mut Store<State>, Instance) -> wasmtime::Result<Result<T, types::Problem>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Result<(Result<T, Problem>, bool), Failure> {
        let waited = self.limits.wall_time();
        let permit = tokio::time::timeout(waited, places.clone().acquire_owned()).await;
        let Ok(Ok(_permit)) = permit else { return Err(Failure::Busy { waited }) };
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
        let mut running = self.start(function, call, Tape::Off);
        let answer = running
            .run(self, async |store: &mut Store<State>, instance: Instance, _: &String| {
                let answer = work(&self.exports, store, instance).await?.map_err(Problem::from);
                store.data_mut().outcome.charge(answer.as_ref().map_or_else(Problem::bytes, bytes))?;
                Ok(answer)
            })
            .await?;
        Ok((answer, !running.store.into_data().outcome.into_outcome().is_empty()))
    }
}
