//! What the controllers of all clusters do now and then, in one task of the process: signing `cluster-info` for bootstrap
//! tokens, and noticing nodes that went silent. Nothing is kept per cluster but what is due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Workloads;
use crate::kubeadm::cluster_info;
use crate::kubelet::lifecycle;

/// A token is signed this long after its request was seen, and once more: its Secret may not have been written by the first time.
const SIGN: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
/// A Lease may be this old although its node is well: the time between two heartbeats, and some.
const BEAT: Duration = Duration::from_secs(12);

/// Something to do for a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Chore {
    /// Sign for the tokens, by the number of the try.
    Sign(u8),
    /// Look for nodes that are silent.
    Scan,
    /// This node was heard last when this was written down.
    Notice(String),
}

/// What is due and when, by cluster.
pub struct Chores {
    grace: Duration,
    due: Mutex<BTreeMap<(String, Chore), Instant>>,
    wake: Notify,
}

impl Chores {
    /// Nothing to do. A silent node counts as gone after `grace`.
    pub fn new(grace: Duration) -> Chores {
        Chores { grace, due: Mutex::default(), wake: Notify::new() }
    }

    /// How long a node may be silent.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    fn schedule(&self, keyspace: &str, chore: Chore, after: Duration) {
        let at = Instant::now() + after;
        self.due.lock().entry((keyspace.to_owned(), chore)).and_modify(|due| *due = (*due).min(at)).or_insert(at);
        self.wake.notify_one();
    }

    /// Signs `cluster-info` anew soon, because tokens may have changed.
    pub fn sign_soon(&self, keyspace: &str) {
        for (number, after) in (0..).zip(SIGN) {
            self.schedule(keyspace, Chore::Sign(number), after);
        }
    }

    /// Nodes may have gone silent while nobody could be told.
    pub fn scan_later(&self, keyspace: &str) {
        self.schedule(keyspace, Chore::Scan, self.grace + BEAT);
    }

    /// Notices after the grace period that a node went silent.
    pub fn miss(&self, keyspace: &str, node: &str) {
        self.schedule(keyspace, Chore::Notice(node.to_owned()), self.grace);
    }

    /// A node is heard again.
    pub fn heard(&self, keyspace: &str, node: &str) {
        self.due.lock().remove(&(keyspace.to_owned(), Chore::Notice(node.to_owned())));
    }

    /// Drops the chores of a cluster that is gone.
    pub fn forget(&self, keyspace: &str) {
        self.due.lock().retain(|(of, _), _| of != keyspace);
    }

    /// Takes what is due; otherwise says when something will be.
    fn take(&self) -> Result<Vec<(String, Chore)>, Option<Instant>> {
        let now = Instant::now();
        let mut due = self.due.lock();
        let ready: Vec<(String, Chore)> =
            due.iter().filter(|(_, at)| **at <= now).map(|(key, _)| key.clone()).collect();
        for key in &ready {
            due.remove(key);
        }
        if ready.is_empty() { Err(due.values().min().copied()) } else { Ok(ready) }
    }
}

/// Does the chores of all clusters until cancelled.
pub async fn run(workloads: Arc<Workloads>, stop: CancellationToken) {
    let chores = Arc::clone(workloads.chores());
    loop {
        match chores.take() {
            Ok(ready) => {
                let work = ready.into_iter().map(|(keyspace, chore)| perform(&workloads, keyspace, chore));
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = futures::future::join_all(work) => {}
                }
            }
            Err(next) => {
                let timer = async {
                    match next {
                        Some(at) => tokio::time::sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = chores.wake.notified() => {}
                    () = timer => {}
                }
            }
        }
    }
}

async fn perform(workloads: &Workloads, keyspace: String, chore: Chore) {
    // Nobody serves it, or without its storage: when that changes, everything is looked at again.
    let Some(rest) = workloads.controller_client(&keyspace) else { return };
    let outcome = match &chore {
        Chore::Sign(_) => match cluster_info::maintain(&rest).await {
            Ok(Some(next)) => {
                let seconds = next.duration_since(Timestamp::now()).as_secs().clamp(1, 86_400);
                workloads.chores.schedule(&keyspace, Chore::Sign(u8::MAX), Duration::from_secs(seconds.unsigned_abs()));
                Ok(())
            }
            other => other.map(drop),
        },
        Chore::Scan => match lifecycle::scan(&rest, workloads.chores.grace + BEAT).await {
            Ok(nodes) => {
                for node in nodes {
                    workloads.chores.schedule(&keyspace, Chore::Notice(node), Duration::ZERO);
                }
                Ok(())
            }
            Err(error) => Err(error),
        },
        Chore::Notice(node) => lifecycle::mark_unknown(&rest, node).await,
    };
    if let Err(error) = outcome {
        tracing::debug!(keyspace, ?chore, %error, "a controller of a workload cluster could not do its work");
        workloads.chores.schedule(&keyspace, chore, Duration::from_secs(1));
    }
}
