//! Input of a decision about a MachinePool.

use std::collections::HashSet;
use std::sync::Arc;

use capwasm_api::contract::{BootstrapConfig, InfrastructurePool};
use capwasm_api::kinds::MachinePool;
use capwasm_api::names::{label_value, labels};
use capwasm_object::{json, meta};
use capwasm_reconcile::{CacheError, ClusterId, Pass, ReconcileError, Results, Selector, View};
use capwasm_remote::Remote;
use jiff::Timestamp;
use serde_json::Value;

use crate::external::{self, External};
use crate::{draft, kinds, ownership};

/// The MachinePool with related objects.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    pub(super) pool: MachinePool,
    pub(super) now: Timestamp,
    pub(super) results: Results,
    pub(super) cluster: Option<Arc<Value>>,
    /// `None` with bootstrap data of the user's own.
    pub(super) bootstrap: Option<External<BootstrapConfig>>,
    pub(super) infrastructure: External<InfrastructurePool>,
    /// Those that the pool controls, and those of its that nobody controls (any more); including those that are being
    /// deleted.
    pub(super) machines: Vec<Arc<Value>>,
    /// Infrastructure machines of the pool; `None` when the provider does not show them.
    pub(super) members: Option<Vec<Arc<Value>>>,
    pub(super) nodes: Nodes,
}

/// Nodes of the workload cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Nodes {
    /// Not needed: the Cluster is being deleted, or its control plane is not initialized.
    NotAsked,
    /// The workload cluster cannot be reached; the reason.
    Unreachable(&'static str),
    Seen(Vec<Arc<Value>>),
}

impl Observed {
    pub(super) fn cluster_id(&self) -> ClusterId {
        ClusterId { namespace: self.pool.metadata.namespace.clone(), name: self.pool.spec.cluster_name.clone() }
    }

    /// All Nodes, if they could be listed.
    pub(super) fn seen(&self) -> Option<&[Arc<Value>]> {
        match &self.nodes {
            Nodes::Seen(nodes) => Some(nodes),
            Nodes::NotAsked | Nodes::Unreachable(_) => None,
        }
    }
}

pub(super) async fn observe(remote: &Remote, pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let pool: MachinePool = draft::read_defaulted(&pass.object)?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster = view.get(&kinds::cluster(), namespace, &pool.spec.cluster_name).await?;
    let template = &pool.spec.template.spec;
    let bootstrap = external::read_optional(view, namespace, template.bootstrap.config_ref.as_ref()).await?;
    let infrastructure: External<InfrastructurePool> =
        external::read(view, namespace, &template.infrastructure_ref).await?;
    let of_pool = Selector::labels([
        (labels::POOL_NAME, label_value(&pool.metadata.name).as_str()),
        (labels::CLUSTER_NAME, pool.spec.cluster_name.as_str()),
    ]);
    let members = match infrastructure.found() {
        Some((object, report)) => members(view, namespace, object, report, &of_pool).await?,
        None => None,
    };
    // By label, by owner, and by the name of its member: what lost some of them is still there, and counts.
    let mut found = view.list(&kinds::machine(), Some(namespace), &of_pool).await?;
    found.extend(view.list(&kinds::machine(), Some(namespace), &Selector::owned_by(&pool.metadata.uid)).await?);
    let seen: HashSet<String> = found.iter().map(|machine| meta::name(machine).to_owned()).collect();
    for member in members.iter().flatten().map(|member| meta::name(member)).filter(|name| !seen.contains(*name)) {
        let machine = view.get(&kinds::machine(), namespace, member).await?;
        let of_member = |machine: &Arc<Value>| json::text(machine, "/spec/infrastructureRef/name") == Some(member);
        found.extend(machine.filter(of_member));
    }
    let machines = ownership::claimed(found, &pool.metadata.uid, &pool.spec.cluster_name);
    let mut observed = Observed {
        object: pass.object.clone(),
        now: pass.now,
        results: pass.results.clone(),
        cluster,
        bootstrap,
        infrastructure,
        machines,
        members,
        nodes: Nodes::NotAsked,
        pool,
    };
    observed.nodes = nodes(remote, pass, &observed).await?;
    Ok(observed)
}

/// Infrastructure machines of a pool whose provider shows them.
async fn members(
    view: &View,
    namespace: &str,
    pool: &Value,
    report: &InfrastructurePool,
    of_pool: &Selector,
) -> Result<Option<Vec<Arc<Value>>>, CacheError> {
    let Some(kind) = &report.machine_kind else { return Ok(None) };
    match view.kind_at(json::text(pool, "/apiVersion").unwrap_or_default(), kind).await {
        Ok(kind) => view.list(&kind, Some(namespace), of_pool).await.map(Some),
        Err(CacheError::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn nodes(remote: &Remote, pass: &Pass<'_>, observed: &Observed) -> Result<Nodes, CacheError> {
    let initialized = observed.cluster.as_deref().is_some_and(|cluster| {
        json::flag(cluster, "/status/initialization/controlPlaneInitialized") == Some(true)
            && !meta::is_deleting(cluster)
    });
    if !initialized {
        return Ok(Nodes::NotAsked);
    }
    let workload = match remote.connect(pass.view, &observed.cluster_id()).await {
        Ok(workload) => workload,
        Err(error) => return Ok(Nodes::Unreachable(error.reason)),
    };
    match workload.view(pass.view).list(&kinds::node(), None, &Selector::everything()).await {
        Ok(nodes) => Ok(Nodes::Seen(nodes)),
        Err(error) if error.is_unavailable() => Ok(Nodes::Unreachable("NodesNotListed")),
        Err(error) => Err(error),
    }
}
