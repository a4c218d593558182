//! What a decision about a MachineHealthCheck needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use capwasm_api::conditions;
use capwasm_api::kinds::MachineHealthCheck;
use capwasm_api::names::condition;
use capwasm_api::names::{annotations, labels};
use capwasm_object::{json, meta};
use capwasm_reconcile::{CacheError, ClusterId, Pass, ReconcileError, Results, Selector, View};
use capwasm_remote::{Remote, Workload};
use jiff::Timestamp;
use serde_json::Value;

use crate::{draft, kinds};

/// The MachineHealthCheck and all that is related to it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    /// With defaults.
    pub(super) check: MachineHealthCheck,
    pub(super) now: Timestamp,
    pub(super) results: Results,
    pub(super) cluster: Option<Arc<Value>>,
    /// Its Machines, but those that are not to be looked at; in the order of their names.
    pub(super) targets: Vec<Target>,
    /// Why the Nodes cannot be looked at just now.
    pub(super) unreachable: Option<&'static str>,
    /// `None` when the owners remediate.
    pub(super) external: Option<External>,
}

/// A Machine, and what is seen of its Node.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) machine: Arc<Value>,
    pub(super) node: NodeSight,
}

/// What is seen of a Node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeSight {
    /// The Machine never had one.
    None,
    /// The one that it had is not there.
    Gone(String),
    /// The Node; only its conditions wake.
    Found(Arc<Value>),
}

/// Remediation by somebody outside.
#[derive(Clone, Debug, Default)]
pub(super) struct External {
    /// The template, unless it is not there.
    pub(super) template: Option<Arc<Value>>,
    /// What was made from it, by the name of the Machine.
    pub(super) requests: BTreeMap<String, Arc<Value>>,
}

pub(super) async fn observe(remote: &Remote, pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let check: MachineHealthCheck = draft::read_defaulted(&pass.object)?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster = view.get(&kinds::cluster(), namespace, &check.spec.cluster_name).await?;
    let selector = Selector::from_label_selector(&check.spec.selector)
        .map_err(|error| ReconcileError::failed("InvalidSelector", error.to_string()))?
        .and_label(labels::CLUSTER_NAME, &check.spec.cluster_name);
    let mut machines = view.list(&kinds::machine(), Some(namespace), &selector).await?;
    machines.retain(|machine| !is_left_alone(machine));
    let mut observed = Observed {
        object: pass.object.clone(),
        now: pass.now,
        results: pass.results.clone(),
        targets: Vec::new(),
        unreachable: None,
        external: None,
        cluster,
        check,
    };
    let workload = connect(remote, pass, &mut observed).await;
    for machine in machines {
        let node = match (&workload, json::text(&machine, "/status/nodeRef/name")) {
            (Some(workload), Some(name)) => match see(workload, view, name).await {
                Ok(node) => node,
                Err(error) if error.is_unavailable() => {
                    observed.unreachable = Some("NodesNotListed");
                    NodeSight::None
                }
                Err(error) => return Err(error.into()),
            },
            _ => NodeSight::None,
        };
        observed.targets.push(Target { machine, node });
    }
    observed.external = external(view, namespace, &observed).await?;
    Ok(observed)
}

/// Users keep Machines from being looked at.
fn is_left_alone(machine: &Value) -> bool {
    [annotations::PAUSED, annotations::SKIP_REMEDIATION].iter().any(|key| meta::annotation(machine, key).is_some())
}

/// The connection; before there is a control plane there need not be any.
async fn connect(remote: &Remote, pass: &Pass<'_>, observed: &mut Observed) -> Option<Workload> {
    let cluster = observed.cluster.as_deref()?;
    if !conditions::is_true(cluster, condition::CONTROL_PLANE_INITIALIZED) || meta::is_deleting(cluster) {
        return None;
    }
    let id = ClusterId { namespace: pass.key.namespace.clone(), name: observed.check.spec.cluster_name.clone() };
    match remote.connect(pass.view, &id).await {
        Ok(workload) => Some(workload),
        Err(error) => {
            observed.unreachable = Some(error.reason);
            None
        }
    }
}

async fn see(workload: &Workload, view: &View, name: &str) -> Result<NodeSight, CacheError> {
    let node = workload.view(view).get_for_fields(&kinds::node(), "", name, &["/status/conditions"]).await?;
    Ok(node.map_or_else(|| NodeSight::Gone(name.to_owned()), NodeSight::Found))
}

async fn external(view: &View, namespace: &str, observed: &Observed) -> Result<Option<External>, CacheError> {
    let Some(reference) = &observed.check.spec.remediation.template_ref else { return Ok(None) };
    let mut external = External::default();
    let template = match view.kind_at(&reference.api_version, &reference.kind).await {
        Ok(kind) => view.get(&kind, namespace, &reference.name).await?,
        Err(CacheError::UnknownKind { .. }) => None,
        Err(error) => return Err(error),
    };
    external.template = template;
    let Some(made) = reference.kind.strip_suffix("Template") else { return Ok(Some(external)) };
    match view.kind_at(&reference.api_version, made).await {
        Ok(kind) => {
            for target in &observed.targets {
                let name = meta::name(&target.machine);
                if let Some(request) = view.get_for_fields(&kind, namespace, name, &["/metadata"]).await? {
                    external.requests.insert(name.to_owned(), request);
                }
            }
        }
        Err(CacheError::UnknownKind { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(Some(external))
}
