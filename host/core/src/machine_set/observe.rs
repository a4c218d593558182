//! Input of a decision about a MachineSet.

use std::sync::Arc;

use capwasm_api::contract::ControlPlane;
use capwasm_api::kinds::{ContractReference, MachineSet};
use capwasm_api::names::{annotations, labels};
use capwasm_object::{json, meta, selector};
use capwasm_reconcile::interests::Fields;
use capwasm_reconcile::{CacheError, Kind, Pass, ReconcileError, Selector, View};
use jiff::Timestamp;
use serde_json::Value;

use super::naming;
use crate::external::{self, External};
use crate::{draft, kinds, ownership};

/// The MachineSet with related objects.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    pub(super) set: MachineSet,
    pub(super) now: Timestamp,
    pub(super) cluster: Option<Arc<Value>>,
    pub(super) control_plane: Option<External<ControlPlane>>,
    /// The MachineDeployment of the set; only its annotations, replicas and remediation wake.
    pub(super) deployment: Option<Arc<Value>>,
    /// `None` without a bootstrap template.
    pub(super) bootstrap: Option<External<()>>,
    pub(super) infrastructure: External<()>,
    /// Those that the set controls, and those of its that nobody controls (any more); including those that are being
    /// deleted.
    pub(super) machines: Vec<Arc<Value>>,
    /// Those of `machines` that are to be taken over.
    pub(super) strays: Vec<Arc<Value>>,
    /// Machines with the part whose clone does not exist yet.
    pub(super) bare: Vec<(Arc<Value>, Part)>,
    /// Clones that the set owns, as upstream creates them, and that no Machine has taken.
    pub(super) clones: Vec<Arc<Value>>,
}

/// A clone for a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Bootstrap,
    Infrastructure,
}

impl Part {
    /// Whether the Machine has used the clone, so that its absence is a loss.
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

/// Fields of a Cluster that wake its sets.
const OF_CLUSTER: Fields = &["/spec/controlPlaneRef", "/spec/paused"];
/// Fields of a control plane that preflight checks read, in either contract.
const OF_CONTROL_PLANE: Fields = &[
    "/spec/version",
    "/status/initialization",
    "/status/initialized",
    "/status/ready",
    "/status/version",
    "/status/versions",
];
/// Fields of a MachineDeployment that wake its sets.
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
    let selected = match Selector::from_label_selector(&set.spec.selector) {
        Ok(selector) if !selector::is_empty(&set.spec.selector) => {
            Some(selector.and_label(labels::CLUSTER_NAME, &set.spec.cluster_name))
        }
        _ => None,
    };
    // By label, by owner and by name: what lost some of them is still there, and counts.
    let mut found = match selected {
        Some(selected) => view.list(&kinds::machine(), Some(namespace), &selected).await?,
        None => Vec::new(),
    };
    found.extend(view.list(&kinds::machine(), Some(namespace), &Selector::owned_by(uid)).await?);
    for name in naming::unseen_names(&set, &found) {
        found.extend(view.get(&kinds::machine(), namespace, &name).await?);
    }
    let machines = ownership::claimed(found, uid, &set.spec.cluster_name);
    let strays = machines.iter().filter(|machine| ownership::is_stray(machine)).cloned().collect();
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

/// Kind of a template's clones; `None` when the object is no template, or the kind is not served.
async fn cloned_kind(view: &View, template: &Value) -> Result<Option<Kind>, ReconcileError> {
    let Some(kind) = meta::kind(template).strip_suffix("Template") else { return Ok(None) };
    match view.kind_at(json::text(template, "/apiVersion").unwrap_or_default(), kind).await {
        Ok(kind) => Ok(Some(kind)),
        Err(CacheError::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a Machine created by the set refers to a clone that does not exist, and never did.
async fn lacks(view: &View, namespace: &str, machine: &Value, part: Part, kind: &Kind) -> Result<bool, ReconcileError> {
    let is_own = meta::annotation(machine, annotations::SLOT).is_some();
    let name = part.reference(machine).filter(|reference| json::text(reference, "/kind") == Some(&*kind.kind));
    let Some(name) = name.and_then(|reference| json::text(reference, "/name")) else { return Ok(false) };
    if !is_own || name != meta::name(machine) || meta::is_deleting(machine) || part.has_served(machine) {
        return Ok(false);
    }
    Ok(view.get_for_fields(kind, namespace, name, &["/metadata/uid"]).await?.is_none())
}

/// Clones of a kind that the set owns.
async fn untaken(view: &View, namespace: &str, kind: &Kind, uid: &str) -> Result<Vec<Arc<Value>>, ReconcileError> {
    let owned = view.list(kind, Some(namespace), &Selector::owned_by(uid)).await?;
    Ok(owned.into_iter().filter(|clone| meta::annotation(clone, annotations::CLONED_FROM_NAME).is_some()).collect())
}
