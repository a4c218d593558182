//! WASI 0.2 with nothing behind it, because the standard libraries of guest languages import it: no files, no sockets, no
//! environment, no arguments. Clocks and random numbers follow from the call; stdout and stderr go to the log.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx};

use crate::capability::log::{GuestLog, Stream};

/// Random bytes of one WASI call at most.
const RANDOM_BYTES: u64 = 1 << 16;

pub(crate) fn context(now_ms: u64, seed: u64, log: &Arc<GuestLog>) -> WasiCtx {
    let rng = StdRng::seed_from_u64(seed);
    // The insecure source has another stream than the secure one, as in any other host.
    let insecure = StdRng::seed_from_u64(seed ^ 0x9e37_79b9_7f4a_7c15);
    WasiCtx::builder()
        .wall_clock(StandingClock(Duration::from_millis(now_ms)))
        .monotonic_clock(SteppingClock::default())
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

/// Advances by [`STEP_NS`] per read, from zero.
#[derive(Default)]
struct SteppingClock(AtomicU64);

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
