//! WASI 0.2 with nothing behind it, because the standard libraries of guest languages import it: no files, no sockets, no
//! environment, no arguments. Clocks and random numbers follow from the call; stdout and stderr go to the log. Pure functions wait for
//! no clock in real time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::io::AsyncWrite;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::clocks::WasiClocksCtxView;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, OutputStream, Pollable, StreamResult, subscribe};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

use crate::capability::log::{GuestLog, Stream};
use crate::state::State;

/// Random bytes of one WASI call at most.
const RANDOM_BYTES: u64 = 1 << 16;

pub(crate) fn context(now_ms: u64, seed: u64, clock: SteppingClock, log: &Arc<GuestLog>) -> WasiCtx {
    let rng = StdRng::seed_from_u64(seed);
    // The insecure source has another stream than the secure one, as in any other host.
    let insecure = StdRng::seed_from_u64(seed ^ 0x9e37_79b9_7f4a_7c15);
    WasiCtx::builder()
        .wall_clock(StandingClock(Duration::from_millis(now_ms)))
        .monotonic_clock(clock)
        .secure_random(rng)
        .insecure_random(insecure)
        .insecure_random_seed(u128::from(seed))
        .max_random_size(RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .stdout(LogStream { log: log.clone(), stream: Stream::Stdout })
        .stderr(LogStream { log: log.clone(), stream: Stream::Stderr })
        .build()
}

/// Always at the call's `now-ms`.
struct StandingClock(Duration);

impl HostWallClock for StandingClock {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

/// Advances by [`STEP_NS`] per read, from zero. Clones are the same clock.
#[derive(Clone, Default)]
pub(crate) struct SteppingClock(Arc<AtomicU64>);

/// A microsecond: measured durations are positive and reproducible.
const STEP_NS: u64 = 1_000;

impl HostMonotonicClock for SteppingClock {
    fn resolution(&self) -> u64 {
        STEP_NS
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(STEP_NS, Ordering::Relaxed)
    }
}

/// How a guest waits for its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// As long as it says, within its wall time.
    RealTime,
    /// Not at all: the clock is put forward to the time that it waits for. Others wait for the answers of such functions, which know of
    /// nothing that could happen meanwhile.
    Virtual,
}

/// `wasi:clocks/monotonic-clock` of one call.
pub(crate) struct MonotonicView<'a> {
    real: WasiClocksCtxView<'a>,
    /// The clock to put forward, for virtual time.
    clock: Option<SteppingClock>,
}

/// Replaces the monotonic clock of `wasmtime_wasi`, all of whose pollables wait in real time.
pub(crate) fn add_clock_to_linker(
    linker: &mut Linker<State>,
    view: fn(&mut State) -> MonotonicView<'_>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<State, MonotonicClock>(linker, view)?;
    linker.allow_shadowing(false);
    Ok(())
}

struct MonotonicClock;

impl HasData for MonotonicClock {
    type Data<'a> = MonotonicView<'a>;
}

impl<'a> MonotonicView<'a> {
    pub(crate) fn new(real: WasiClocksCtxView<'a>, clock: &SteppingClock, waits: Waits) -> Self {
        MonotonicView { real, clock: (waits == Waits::Virtual).then(|| clock.clone()) }
    }
}

impl monotonic_clock::Host for MonotonicView<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.real.now()
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        self.real.resolution()
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let Some(clock) = &self.clock else { return self.real.subscribe_instant(when) };
        let skip = self.real.table.push(Skip { clock: clock.clone(), to: when })?;
        subscribe(self.real.table, skip)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let Some(clock) = &self.clock else { return self.real.subscribe_duration(duration) };
        let to = clock.0.load(Ordering::Relaxed).saturating_add(duration);
        self.subscribe_instant(to)
    }
}

/// A time that has come as soon as somebody waits for it.
struct Skip {
    clock: SteppingClock,
    /// In nanoseconds of the clock.
    to: u64,
}

#[async_trait::async_trait]
impl Pollable for Skip {
    async fn ready(&mut self) {
        self.clock.0.fetch_max(self.to, Ordering::Relaxed);
    }
}

#[derive(Clone)]
struct LogStream {
    log: Arc<GuestLog>,
    stream: Stream,
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl Pollable for LogStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LogStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log.output(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

impl AsyncWrite for LogStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.log.output(self.stream, bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
