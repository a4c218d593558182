//! State of one call in its store. Each capability borrows only its own part.

use std::sync::Arc;

use capwasm_contract::{Facts, Outcome};
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Result};
use wasmtime_wasi::clocks::WasiClocksView;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::bindings::types;
use crate::budget::{Budget, Limit};
use crate::call::{Call, Capabilities};
use crate::capability::log::GuestLog;
use crate::capability::scope::Scope;
use crate::capability::secrets::Opened;
use crate::capability::{call, etcd, http, log, lookup, outcome, pki, secrets, workload};
use crate::external;
use crate::failure::Stop;
use crate::grants::Grants;
use crate::limits::{Limits, MemoryLimit};
use crate::meter::Clocks;
use crate::record::tape::Tape;
use crate::wasi::{self, MonotonicView, SteppingClock, Waits};

/// Resource handles of a guest at most.
const HANDLES: usize = 1_000;

pub(crate) struct State {
    pub(crate) memory: MemoryLimit,
    pub(crate) outcome: Outcome,
    pub(crate) log: Arc<GuestLog>,
    wasi: WasiCtx,
    monotonic: SteppingClock,
    waits: Waits,
    table: ResourceTable,
    opened: Opened,
    pub(crate) facts: Facts,
    pub(crate) tape: Tape,
    capabilities: Capabilities,
    grants: Arc<Grants>,
    scope: Scope,
    clocks: Clocks,
    pub(crate) budget: Arc<Budget>,
}

impl State {
    pub(crate) fn new(
        call: Call,
        object: Arc<String>,
        limits: &Limits,
        log: Arc<GuestLog>,
        clocks: Clocks,
        tape: Tape,
        waits: Waits,
    ) -> Self {
        let monotonic = SteppingClock::default();
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        State {
            memory: MemoryLimit::new(limits.memory_bytes),
            outcome: Outcome::default(),
            wasi: wasi::context(call.facts.now_ms, call.seed, monotonic.clone(), &log),
            monotonic,
            waits,
            budget: log.budget.clone(),
            log,
            table,
            opened: Opened::default(),
            scope: Scope::new(object, call.grants.clone()),
            facts: call.facts,
            tape,
            capabilities: external::metered(call.capabilities, &clocks.cpu),
            grants: call.grants,
            clocks,
        }
    }

    /// Charges bytes of an answer.
    pub(crate) fn charge_answer(&self, bytes: usize) -> Result<(), Stop> {
        Ok(self.budget.charge(Limit::Result, bytes)?)
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl types::Host for State {}

/// A linker with all imports that a provider may have.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasi::add_clock_to_linker(&mut linker, |state: &mut State| {
        let (clock, waits) = (state.monotonic.clone(), state.waits);
        MonotonicView::new(WasiClocksView::clocks(state), &clock, waits)
    })?;
    types::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
    call::add_to_linker(&mut linker, |state: &mut State| call::CallView { facts: &state.facts })?;
    outcome::add_to_linker(&mut linker, |state: &mut State| outcome::OutcomeView {
        outcome: &mut state.outcome,
        budget: &state.budget,
        scope: &state.scope,
    })?;
    lookup::add_to_linker(&mut linker, |state: &mut State| lookup::LookupView {
        source: &*state.capabilities.lookup,
        scope: &state.scope,
        budget: &state.budget,
        tape: &mut state.tape,
    })?;
    workload::add_to_linker(&mut linker, |state: &mut State| workload::WorkloadView {
        source: &*state.capabilities.workload,
        certificates: &*state.capabilities.certificates,
        grants: &state.grants,
        budget: &state.budget,
        tape: &mut state.tape,
    })?;
    etcd::add_to_linker(&mut linker, |state: &mut State| etcd::EtcdView {
        source: &*state.capabilities.etcd,
        granted: state.grants.etcd,
        budget: &state.budget,
        tape: &mut state.tape,
    })?;
    secrets::add_to_linker(&mut linker, |state: &mut State| secrets::SecretsView {
        source: &*state.capabilities.secrets,
        scope: &state.scope,
        table: &mut state.table,
        opened: &mut state.opened,
        budget: &state.budget,
        tape: &mut state.tape,
    })?;
    http::add_to_linker(&mut linker, |state: &mut State| http::HttpView {
        client: &state.capabilities.http,
        table: &mut state.table,
        clocks: &state.clocks,
        budget: &state.budget,
        tape: &mut state.tape,
    })?;
    pki::add_to_linker(&mut linker, |state: &mut State| pki::PkiView {
        granted: state.grants.pki,
        now_ms: state.facts.now_ms,
        budget: &state.budget,
        tape: &mut state.tape,
    })?;
    log::add_to_linker(&mut linker, |state: &mut State| log::LogView { log: &state.log })?;
    Ok(linker)
}
