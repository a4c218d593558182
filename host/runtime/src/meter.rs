//! Clocks of a call: CPU time, counted while its task is polled, and wall time, which stops while the call waits for an
//! endpoint with a timeout of its own.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    pub(crate) cpu: Arc<CpuMeter>,
    pub(crate) wall: Arc<WallClock>,
}

/// CPU time of one call. Epoch ticks check [`CpuMeter::exhausted`]; counting ticks instead would charge a guest for
/// other processes on a busy machine, and a tick for each short wait.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    limit: Duration,
    /// Of finished polls, in nanoseconds.
    spent: AtomicU64,
    /// The part of `spent` within [`CpuMeter::outside`].
    outside: AtomicU64,
    /// The thread's CPU time at the begin of the current poll, in nanoseconds. A task is polled by one thread at a
    /// time.
    began: AtomicU64,
}

fn thread_time() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    // A thread's CPU time is never negative, and 584 years fit.
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

impl CpuMeter {
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        Arc::new(CpuMeter { limit, spent: AtomicU64::new(0), outside: AtomicU64::new(0), began: AtomicU64::new(0) })
    }

    /// Counts the CPU time of a future's polls.
    pub(crate) async fn measure<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            self.began.store(thread_time(), Ordering::Relaxed);
            let poll = future.as_mut().poll(context);
            self.spent.fetch_add(self.current_poll(), Ordering::Relaxed);
            poll
        })
        .await
    }

    /// Within [`CpuMeter::measure`]: counts the CPU time of a future's polls as outside of the provider. It still
    /// counts against the limit.
    pub(crate) async fn outside<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            let began = thread_time();
            let poll = future.as_mut().poll(context);
            self.outside.fetch_add(thread_time().saturating_sub(began), Ordering::Relaxed);
            poll
        })
        .await
    }

    fn current_poll(&self) -> u64 {
        thread_time().saturating_sub(self.began.load(Ordering::Relaxed))
    }

    /// To be read after the last poll.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// The part of [`CpuMeter::spent`] outside of the provider.
    pub(crate) fn spent_outside(&self) -> Duration {
        Duration::from_nanos(self.outside.load(Ordering::Relaxed))
    }

    /// Whether the budget is used up; called within a poll.
    pub(crate) fn exhausted(&self) -> bool {
        self.spent() + Duration::from_nanos(self.current_poll()) > self.limit
    }
}

/// Wall time of one call: its deadline, or `None` while stopped.
#[derive(Debug)]
pub(crate) struct WallClock {
    deadline: watch::Sender<Option<Instant>>,
}

impl WallClock {
    pub(crate) fn start(limit: Duration) -> Arc<Self> {
        Arc::new(WallClock { deadline: watch::Sender::new(Some(Instant::now() + limit)) })
    }

    /// Resolves at the deadline.
    pub(crate) async fn passed(&self) {
        let mut changes = self.deadline.subscribe();
        loop {
            let deadline = *changes.borrow_and_update();
            // `changed` fails only without a sender, and `self` has one.
            match deadline {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => return,
                    _ = changes.changed() => {}
                },
                None => {
                    let _ = changes.changed().await;
                }
            }
        }
    }

    /// Stops the clock until the guard is dropped. Not reentrant: an instance makes one host call at a time.
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        let deadline = self.deadline.send_replace(None);
        Held { clock: self.clone(), deadline, since: Instant::now() }
    }
}

/// Guard of a stopped clock.
#[derive(Debug)]
pub(crate) struct Held {
    clock: Arc<WallClock>,
    deadline: Option<Instant>,
    since: Instant,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clock.deadline.send_replace(self.deadline.map(|at| at + self.since.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn waiting_costs_no_cpu_time() {
        let meter = CpuMeter::new(Duration::from_millis(500));
        meter
            .measure(async {
                tokio::time::sleep(Duration::from_millis(30)).await;
                assert!(!meter.exhausted());
            })
            .await;
        assert!(meter.spent() < Duration::from_millis(20), "{:?}", meter.spent());
    }

    #[tokio::test]
    async fn work_is_charged_across_polls() {
        let meter = CpuMeter::new(Duration::from_millis(5));
        meter
            .measure(async {
                while !meter.exhausted() {
                    std::hint::black_box((0..1000).sum::<u64>());
                    tokio::task::yield_now().await;
                }
            })
            .await;
        assert!(meter.spent() >= Duration::from_millis(5));
    }

    #[tokio::test]
    async fn what_others_take_is_told_apart() {
        fn work(meter: &CpuMeter, until: Duration) {
            while meter.spent() + Duration::from_nanos(meter.current_poll()) < until {
                std::hint::black_box((0..1000).sum::<u64>());
            }
        }
        let meter = CpuMeter::new(Duration::from_secs(1));
        meter
            .measure(async {
                work(&meter, Duration::from_millis(2));
                meter.outside(async { work(&meter, Duration::from_millis(6)) }).await;
            })
            .await;
        let (all, outside) = (meter.spent(), meter.spent_outside());
        assert!(all >= Duration::from_millis(6), "{all:?}");
        assert!(outside > Duration::ZERO && all - outside >= Duration::from_millis(2), "{all:?}, {outside:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_stands_still_while_it_is_held() {
        let wall = WallClock::start(Duration::from_secs(10));
        let started = Instant::now();
        let held = wall.hold();
        let wait = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(held);
        };
        let ((), ()) = tokio::join!(wait, wall.passed());
        assert_eq!(started.elapsed(), Duration::from_secs(70));
    }
}
