//! What a decision about a MachineSet needs.

use std::sync::Arc;

use capwasm_api::contract::ControlPlane;
use capwasm_api::kinds::{ContractReference, MachineSet};
use capwasm_api::names::{annotations, labels};
use capwasm_object::{json, meta, owners, selector};
use capwasm_reconcile::interests::Fields;
use capwasm_reconcile::{CacheError, Kind, Pass, ReconcileError, Selector, View};
use jiff::Timestamp;
use serde_json::Value;

use crate::external::{self, External};
use crate::{draft, kinds};

/// The MachineSet and all that is related to it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    /// With defaults.
    pub(super) set: MachineSet,
    pub(super) now: Timestamp,
    pub(super) cluster: Option<Arc<Value>>,
    pub(super) control_plane: Option<External<ControlPlane>>,
    /// The MachineDeployment that it belongs to; only its limits of remediation and its annotations wake.
    pub(super) deployment: Option<Arc<Value>>,
    /// `None` when the template needs none.
    pub(super) bootstrap: Option<External<()>>,
    pub(super) infrastructure: External<()>,
    /// Its Machines, those that are being deleted too.
    pub(super) machines: Vec<Arc<Value>>,
    /// Machines that match its selector and that nobody controls.
    pub(super) strays: Vec<Arc<Value>>,
    /// Machines of which something that the set clones is not there yet.
    pub(super) bare: Vec<(Arc<Value>, Part)>,
    /// Clones that have the set as an owner, as upstream makes them: no Machine has taken them.
    pub(super) clones: Vec<Arc<Value>>,
}

/// What is cloned for a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The bootstrap configuration.
    Bootstrap,
    /// The infrastructure machine.
    Infrastructure,
}

impl Part {
    /// Whether a Machine has what this is for, so that its absence is a loss and not a beginning.
    fn has_served(self, machine: &Value) -> bool {
        match self {
            Self::Bootstrap => json::text(machine, "/spec/bootstrap/dataSecretName").is_some(),
            Self::Infrastructure => {
                json::flag(machine, "/status/initialization/infrastructureProvisioned") == Some(true)
            }
        }
    }

    fn reference(self, machine: &Value) -> Option<&Value> {
        machine.pointer(match self {
            Self::Bootstrap => "/spec/bootstrap/configRef",
            Self::Infrastructure => "/spec/infrastructureRef",
        })
    }
}

/// What of a Cluster its sets follow.
const OF_CLUSTER: Fields = &["/spec/controlPlaneRef", "/spec/paused"];
/// What of a control plane preflight checks look at, under either contract.
const OF_CONTROL_PLANE: Fields = &[
    "/spec/version",
    "/status/initialization",
    "/status/initialized",
    "/status/ready",
    "/status/version",
    "/status/versions",
];
/// What of a MachineDeployment its sets follow.
const OF_DEPLOYMENT: Fields = &["/metadata/annotations", "/spec/remediation", "/spec/replicas"];

pub(super) async fn observe(pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let set: MachineSet = draft::read_defaulted(&pass.object)?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster = view.get_for_fields(&kinds::cluster(), namespace, &set.spec.cluster_name, OF_CLUSTER).await?;
    let reference = cluster.as_deref().and_then(|cluster| cluster.pointer("/spec/controlPlaneRef")).cloned();
    let reference: Option<ContractReference> = reference.and_then(|value| serde_json::from_value(value).ok());
    let control_plane = match &reference {
        Some(reference) => Some(external::read_for_fields(view, namespace, reference, OF_CONTROL_PLANE).await?),
        None => None,
    };
    let deployment = match set.metadata.labels.get(labels::DEPLOYMENT_NAME) {
        Some(name) => view.get_for_fields(&kinds::machine_deployment(), namespace, name, OF_DEPLOYMENT).await?,
        None => None,
    };
    let template = &set.spec.template.spec;
    let bootstrap = external::read_optional(view, namespace, template.bootstrap.config_ref.as_ref()).await?;
    let infrastructure = external::read(view, namespace, &template.infrastructure_ref).await?;

    let uid = set.metadata.uid.as_str();
    let in_cluster = Selector::labels([(labels::CLUSTER_NAME, set.spec.cluster_name.as_str())]);
    // By label for a set of a deployment, whose siblings' Machines then do not wake it.
    let wanted = match Selector::from_label_selector(&set.spec.selector) {
        Ok(selector) if !selector::is_empty(&set.spec.selector) => {
            selector.and_label(labels::CLUSTER_NAME, &set.spec.cluster_name)
        }
        _ => in_cluster,
    };
    let matching = view.list(&kinds::machine(), Some(namespace), &wanted).await?;
    let (mut machines, mut strays) = (Vec::new(), Vec::new());
    for machine in matching {
        match owners::controller_uid(&machine) {
            Some(owner) if owner == uid => machines.push(machine),
            None if !meta::is_deleting(&machine) => strays.push(machine),
            _ => {}
        }
    }
    let (mut clones, mut bare) = (Vec::new(), Vec::new());
    for (part, external) in [(Part::Bootstrap, bootstrap.as_ref()), (Part::Infrastructure, Some(&infrastructure))] {
        let Some((template, _)) = external.and_then(External::found) else { continue };
        let Some(kind) = cloned_kind(view, template).await? else { continue };
        clones.extend(untaken(view, namespace, &kind, uid).await?);
        for machine in &machines {
            if lacks(view, namespace, machine, part, &kind).await? {
                bare.push((machine.clone(), part));
            }
        }
    }
    Ok(Observed {
        object: pass.object.clone(),
        set,
        now: pass.now,
        cluster,
        control_plane,
        deployment,
        bootstrap,
        infrastructure,
        machines,
        strays,
        bare,
        clones,
    })
}

/// The kind of what is made from a template; none when it is no template, or its kind is not served.
async fn cloned_kind(view: &View, template: &Value) -> Result<Option<Kind>, ReconcileError> {
    let Some(kind) = meta::kind(template).strip_suffix("Template") else { return Ok(None) };
    match view.kind_at(json::text(template, "/apiVersion").unwrap_or_default(), kind).await {
        Ok(kind) => Ok(Some(kind)),
        Err(CacheError::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a Machine of the set's own making refers to a clone that is not there, and never was of use.
async fn lacks(view: &View, namespace: &str, machine: &Value, part: Part, kind: &Kind) -> Result<bool, ReconcileError> {
    let is_own = meta::annotation(machine, annotations::SLOT).is_some();
    let name = part.reference(machine).filter(|reference| json::text(reference, "/kind") == Some(&*kind.kind));
    let Some(name) = name.and_then(|reference| json::text(reference, "/name")) else { return Ok(false) };
    if !is_own || name != meta::name(machine) || meta::is_deleting(machine) || part.has_served(machine) {
        return Ok(false);
    }
    Ok(view.get_for_fields(kind, namespace, name, &["/metadata/uid"]).await?.is_none())
}

/// Objects of a kind that the set owns and that are clones.
async fn untaken(view: &View, namespace: &str, kind: &Kind, uid: &str) -> Result<Vec<Arc<Value>>, ReconcileError> {
    let owned = view.list(kind, Some(namespace), &Selector::owned_by(uid)).await?;
    Ok(owned.into_iter().filter(|clone| meta::annotation(clone, annotations::CLONED_FROM_NAME).is_some()).collect())
}
