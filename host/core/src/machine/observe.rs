//! What a decision about a Machine needs.

use std::sync::Arc;

use capwasm_api::kinds::{self as typed, ContractReference, Machine};
use capwasm_api::names::{CORE_GROUP, labels};
use capwasm_api::{contract, json};
use capwasm_reconcile::{CacheError, ClusterId, Pass, ReconcileError, Results, Selector};
use capwasm_remote::{Remote, Workload};
use jiff::Timestamp;
use serde_json::Value;

use super::deletion;
use crate::external::{self, External};
use crate::kinds;

/// The Machine and all that is related to it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    pub(super) machine: Machine,
    pub(super) now: Timestamp,
    pub(super) results: Results,
    pub(super) cluster: Option<Arc<Value>>,
    /// `None` when the user supplies the bootstrap data.
    pub(super) bootstrap: Option<External>,
    pub(super) infrastructure: External,
    pub(super) node: NodeSight,
    /// The MachineSet that controls it.
    pub(super) set: Option<Arc<Value>>,
    /// The MachineDeployment behind the set.
    pub(super) deployment: Option<Arc<Value>>,
    /// Looked at only when the Machine is being deleted.
    pub(super) departure: Option<Departure>,
}

/// What is seen of the Node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeSight {
    /// The whole cluster goes: its API server may be gone any moment, and nobody needs to know more about the Node.
    ClusterGoes,
    /// The cluster's infrastructure is not there yet.
    NoInfrastructure,
    /// The control plane was never reachable.
    NoControlPlane,
    /// The workload cluster cannot be reached, for this reason.
    Disconnected(&'static str),
    /// The provider has not said who the machine is.
    Unidentified,
    /// No Node with this provider id.
    Absent(String),
    /// The Node.
    Found(Arc<Value>),
}

/// What a deletion needs to know besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Departure {
    /// The control plane object is being deleted.
    pub(super) control_plane_deleting: bool,
    /// The control plane has no Machines by design.
    pub(super) externally_managed: bool,
    /// Control-plane Machines that are not being deleted.
    pub(super) control_plane_machines: usize,
    /// Pods on the Node, looked for only when it is to be drained; `None` when they could not be listed.
    pub(super) pods: Option<Vec<Arc<Value>>>,
}

impl Observed {
    pub(super) fn is_deleting(&self) -> bool {
        self.machine.metadata.is_deleting()
    }

    /// The Machine's Cluster, for operations on its workload cluster.
    pub(super) fn cluster_id(&self) -> ClusterId {
        ClusterId { namespace: self.machine.metadata.namespace.clone(), name: self.machine.spec.cluster_name.clone() }
    }

    /// The machine's identity: as recorded, or as the infrastructure just reported.
    pub(super) fn provider_id(&self) -> Option<&str> {
        provider_id(&self.machine, &self.infrastructure)
    }
}

fn provider_id<'a>(machine: &'a Machine, infrastructure: &'a External) -> Option<&'a str> {
    let reported = infrastructure
        .found()
        .filter(|(object, contract)| contract::infrastructure::provisioned(object, *contract))
        .and_then(|(object, _)| contract::infrastructure::provider_id(object));
    reported.or_else(|| machine.spec.provider_id.as_deref().filter(|id| !id.is_empty()))
}

pub(super) async fn observe(remote: &Remote, pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let machine: Machine =
        typed::view(&pass.object).map_err(|error| ReconcileError::failed("InvalidObject", error.to_string()))?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster = view.get(&kinds::cluster(), namespace, &machine.spec.cluster_name).await?;
    let bootstrap = match &machine.spec.bootstrap.config_ref {
        Some(reference) => Some(external::read(view, namespace, reference).await?),
        None => None,
    };
    let infrastructure = external::read(view, namespace, &machine.spec.infrastructure_ref).await?;
    let (set, deployment) = owners(pass, &machine).await?;
    let mut observed = Observed {
        object: pass.object.clone(),
        now: pass.now,
        results: pass.results.clone(),
        cluster,
        bootstrap,
        infrastructure,
        node: NodeSight::NoInfrastructure,
        set,
        deployment,
        departure: None,
        machine,
    };
    let workload = see_node(remote, pass, &mut observed).await?;
    if observed.is_deleting() {
        observed.departure = Some(departure(pass, &observed, workload.as_ref()).await?);
    }
    Ok(observed)
}

async fn owners(pass: &Pass<'_>, machine: &Machine) -> Result<(Option<Arc<Value>>, Option<Arc<Value>>), CacheError> {
    let controller =
        machine.metadata.controller().filter(|owner| owner.kind == "MachineSet" && owner.group() == CORE_GROUP);
    let namespace = pass.key.namespace.as_str();
    let set = match controller {
        Some(owner) => pass.view.get(&kinds::machine_set(), namespace, &owner.name).await?,
        None => None,
    };
    let deployment = match set.as_deref().and_then(|set| json::label(set, labels::DEPLOYMENT_NAME)) {
        Some(name) => pass.view.get(&kinds::machine_deployment(), namespace, name).await?,
        None => None,
    };
    Ok((set, deployment))
}

/// Fills in what is seen of the Node; the connection, when there is one, is handed back.
async fn see_node(remote: &Remote, pass: &Pass<'_>, observed: &mut Observed) -> Result<Option<Workload>, CacheError> {
    let flag = |name: &str| {
        let cluster = observed.cluster.as_deref();
        cluster.and_then(|cluster| json::flag(cluster, &format!("/status/initialization/{name}"))) == Some(true)
    };
    if observed.cluster.as_deref().is_some_and(json::is_deleting) {
        observed.node = NodeSight::ClusterGoes;
        return Ok(None);
    }
    if !flag("infrastructureProvisioned") {
        return Ok(None);
    }
    if !flag("controlPlaneInitialized") {
        observed.node = NodeSight::NoControlPlane;
        return Ok(None);
    }
    let Some(provider_id) = observed.provider_id().map(str::to_owned) else {
        observed.node = NodeSight::Unidentified;
        return Ok(None);
    };
    let workload = match remote.connect(pass.view, &observed.cluster_id()).await {
        Ok(workload) => workload,
        Err(error) => {
            observed.node = NodeSight::Disconnected(error.reason);
            return Ok(None);
        }
    };
    observed.node = match find_node(&workload, pass, observed, &provider_id).await {
        Ok(Some(node)) => NodeSight::Found(node),
        Ok(None) => NodeSight::Absent(provider_id),
        // The watch of Nodes is not there yet: its first list, or the end of the connection, wakes the Machine.
        Err(error) if error.is_unavailable() => NodeSight::Disconnected("NodesNotListed"),
        Err(error) => return Err(error),
    };
    Ok(Some(workload))
}

async fn find_node(
    workload: &Workload,
    pass: &Pass<'_>,
    observed: &Observed,
    provider_id: &str,
) -> Result<Option<Arc<Value>>, CacheError> {
    let nodes = workload.view(pass.view);
    let is_it = |node: &Arc<Value>| json::text(node, "/spec/providerID") == Some(provider_id);
    // The Node that was matched before is looked at alone, so that other Nodes do not wake this Machine.
    if let Some(known) = &observed.machine.status.node_ref
        && let Some(node) = nodes.get(&kinds::node(), "", &known.name).await?.filter(is_it)
    {
        return Ok(Some(node));
    }
    let all = nodes.list(&kinds::node(), None, &Selector::everything()).await?;
    Ok(all.into_iter().find(is_it))
}

async fn departure(pass: &Pass<'_>, observed: &Observed, workload: Option<&Workload>) -> Result<Departure, CacheError> {
    let namespace = pass.key.namespace.as_str();
    let mut departure = Departure { pods: Some(Vec::new()), ..Departure::default() };
    let reference = observed.cluster.as_deref().and_then(|cluster| cluster.pointer("/spec/controlPlaneRef"));
    let reference: Option<ContractReference> = reference.and_then(|value| serde_json::from_value(value.clone()).ok());
    if let Some(reference) = reference
        && let External::Found { object, .. } = external::read(pass.view, namespace, &reference).await?
    {
        departure.control_plane_deleting = json::is_deleting(&object);
        departure.externally_managed = contract::control_plane::externally_managed(&object);
    }
    let selector = Selector::labels([(labels::CLUSTER_NAME, observed.machine.spec.cluster_name.as_str())])
        .with_label(labels::CONTROL_PLANE);
    let machines = pass.view.list(&kinds::machine(), Some(namespace), &selector).await?;
    departure.control_plane_machines = machines.iter().filter(|machine| !json::is_deleting(machine)).count();
    if let (Some(workload), NodeSight::Found(node)) = (workload, &observed.node)
        && deletion::drains(observed, &departure)
    {
        departure.pods = match workload.view(pass.view).list(&kinds::pod(), None, &Selector::everything()).await {
            Ok(pods) => Some(on_node(pods, json::name(node))),
            // An API server without Pods has none to drain.
            Err(CacheError::UnknownKind { .. }) => Some(Vec::new()),
            Err(_) => None,
        };
    }
    Ok(departure)
}

fn on_node(mut pods: Vec<Arc<Value>>, node: &str) -> Vec<Arc<Value>> {
    pods.retain(|pod| json::text(pod, "/spec/nodeName") == Some(node));
    pods
}
