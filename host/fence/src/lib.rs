//! Whether this process may still write.
//!
//! Of several hosts the holder of a Lease writes, for as long as the Lease lasts. A process that stood still (stopped, suspended, starved)
//! does not notice that its Lease has run out and another host has taken over. So what writes goes through a [`Fence`]: it is up for
//! a while after each renewal, and each step of a write looks at the clock first. The clock goes on while the process, or the whole
//! machine, stands still.
//!
//! ```
//! use std::time::Duration;
//! use capwasm_fence::{Fence, Term};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let fence = Fence::new(Term { duration: Duration::from_secs(5), margin: Duration::from_secs(1) });
//! assert!(fence.guard(async { "written" }).await.is_err(), "there is no Lease yet");
//! fence.renewed(fence.now());
//! assert_eq!(fence.guard(async { "written" }).await, Ok("written"));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

/// How long one renewal lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// From the renewal until another host may take the Lease.
    pub duration: Duration,
    /// Writes end this long before: for clocks that run at different speeds, and for requests that are on their way.
    pub margin: Duration,
}

impl Term {
    /// The time left for writes at `now`, when the last renewal was asked for at `renewed`: times since the boot of the machine.
    /// `None`: another host may write.
    #[must_use]
    pub fn left(self, renewed: Duration, now: Duration) -> Option<Duration> {
        let end = renewed + self.duration.saturating_sub(self.margin);
        end.checked_sub(now).filter(|left| !left.is_zero())
    }
}

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this host does not hold its Lease any more: another one may write")]
pub struct Down;

/// Time since the boot of the machine, that in suspension included.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What writes have to pass. Clones are the same one.
#[derive(Clone)]
pub struct Fence(Option<Arc<Inner>>);

struct Inner {
    term: Term,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The Lease was not held yet.
    Before,
    /// When the last renewal was asked for.
    Renewed(Duration),
    /// It is held no longer, and never again by this process.
    Lowered,
}

impl Fence {
    /// Of a process that is alone by nature, without a Lease: always up.
    #[must_use]
    pub fn none() -> Fence {
        Fence(None)
    }

    /// Down until the first renewal.
    #[must_use]
    pub fn new(term: Term) -> Fence {
        Fence::with_clock(term, boot_time)
    }

    /// As [`Fence::new`], with another clock. It must advance with tokio's or faster.
    #[must_use]
    pub fn with_clock(term: Term, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Fence {
        Fence(Some(Arc::new(Inner { term, clock: Arc::new(clock), state: Mutex::new(State::Before) })))
    }

    /// The time of its clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.as_ref().map_or_else(boot_time, |inner| (inner.clock)())
    }

    /// The Lease was renewed. `asked` is the time before the request was sent: others count from when it arrived.
    pub fn renewed(&self, asked: Duration) {
        let Some(inner) = &self.0 else { return };
        let mut state = inner.state.lock();
        *state = match *state {
            State::Lowered => State::Lowered,
            State::Renewed(before) => State::Renewed(before.max(asked)),
            State::Before => State::Renewed(asked),
        };
    }

    /// Takes it down for good: the Lease is lost, or given back.
    pub fn lower(&self) {
        if let Some(inner) = &self.0 {
            *inner.state.lock() = State::Lowered;
        }
    }

    /// The time for which writes may go on without another renewal.
    ///
    /// # Errors
    /// When nothing may be written.
    pub fn left(&self) -> Result<Duration, Down> {
        let Some(inner) = &self.0 else { return Ok(Duration::MAX) };
        match *inner.state.lock() {
            State::Renewed(asked) => inner.term.left(asked, (inner.clock)()).ok_or(Down),
            State::Before | State::Lowered => Err(Down),
        }
    }

    /// Waits until nothing may be written.
    pub async fn fallen(&self) {
        if self.0.is_none() {
            return std::future::pending().await;
        }
        while let Ok(left) = self.left() {
            tokio::time::sleep(left).await;
        }
    }

    /// Carries out a write while nobody else may. Every step looks at the clock first, because the process may have stood still since
    /// the one before; a write that is not through when the fence falls is dropped.
    ///
    /// # Errors
    /// When the fence is down, or falls.
    pub async fn guard<T>(&self, write: impl Future<Output = T>) -> Result<T, Down> {
        let (mut write, mut fallen) = (pin!(write), pin!(self.fallen()));
        poll_fn(|context| {
            if self.left().is_err() || fallen.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Down));
            }
            write.as_mut().poll(context).map(Ok)
        })
        .await
    }
}

/// Runs the connections of a client whose requests are guarded, while the fence is up.
///
/// A request is handed to the task of its connection, which [`Fence::guard`] does not see. Where the process stands still between the
/// two, that task goes no further either: it ends, and its connection with it.
impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Fence {
    fn execute(&self, task: F) {
        let (fence, mut task) = (self.clone(), Box::pin(task));
        tokio::spawn(poll_fn(move |context| match fence.left() {
            Ok(_) => task.as_mut().poll(context),
            Err(Down) => Poll::Ready(()),
        }));
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.as_ref().map(|inner| *inner.state.lock());
        f.debug_tuple("Fence").field(&state).finish()
    }
}

/// Linux' clock that no suspension stops; elsewhere the monotonic one, which is that on macOS.
fn boot_time() -> Duration {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests;
