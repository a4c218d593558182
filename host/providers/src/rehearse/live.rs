//! Reads that are not recorded, from the host's caches. They wake and watch nothing, and read no Secret.

use std::sync::Arc;

use capwasm_api::names::labels::CLUSTER_NAME;
use capwasm_object::meta;
use capwasm_reconcile::{Cache, ClusterId, View};
use capwasm_remote::Remote;
use capwasm_runtime::{Capabilities, Limits};
use serde_json::Value;

use crate::reads::{Management, Workload};

/// Caches that answer reads of a rehearsal.
#[derive(Clone)]
pub struct LiveReads {
    view: View,
    remote: Remote,
}

impl LiveReads {
    /// Reads through the caches of this host.
    pub fn new(cache: &Cache, remote: Remote) -> Self {
        LiveReads { view: View::unremembered(cache), remote }
    }

    /// Capabilities of a call for this object. Replay performs no side effect through them.
    pub(super) fn of(&self, object: &Value) -> Capabilities {
        let namespace = meta::namespace(object).to_owned();
        let cluster = meta::label(object, CLUSTER_NAME)
            .map(|name| ClusterId { namespace: namespace.clone(), name: name.to_owned() });
        let (view, remote) = (self.view.clone(), self.remote.clone());
        let most = usize::try_from(Limits::default().memory_bytes).unwrap_or(usize::MAX);
        let workload = Arc::new(Workload { view, remote, cluster, most, watched: Vec::new() });
        Capabilities {
            lookup: Arc::new(Management { view: self.view.clone(), namespace, most }),
            workload: workload.clone(),
            certificates: workload.clone(),
            etcd: workload,
            ..Capabilities::none()
        }
    }
}
