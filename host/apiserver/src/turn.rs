//! What a request holds and does, within the share of whoever sent it.
//!
//! A [`Turn`] goes with each request from before its body is read until its answer is sent.
//!
//! - Memory: [`charge`] before bytes are held. Beyond the share of its sender a request is refused (429).
//! - Work: [`long`] before anything that grows with bytes. From there on the request goes on in one of a few
//!   [places](places) beside the runtime's workers, which stay free for what is short: handshakes, probes, events.
//!   While it waits (for the disk, an admitter, an event) it has no place.
//!
//! Members of `system:masters`, the host itself among them, have shares and places of their own, as upstream's priority and
//! fairness has it. What the server does for itself has no turn, and is neither counted nor moved.

mod budget;
mod places;
#[cfg(test)]
mod tests;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use crate::identity::{Identity, MASTERS};
use crate::status::{ApiError, ApiResult};
use crate::tree;
use budget::{Budget, Charge};
use places::Places;

/// Bytes that are parsed, checked and written again within a few milliseconds.
pub(crate) const SHORT: usize = 32 << 10;

/// What a request holds in any case, in bytes: head, state and buffers.
pub(crate) const REQUEST: usize = 16 << 10;

/// `Retry-After` in seconds.
const RETRY_AFTER: u32 = 1;

tokio::task_local! {
    static TURN: Arc<Turn>;
}

/// The shares and places of one server.
pub(crate) struct Turns {
    masters: Class,
    others: Class,
}

struct Class {
    budget: Arc<Budget>,
    places: Arc<Places>,
}

impl Default for Turns {
    fn default() -> Self {
        let class = |budget| Class { budget: Arc::new(budget), places: Arc::default() };
        Self { masters: class(Budget::new(256 << 20, 512 << 20)), others: class(Budget::new(64 << 20, 256 << 20)) }
    }
}

impl Turns {
    /// The turn of a request that holds `bytes` from the beginning.
    ///
    /// # Errors
    /// 429 when its sender holds as much as it may.
    pub fn begin(&self, identity: &Identity, bytes: usize) -> ApiResult<Arc<Turn>> {
        let class = if identity.is_in(MASTERS) { &self.masters } else { &self.others };
        let charge = Mutex::new(Charge::new(&class.budget, &identity.user));
        let turn = Turn {
            charge,
            places: Arc::clone(&class.places),
            user: identity.user.as_str().into(),
            away: AtomicBool::new(false),
        };
        turn.charge(bytes)?;
        Ok(Arc::new(turn))
    }
}

/// One request's. What it was charged is given back when the last handle goes.
pub(crate) struct Turn {
    charge: Mutex<Charge>,
    places: Arc<Places>,
    user: Arc<str>,
    /// Whether its work has left the runtime's workers.
    away: AtomicBool,
}

/// Wakes whoever waits to give the work its next place.
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl Turn {
    /// Charges bytes that the request is about to hold.
    ///
    /// # Errors
    /// 429 when its sender, or all senders together, would hold too much.
    pub fn charge(&self, bytes: usize) -> ApiResult<()> {
        self.charge.lock().add(bytes).map_err(|full| too_many(full.to_string()))
    }

    /// Does work of this request: on the worker that polls, and from the first [`long`] on in a place.
    ///
    /// # Errors
    /// 429 when too many requests of the same sender wait for a place, before anything that follows `long` is done; 500 when
    /// the work panicked there.
    pub async fn run<F>(self: &Arc<Self>, work: F) -> ApiResult<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.away.store(false, Ordering::Release);
        let mut work = Box::pin(TURN.scope(Arc::clone(self), work));
        let short = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.away.load(Ordering::Acquire) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        if let Some(done) = short.await {
            return Ok(done);
        }
        let line = self.places.line(&self.user).map_err(|full| too_many(full.to_string()))?;
        let woken = Arc::new(Woken(Notify::new()));
        loop {
            let place = line.place().await;
            let waker = Waker::from(Arc::clone(&woken));
            let step = tokio::task::spawn_blocking(move || {
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                drop(place);
                (work, polled)
            });
            let (rest, polled) =
                step.await.map_err(|error| ApiError::internal(format!("the request was broken off: {error}")))?;
            if let Poll::Ready(done) = polled {
                return Ok(done);
            }
            work = rest;
            woken.0.notified().await;
        }
    }
}

fn too_many(message: String) -> ApiError {
    ApiError::new(429, "TooManyRequests", message).retry_after(RETRY_AFTER)
}

/// To be awaited before work on `bytes`: where they are many, what follows is done off the runtime's workers.
pub(crate) async fn long(bytes: usize) {
    let leaves = || TURN.try_with(|turn| !turn.away.swap(true, Ordering::AcqRel)).unwrap_or(false);
    let mut left = bytes <= SHORT;
    poll_fn(|_| {
        // Once: whoever polls next does so from a place.
        if left || !leaves() {
            return Poll::Ready(());
        }
        left = true;
        Poll::Pending
    })
    .await;
}

/// Charges bytes to the request that this is work of.
///
/// # Errors
/// As [`Turn::charge`].
pub(crate) fn charge(bytes: usize) -> ApiResult<()> {
    TURN.try_with(|turn| turn.charge(bytes)).unwrap_or(Ok(()))
}

/// The turn that this is work of.
///
/// # Errors
/// 500 outside of [`Turn::run`].
pub(crate) fn current() -> ApiResult<Arc<Turn>> {
    TURN.try_with(Arc::clone).map_err(|_| ApiError::internal("a request has no turn"))
}

/// Charges a value that was read of the store, until it is dropped: the request works on it.
///
/// # Errors
/// As [`Turn::charge`].
pub(crate) fn hold(value: &Value) -> ApiResult<Held> {
    let bytes = tree::size(value);
    charge(bytes).map(|()| Held(bytes))
}

/// See [`hold`].
pub(crate) struct Held(usize);

impl Drop for Held {
    fn drop(&mut self) {
        give_back(self.0);
    }
}

/// Gives back bytes that the request no longer holds.
pub(crate) fn give_back(bytes: usize) {
    let _ = TURN.try_with(|turn| turn.charge.lock().remove(bytes));
}
