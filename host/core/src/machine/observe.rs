//! What a decision about a Machine needs.

use std::sync::Arc;

use capwasm_api::contract::{BootstrapConfig, ControlPlane, InfrastructureMachine};
use capwasm_api::kinds::{ContractReference, Machine};
use capwasm_api::names::{CORE_GROUP, labels};
use capwasm_object::{json, meta};
use capwasm_reconcile::interests::Fields;
use capwasm_reconcile::{CacheError, ClusterId, Pass, ReconcileError, Results, Selector};
use capwasm_remote::{Remote, Workload};
use jiff::Timestamp;
use serde_json::Value;

use super::deletion;
use super::drain_rules::{self, Rules};
use crate::external::{self, External};
use crate::{draft, kinds};

/// The Machine and all that is related to it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    pub(super) machine: Machine,
    pub(super) now: Timestamp,
    pub(super) results: Results,
    pub(super) cluster: Option<Arc<Value>>,
    /// `None` when the user supplies the bootstrap data.
    pub(super) bootstrap: Option<External<BootstrapConfig>>,
    pub(super) infrastructure: External<InfrastructureMachine>,
    pub(super) node: NodeSight,
    /// The MachineSet that controls it.
    pub(super) set: Option<Arc<Value>>,
    /// The MachineDeployment behind the set.
    pub(super) deployment: Option<Arc<Value>>,
    /// The MachinePool that controls it; only the version that it wants wakes.
    pub(super) pool: Option<Arc<Value>>,
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
    /// What users want done with these.
    pub(super) rules: Rules,
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
        let reported = self.infrastructure.report().filter(|report| report.provisioned);
        let reported = reported.and_then(|report| report.provider_id.as_deref());
        reported.or_else(|| self.machine.spec.provider_id.as_deref().filter(|id| !id.is_empty()))
    }
}

pub(super) async fn observe(remote: &Remote, pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let machine: Machine = draft::read(&pass.object)?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster = view.get_for_fields(&kinds::cluster(), namespace, &machine.spec.cluster_name, OF_CLUSTER).await?;
    let bootstrap = external::read_optional(view, namespace, machine.spec.bootstrap.config_ref.as_ref()).await?;
    let infrastructure = external::read(view, namespace, &machine.spec.infrastructure_ref).await?;
    let Owners { set, deployment, pool } = owners(pass, &machine).await?;
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
        pool,
        departure: None,
        machine,
    };
    let workload = see_node(remote, pass, &mut observed).await?;
    if observed.is_deleting() {
        observed.departure = Some(departure(pass, &observed, workload.as_ref()).await?);
    }
    Ok(observed)
}

/// What of a Cluster a Machine follows; the rest of its status changes with every Machine.
const OF_CLUSTER: Fields =
    &["/metadata/deletionTimestamp", "/spec/controlPlaneRef", "/spec/paused", "/status/initialization"];
/// What of a MachineSet its Machines follow.
const OF_SET: Fields = &["/metadata/annotations", "/metadata/labels", "/spec/template"];
/// What of a MachineDeployment its Machines follow.
const OF_DEPLOYMENT: Fields = &["/metadata/annotations", "/spec/rollout", "/spec/template"];
/// What of a MachinePool its Machines follow.
const OF_POOL: Fields = &["/spec/template/spec/version"];

/// What controls a Machine.
#[derive(Default)]
struct Owners {
    set: Option<Arc<Value>>,
    deployment: Option<Arc<Value>>,
    pool: Option<Arc<Value>>,
}

async fn owners(pass: &Pass<'_>, machine: &Machine) -> Result<Owners, CacheError> {
    let namespace = pass.key.namespace.as_str();
    let mut owners = Owners::default();
    let Some(owner) = machine.metadata.controller().filter(|owner| owner.group() == CORE_GROUP) else {
        return Ok(owners);
    };
    match owner.kind.as_str() {
        "MachineSet" => {
            owners.set = pass.view.get_for_fields(&kinds::machine_set(), namespace, &owner.name, OF_SET).await?;
            if let Some(name) = owners.set.as_deref().and_then(|set| meta::label(set, labels::DEPLOYMENT_NAME)) {
                let kind = kinds::machine_deployment();
                owners.deployment = pass.view.get_for_fields(&kind, namespace, name, OF_DEPLOYMENT).await?;
            }
        }
        "MachinePool" => {
            owners.pool = pass.view.get_for_fields(&kinds::machine_pool(), namespace, &owner.name, OF_POOL).await?;
        }
        _ => {}
    }
    Ok(owners)
}

/// Fills in what is seen of the Node; the connection, when there is one, is handed back.
async fn see_node(remote: &Remote, pass: &Pass<'_>, observed: &mut Observed) -> Result<Option<Workload>, CacheError> {
    let flag = |name: &str| {
        let cluster = observed.cluster.as_deref();
        cluster.and_then(|cluster| json::flag(cluster, &format!("/status/initialization/{name}"))) == Some(true)
    };
    if observed.cluster.as_deref().is_some_and(meta::is_deleting) {
        observed.node = NodeSight::ClusterGoes;
        return Ok(None);
    }
    if !flag("infrastructureProvisioned") {
        return Ok(None);
    }
    if !may_have_node(observed.cluster.as_deref(), &observed.machine) {
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
            // Since when, its conditions say.
            observed.cluster =
                pass.view.get(&kinds::cluster(), &pass.key.namespace, &observed.machine.spec.cluster_name).await?;
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

/// Whether the control plane is initialized; where no object tells, the Node of its first Machine does.
fn may_have_node(cluster: Option<&Value>, machine: &Machine) -> bool {
    let Some(cluster) = cluster else { return false };
    let stands_alone = cluster.pointer("/spec/controlPlaneRef").is_none_or(Value::is_null)
        && machine.metadata.labels.contains_key(labels::CONTROL_PLANE);
    stands_alone || json::flag(cluster, "/status/initialization/controlPlaneInitialized") == Some(true)
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
    let plane = external::read_optional::<ControlPlane>(pass.view, namespace, reference.as_ref()).await?;
    if let Some((object, report)) = plane.as_ref().and_then(External::found) {
        departure.control_plane_deleting = meta::is_deleting(object);
        departure.externally_managed = report.externally_managed;
    }
    let selector = Selector::labels([(labels::CLUSTER_NAME, observed.machine.spec.cluster_name.as_str())])
        .with_label(labels::CONTROL_PLANE);
    let machines = pass.view.list(&kinds::machine(), Some(namespace), &selector).await?;
    departure.control_plane_machines = machines.iter().filter(|machine| !meta::is_deleting(machine)).count();
    if let (Some(workload), NodeSight::Found(node)) = (workload, &observed.node)
        && deletion::drains(observed, &departure)
    {
        departure.pods = match workload.view(pass.view).list(&kinds::pod(), None, &Selector::everything()).await {
            Ok(pods) => Some(on_node(pods, meta::name(node))),
            // An API server without Pods has none to drain.
            Err(CacheError::UnknownKind { .. }) => Some(Vec::new()),
            Err(_) => None,
        };
        match rules(pass, observed, workload).await {
            Ok(rules) => departure.rules = rules,
            // Without the rules nothing may be evicted.
            Err(_) => departure.pods = None,
        }
    }
    Ok(departure)
}

async fn rules(pass: &Pass<'_>, observed: &Observed, workload: &Workload) -> Result<Rules, CacheError> {
    let namespace = Some(pass.key.namespace.as_str());
    let all = match pass.view.list(&kinds::machine_drain_rule(), namespace, &Selector::everything()).await {
        Err(CacheError::UnknownKind { .. }) => Vec::new(),
        listed => listed?,
    };
    // Its labels count as they are now; a rule that follows from them anew is seen by the next look at the Pods.
    let none = Value::Null;
    let mut rules = Rules::of(all, &observed.object, observed.cluster.as_deref().unwrap_or(&none));
    if rules.ask_for_namespaces() {
        let listed = workload.view(pass.view).list(&kinds::namespace(), None, &Selector::everything()).await?;
        rules.namespaces = listed.iter().map(|one| (meta::name(one).to_owned(), drain_rules::labels(one))).collect();
    }
    Ok(rules)
}

fn on_node(mut pods: Vec<Arc<Value>>, node: &str) -> Vec<Arc<Value>> {
    pods.retain(|pod| json::text(pod, "/spec/nodeName") == Some(node));
    pods
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_looked_for_once_there_is_an_api_server_or_when_only_the_node_can_tell() {
        let plane_ref = json!({"controlPlaneRef": {"kind": "Plane", "name": "p"}});
        for (what, spec, initialized, is_control_plane, expected) in [
            ("initialized", &plane_ref, true, false, true),
            ("not initialized", &plane_ref, false, false, false),
            ("not initialized, and its object will tell", &plane_ref, false, true, false),
            ("a Machine that stands alone", &json!({}), false, true, true),
            ("a worker of one that stands alone", &json!({}), false, false, false),
            ("a worker, later", &json!({}), true, false, true),
        ] {
            let cluster = json!({"spec": spec, "status": {"initialization": {"controlPlaneInitialized": initialized}}});
            let mut machine = Machine::default();
            if is_control_plane {
                machine.metadata.labels.insert(labels::CONTROL_PLANE.to_owned(), String::new());
            }
            assert_eq!(may_have_node(Some(&cluster), &machine), expected, "{what}");
        }
        assert!(!may_have_node(None, &Machine::default()));
    }
}
