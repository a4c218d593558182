//! The calls that were made, for tests that count them.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use capwasm_sim_service::faults::fits;

/// A call that was answered, or whose answer was withheld on request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// In upper case: `POST`.
    pub method: String,
    /// Path with the service's part and without the query: `/networking/v2.0/ports`.
    pub path: String,
    /// Query without its question mark.
    pub query: String,
    /// Status code; 0 when the connection was closed instead.
    pub status: u16,
}

impl Call {
    /// Whether method and path fit; `*` stands for any text, an empty text for anything.
    pub fn fits(&self, method: &str, path: &str) -> bool {
        (method.is_empty() || self.method.eq_ignore_ascii_case(method)) && (path.is_empty() || fits(path, &self.path))
    }
}

/// All calls in the order in which they took effect. Cheap to clone. Calls of `/capwasm` are not among them.
#[derive(Debug, Clone)]
pub struct Journal {
    calls: Arc<Mutex<Vec<Call>>>,
    length: Arc<watch::Sender<usize>>,
}

impl Default for Journal {
    fn default() -> Journal {
        Journal { calls: Arc::default(), length: Arc::new(watch::Sender::new(0)) }
    }
}

impl Journal {
    /// All calls, the oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// How many calls there were.
    pub fn len(&self) -> usize {
        self.calls.lock().len()
    }

    /// Whether nothing was called.
    pub fn is_empty(&self) -> bool {
        self.calls.lock().is_empty()
    }

    /// How many calls fit, as [`Call::fits`] has it.
    pub fn count(&self, method: &str, path: &str) -> usize {
        self.calls.lock().iter().filter(|call| call.fits(method, path)).count()
    }

    /// Forgets all calls.
    pub fn clear(&self) {
        self.calls.lock().clear();
        self.length.send_replace(0);
    }

    /// Waits until there are that many calls.
    pub async fn reached(&self, calls: usize) {
        // The sender lives in this journal: the wait cannot fail.
        let _ = self.length.subscribe().wait_for(|length| *length >= calls).await;
    }

    pub(super) fn add(&self, call: Call) {
        let length = {
            let mut calls = self.calls.lock();
            calls.push(call);
            calls.len()
        };
        self.length.send_replace(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_are_counted_by_pattern_and_waited_for() {
        let journal = Journal::default();
        let waiting = tokio::spawn({
            let journal = journal.clone();
            async move { journal.reached(2).await }
        });
        for (method, path) in [("GET", "/networking/v2.0/ports"), ("POST", "/networking/v2.0/ports")] {
            journal.add(Call { method: method.into(), path: path.into(), query: String::new(), status: 200 });
        }
        assert!(waiting.await.is_ok());
        assert_eq!(journal.count("post", "*/ports"), 1);
        assert_eq!(journal.count("", "/networking/*"), 2);
        journal.clear();
        assert!(journal.is_empty());
    }
}
