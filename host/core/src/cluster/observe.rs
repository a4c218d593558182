//! Input of a decision about a Cluster.

use std::sync::Arc;
use std::time::Duration;

use capwasm_api::conditions;
use capwasm_api::contract::{ControlPlane, InfrastructureCluster};
use capwasm_api::kinds::Cluster;
use capwasm_api::names::{condition, labels};
use capwasm_object::meta;
use capwasm_reconcile::interests::{Fields, News};
use capwasm_reconcile::{CacheError, ClusterId, Kind, Pass, ReconcileError, Selector, View};
use capwasm_remote::Remote;
use jiff::Timestamp;
use serde_json::Value;

use crate::external::{self, External};
use crate::{draft, kinds};

/// How long after a start of the host the connection to a workload cluster is not yet reported as down.
const SETTLING: Duration = Duration::from_secs(50);

/// The Cluster with related objects.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    pub(super) cluster: Cluster,
    pub(super) now: Timestamp,
    /// `None` without `spec.infrastructureRef`.
    pub(super) infrastructure: Option<External<InfrastructureCluster>>,
    /// `None` without `spec.controlPlaneRef`.
    pub(super) control_plane: Option<External<ControlPlane>>,
    pub(super) machines: Vec<Arc<Value>>,
    pub(super) sets: Vec<Arc<Value>>,
    pub(super) deployments: Vec<Arc<Value>>,
    pub(super) pools: Vec<Arc<Value>>,
    pub(super) connection: Connection,
}

/// State of the connection to the workload cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// The control plane is not initialized yet.
    NotAsked,
    /// The workload cluster answers.
    Up,
    /// The host has just started: keep the last condition, for this time at most.
    Unsettled(Duration),
    /// The workload cluster does not answer; the reason.
    Down(&'static str),
}

impl Observed {
    pub(super) fn control_plane_machines(&self) -> impl Iterator<Item = &Value> {
        self.machines.iter().map(Arc::as_ref).filter(|machine| is_control_plane(machine))
    }

    pub(super) fn worker_machines(&self) -> impl Iterator<Item = &Value> {
        self.machines.iter().map(Arc::as_ref).filter(|machine| !is_control_plane(machine))
    }
}

fn is_control_plane(machine: &Value) -> bool {
    meta::label(machine, labels::CONTROL_PLANE).is_some()
}

pub(super) async fn observe(remote: &Remote, started: Timestamp, pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let cluster: Cluster = draft::read(&pass.object)?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let infrastructure = external::read_optional(view, namespace, cluster.spec.infrastructure_ref.as_ref()).await?;
    let control_plane = external::read_optional(view, namespace, cluster.spec.control_plane_ref.as_ref()).await?;
    let mut observed = Observed {
        object: pass.object.clone(),
        now: pass.now,
        infrastructure,
        control_plane,
        machines: members(view, &kinds::machine(), pass).await?,
        sets: members(view, &kinds::machine_set(), pass).await?,
        deployments: members(view, &kinds::machine_deployment(), pass).await?,
        pools: match members(view, &kinds::machine_pool(), pass).await {
            // The one core kind that need not be installed: then there are none.
            Err(CacheError::UnknownKind { .. }) => Vec::new(),
            listed => listed?,
        },
        connection: Connection::NotAsked,
        cluster,
    };
    if initialized(&observed) {
        let id = ClusterId { namespace: namespace.to_owned(), name: pass.key.name.clone() };
        observed.connection = match remote.connect(view, &id).await {
            Ok(_) => Connection::Up,
            Err(error) => {
                let settled = Duration::try_from(pass.now.duration_since(started)).unwrap_or_default();
                let never_reached =
                    error.last_probe.is_none() && conditions::is_true(&pass.object, condition::REMOTE_CONNECTION_PROBE);
                match SETTLING.checked_sub(settled).filter(|left| never_reached && !left.is_zero()) {
                    Some(left) => Connection::Unsettled(left),
                    None => Connection::Down(error.reason),
                }
            }
        };
    }
    Ok(observed)
}

fn initialized(observed: &Observed) -> bool {
    let reported = observed.control_plane.as_ref().and_then(External::report);
    observed.cluster.status.initialization.control_plane_initialized == Some(true)
        || conditions::is_true(&observed.object, condition::CONTROL_PLANE_INITIALIZED)
        || reported.is_some_and(|report| report.initialized)
}

/// What the Cluster has to hear of at once of its Machines and their owners: their numbers in its status are for people.
const OF_MEMBER: Fields = &["/metadata/deletionTimestamp", "/status/conditions#Available"];

/// Objects of a kind with the cluster's label.
async fn members(view: &View, kind: &Kind, pass: &Pass<'_>) -> Result<Vec<Arc<Value>>, CacheError> {
    let selector = Selector::labels([(labels::CLUSTER_NAME, pass.key.name.as_str())]);
    view.with_news(News::In(OF_MEMBER)).list(kind, Some(&pass.key.namespace), &selector).await
}
