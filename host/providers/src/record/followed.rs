//! Calls of one provider for a slower reader: a queue with the ring's bounds, whose oldest calls are dropped first.

use std::sync::{Arc, Weak};

use capwasm_runtime::record::Recording;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::ring::Ring;

/// Reader of the queue; dropping it ends queueing.
pub(crate) struct Followed(Arc<Queue>);

/// Writer of the queue.
pub(super) struct Follower(Weak<Queue>);

#[derive(Default)]
struct Queue {
    calls: Mutex<Ring>,
    news: Notify,
}

pub(super) fn queue() -> (Follower, Followed) {
    let queue = Arc::new(Queue::default());
    (Follower(Arc::downgrade(&queue)), Followed(queue))
}

impl Follower {
    /// Queues a call. Returns how many calls it drops; `None` when the reader is gone.
    pub(super) fn push(&self, recording: Arc<Recording>, bytes: usize) -> Option<u64> {
        let queue = self.0.upgrade()?;
        let lost = queue.calls.lock().push(recording, bytes);
        queue.news.notify_one();
        Some(lost)
    }
}

impl Followed {
    /// The next call. Cancel-safe.
    pub(crate) async fn next(&self) -> Arc<Recording> {
        loop {
            if let Some(recording) = self.0.calls.lock().pop() {
                return recording;
            }
            self.0.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearse::testing::recording;

    #[tokio::test]
    async fn calls_are_followed_in_order_until_nobody_does() {
        let (follower, followed) = queue();
        for id in ["a", "b"] {
            assert_eq!(follower.push(Arc::new(recording(id)), 1), Some(0));
        }
        assert_eq!((followed.next().await.facts.id.as_str(), followed.next().await.facts.id.as_str()), ("a", "b"));
        let (late, ()) = tokio::join!(followed.next(), async {
            follower.push(Arc::new(recording("c")), 1);
        });
        assert_eq!(late.facts.id, "c", "one that comes while it is waited for");
        drop(followed);
        assert_eq!(follower.push(Arc::new(recording("d")), 1), None);
    }
}
