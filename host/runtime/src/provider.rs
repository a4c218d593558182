//! A loaded provider and its calls.

mod admission;
mod conversion;
mod pure;
mod recorded;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use capwasm_contract::descriptor::{Descriptor, Role};
use capwasm_contract::{Answer, Facts, Failure, Function, Problem};
use futures::FutureExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, UpdateDeadline};

pub use self::pure::{PureError, PureReply};
use crate::bindings::exports::{
    admission as admit, bootstrap, control_plane, controller, conversion as convert, descriptor,
    infrastructure_cluster, infrastructure_machine, infrastructure_machine_pool,
};
use crate::bindings::types;
use crate::budget::{Budget, Limit};
use crate::call::Call;
use crate::capability::log::GuestLog;
use crate::engine::Running;
use crate::failure::{CallError, Stop, classify};
use crate::limits::Limits;
use crate::load::Pure;
use crate::meter::{Clocks, CpuMeter, WallClock};
use crate::places::Share;
use crate::record::tape::Tape;
use crate::reply::{CallStats, Reply};
use crate::runtime::Shared;
use crate::state::State;
use crate::wasi::Waits;

/// A loaded component: immutable and shared.
pub struct Provider {
    guest: Arc<Guest>,
    /// The component under the limits of pure functions: conversion and admission.
    pure: Arc<Guest>,
    descriptor: Descriptor,
    roles: Vec<Role>,
    imports: Vec<String>,
    size: usize,
    slots: Arc<Semaphore>,
    conversions: Share,
    admissions: Share,
}

/// The prepared component: everything that calls have in common.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) shared: Arc<Shared>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
    pub(crate) name: String,
    /// `sha256:<hex>` of the component.
    pub(crate) digest: String,
    pub(crate) limits: Limits,
}

/// Indices of the exported functions.
#[derive(Clone)]
pub(crate) struct Exports {
    pub(crate) descriptor: descriptor::GuestIndices,
    pub(crate) cluster: Option<infrastructure_cluster::GuestIndices>,
    pub(crate) machine: Option<infrastructure_machine::GuestIndices>,
    pub(crate) pool: Option<infrastructure_machine_pool::GuestIndices>,
    pub(crate) bootstrap: Option<bootstrap::GuestIndices>,
    pub(crate) control_plane: Option<control_plane::GuestIndices>,
    pub(crate) controller: Option<controller::GuestIndices>,
    pub(crate) conversion: Option<convert::GuestIndices>,
    pub(crate) admission: Option<admit::GuestIndices>,
}

impl Exports {
    pub(crate) fn roles(&self) -> Vec<Role> {
        let roles = [
            (self.cluster.is_some(), Role::InfrastructureCluster),
            (self.machine.is_some(), Role::InfrastructureMachine),
            (self.pool.is_some(), Role::InfrastructureMachinePool),
            (self.bootstrap.is_some(), Role::Bootstrap),
            (self.control_plane.is_some(), Role::ControlPlane),
            (self.controller.is_some(), Role::Controller),
        ];
        roles.into_iter().filter_map(|(exported, role)| exported.then_some(role)).collect()
    }

    pub(crate) fn pure(&self) -> Pure {
        Pure { conversion: self.conversion.is_some(), admission: self.admission.is_some() }
    }
}

impl Provider {
    pub(crate) fn new(guest: Guest, descriptor: Descriptor, imports: Vec<String>, size: usize) -> Self {
        let slots = Arc::new(Semaphore::new(guest.limits.concurrency.max(1) as usize));
        let roles = guest.exports.roles();
        let pure = Arc::new(guest.pure());
        let (conversions, admissions) =
            (guest.shared.conversions.share(&guest.name), guest.shared.admissions.share(&guest.name));
        Provider { guest: Arc::new(guest), pure, descriptor, roles, imports, size, slots, conversions, admissions }
    }

    /// `sha256:<hex>` of the component.
    pub fn digest(&self) -> &str {
        &self.guest.digest
    }

    /// Answer of `describe()`.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Exported roles.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// Imported interfaces, as the component names them.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Size of the component in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Limits of its calls.
    pub fn limits(&self) -> &Limits {
        &self.guest.limits
    }

    /// Waits for a slot, at most as long as a call may take, and runs the call in a fresh instance. Dropping the future
    /// stops the call.
    pub async fn call(&self, call: Call) -> Result<Reply, CallError> {
        let function = call.function;
        let fail = |failure| self.guest.error(function.name(), failure);
        if !self.roles.contains(&function.role()) {
            return Err(fail(Failure::NotExported));
        }
        let permits = self.slots().await.map_err(fail)?;
        let _permits = permits;
        let span = self.guest.span(function.name());
        let recording = self.recording_of(&call);
        let tape = if recording.is_some() { Tape::recording() } else { Tape::Off };
        let run = contained(self.guest.clone().run(call, tape)).instrument(span).await;
        let finished = run.map_err(|message| fail(Failure::Panic { message }))?;
        match recording {
            Some(recording) => recording.hand_over(finished),
            None => finished.result,
        }
        .map_err(fail)
    }

    /// A slot of this provider, and one of the pool.
    async fn slots(&self) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), Failure> {
        let waited = self.guest.limits.wall_time();
        let both = async {
            // Own first: a provider that waits for itself must not hold places that others could use.
            let own = self.slots.clone().acquire_owned().await;
            let shared = self.guest.shared.slots.clone().acquire_owned().await;
            // Neither semaphore is ever closed.
            own.and_then(|own| Ok((own, shared?)))
        };
        match tokio::time::timeout(waited, both).await {
            Ok(Ok(permits)) => Ok(permits),
            Ok(Err(_)) | Err(_) => Err(Failure::Busy { waited }),
        }
    }
}

impl Guest {
    fn span(&self, function: &str) -> tracing::Span {
        tracing::info_span!("call", provider = self.name, digest = short(&self.digest), function)
    }

    fn error(&self, function: &str, failure: Failure) -> CallError {
        CallError {
            provider: self.name.clone(),
            digest: short(&self.digest).to_owned(),
            function: function.to_owned(),
            failure,
        }
    }

    /// Calls `describe()` without capabilities and under tight limits.
    pub(crate) async fn describe(self: Arc<Self>, call: Call) -> Result<Described, CallError> {
        const NAME: &str = "descriptor.describe";
        let fail = |failure| self.error(NAME, failure);
        let permit = self.shared.slots.clone().acquire_owned().await;
        let _permit = permit.map_err(|_| fail(Failure::Busy { waited: self.limits.wall_time() }))?;
        let guest = self.clone();
        let described = async move {
            let mut running = guest.start(NAME, call, Tape::Off, Waits::Virtual);
            let exports = guest.exports.clone();
            running
                .run(&guest, async |store: &mut Store<State>, instance: Instance, _: &String| {
                    if let Err(error) = exports.fit(store, &instance) {
                        return Ok(Err(format!("{error:#}")));
                    }
                    exports.descriptor.load(&mut *store, &instance)?.call_describe(&mut *store).await.map(Ok)
                })
                .await
                .map(|text| Described { text, acted: !running.store.into_data().outcome.is_empty() })
        };
        contained(described).await.map_err(|message| fail(Failure::Panic { message }))?.map_err(fail)
    }

    async fn run(self: Arc<Self>, call: Call, tape: Tape) -> Finished {
        let function = call.function;
        let mut running = self.start(function.name(), call, tape, Waits::RealTime);
        let exports = self.exports.clone();
        let answer = running
            .run(&self, async |store: &mut Store<State>, instance: Instance, object: &String| {
                let answer = exports.dispatch(function, store, &instance, object).await?;
                store.data().charge_answer(answer.as_ref().map_or_else(Problem::bytes, Answer::bytes))?;
                Ok(answer)
            })
            .await;
        running.finish(answer)
    }

    /// A metered and limited store for one call, without instance.
    fn start(&self, function: &str, mut call: Call, tape: Tape, waits: Waits) -> OneCall {
        let limits = &self.limits;
        let ticking = self.shared.ticker.running();
        let meter = CpuMeter::new(limits.cpu_time());
        let wall = WallClock::start(limits.wall_time());
        // What a replayed call says is no news of the object that it names.
        let name =
            if matches!(tape, Tape::Playing(_)) { format!("{} (replayed)", self.name) } else { self.name.clone() };
        let budget = Arc::new(Budget::new(limits));
        let log = Arc::new(GuestLog::new(&name, function, &call.facts.id, budget));
        let object = Arc::new(std::mem::take(&mut call.object));
        let clocks = Clocks { cpu: meter.clone(), wall: wall.clone() };
        let state = State::new(call, object.clone(), limits, log, clocks, tape, waits);
        let mut store = Store::new(&self.shared.engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(usize::try_from(limits.result_bytes.max(MIN_FUEL)).unwrap_or(usize::MAX));
        store.set_epoch_deadline(1);
        let ticks = meter.clone();
        store.epoch_deadline_callback(move |_| {
            if ticks.exhausted() {
                return Err(Stop::Cpu.into());
            }
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        OneCall { store, object, meter, wall, started: Instant::now(), _ticking: ticking }
    }
}

/// Fuel that each host call has whatever `limits.resultBytes` says: an HTTP request has to fit.
const MIN_FUEL: u64 = 1 << 20;

struct OneCall {
    store: Store<State>,
    object: Arc<String>,
    meter: Arc<CpuMeter>,
    wall: Arc<WallClock>,
    started: Instant,
    _ticking: Running,
}

impl OneCall {
    /// Instantiates the component and runs `work`, under both clocks.
    async fn run<T>(
        &mut self,
        guest: &Guest,
        work: impl AsyncFnOnce(&mut Store<State>, Instance, &String) -> wasmtime::Result<T>,
    ) -> Result<T, Failure> {
        let (store, object) = (&mut self.store, &self.object);
        let call = async {
            let instance = guest.pre.instantiate_async(&mut *store).await.map_err(Broken::Instantiate)?;
            work(store, instance, object).await.map_err(Broken::Call)
        };
        let result = tokio::select! {
            biased;
            result = self.meter.measure(call) => result,
            () = self.wall.passed() => return Err(Failure::Wall { limit: guest.limits.wall_time() }),
        };
        result.map_err(|broken| {
            let (Broken::Instantiate(error) | Broken::Call(error)) = &broken;
            let failure = classify(error, &guest.limits, self.store.data().log.stderr());
            match (broken, failure) {
                // Without a frame of the guest it was the host that could not.
                (Broken::Instantiate(error), Failure::Trap { backtrace, .. }) if backtrace.is_empty() => {
                    Failure::Instantiate { message: format!("{error:#}") }
                }
                (_, failure) => failure,
            }
        })
    }

    fn stats(&self) -> CallStats {
        let (state, outside) = (self.store.data(), self.meter.spent_outside());
        CallStats {
            duration: self.started.elapsed(),
            cpu: self.meter.spent().saturating_sub(outside),
            cpu_outside: outside,
            peak_memory: state.memory.peak(),
            result_bytes: usize::try_from(state.budget.used(Limit::Result)).unwrap_or(usize::MAX),
        }
    }

    fn finish(self, answer: Result<Result<Answer, Problem>, Failure>) -> Finished {
        let stats = self.stats();
        let State { outcome, facts, tape, .. } = self.store.into_data();
        let result = answer.map(|answer| Reply { answer, outcome, stats });
        Finished { result, object: self.object, facts, tape }
    }
}

struct Finished {
    result: Result<Reply, Failure>,
    object: Arc<String>,
    facts: Facts,
    tape: Tape,
}

enum Broken {
    Instantiate(wasmtime::Error),
    Call(wasmtime::Error),
}

/// Result of `describe()`.
pub(crate) struct Described {
    /// The answer, or which export does not fit the contract: types of exported functions are only known of an
    /// instance.
    pub(crate) text: Result<String, String>,
    /// Whether it used the capability `outcome`.
    pub(crate) acted: bool,
}

impl Exports {
    /// Checks that every exported function has the contract's type.
    fn fit(&self, mut store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<()> {
        self.descriptor.load(&mut store, instance)?;
        self.cluster.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.machine.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.pool.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.bootstrap.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.conversion.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.admission.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.control_plane.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        self.controller.as_ref().map(|indices| indices.load(&mut store, instance)).transpose()?;
        Ok(())
    }

    async fn dispatch(
        &self,
        function: Function,
        store: &mut Store<State>,
        instance: &Instance,
        object: &String,
    ) -> wasmtime::Result<Result<Answer, Problem>> {
        fn answer<T: Into<Answer>>(result: Result<T, types::Problem>) -> Result<Answer, Problem> {
            result.map(Into::into).map_err(Into::into)
        }
        fn gone(result: Result<bool, types::Problem>) -> Result<Answer, Problem> {
            result.map(Answer::Gone).map_err(Into::into)
        }
        // `Provider::call` looked at the roles before.
        let missing = || wasmtime::format_err!("{function} is not exported");
        let mut store = store;
        Ok(match function {
            Function::ClusterProvision => {
                let guest = self.cluster.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                answer(guest.call_provision(&mut store, object).await?)
            }
            Function::ClusterDeprovision => {
                let guest = self.cluster.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                gone(guest.call_deprovision(&mut store, object).await?)
            }
            Function::MachineProvision => {
                let guest = self.machine.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                answer(guest.call_provision(&mut store, object).await?)
            }
            Function::MachineDeprovision => {
                let guest = self.machine.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                gone(guest.call_deprovision(&mut store, object).await?)
            }
            Function::PoolProvision => {
                let guest = self.pool.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                answer(guest.call_provision(&mut store, object).await?)
            }
            Function::PoolDeprovision => {
                let guest = self.pool.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                gone(guest.call_deprovision(&mut store, object).await?)
            }
            Function::BootstrapGenerate => {
                let guest = self.bootstrap.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                let generated = guest.call_generate(&mut store, object).await?;
                generated.map(|data| Answer::Bootstrap(data.map(Into::into))).map_err(Into::into)
            }
            Function::BootstrapRelease => {
                let guest = self.bootstrap.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                gone(guest.call_release(&mut store, object).await?)
            }
            Function::ControlPlaneReconcile => {
                let guest = self.control_plane.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                answer(guest.call_reconcile(&mut store, object).await?)
            }
            Function::ControlPlaneDelete => {
                let guest = self.control_plane.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                gone(guest.call_delete(&mut store, object).await?)
            }
            Function::ControllerReconcile => {
                let guest = self.controller.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                let reconciled = guest.call_reconcile(&mut store, object).await?;
                reconciled.map(|()| Answer::Reconciled).map_err(Into::into)
            }
            Function::ControllerDelete => {
                let guest = self.controller.as_ref().ok_or_else(missing)?.load(&mut store, instance)?;
                gone(guest.call_delete(&mut store, object).await?)
            }
        })
    }
}

/// First 12 hex digits of a digest.
fn short(digest: &str) -> &str {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    hex.get(..12).unwrap_or(hex)
}

/// Turns a panic of a call into its message. The store, which may be inconsistent, is dropped with the call. (A task
/// would contain panics as well, for two more hops between threads, which cost as much as the whole call.)
async fn contained<T>(call: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(call).catch_unwind().await.map_err(|panic| panic_text(&*panic))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
