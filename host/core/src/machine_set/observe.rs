//! What a decision about a MachineSet needs.

use std::sync::Arc;

use capwasm_api::defaults;
use capwasm_api::kinds::{self as typed, ContractReference, MachineSet};
use capwasm_api::names::{annotations, labels};
use capwasm_api::{json, selector};
use capwasm_reconcile::{CacheError, Pass, ReconcileError, Selector, View};
use jiff::Timestamp;
use serde_json::Value;

use crate::external::{self, External};
use crate::{kinds, ownership};

/// The MachineSet and all that is related to it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    /// With defaults.
    pub(super) set: MachineSet,
    pub(super) now: Timestamp,
    pub(super) cluster: Option<Arc<Value>>,
    pub(super) control_plane: Option<External>,
    /// `None` when the template needs none.
    pub(super) bootstrap: Option<External>,
    pub(super) infrastructure: External,
    /// Its Machines, those that are being deleted too.
    pub(super) machines: Vec<Arc<Value>>,
    /// Machines that match its selector and that nobody controls.
    pub(super) strays: Vec<Arc<Value>>,
    /// Clones that still have the set as an owner: no Machine has taken them.
    pub(super) clones: Vec<Arc<Value>>,
}

impl Observed {
    pub(super) fn is_deleting(&self) -> bool {
        self.set.metadata.is_deleting()
    }
}

pub(super) async fn observe(pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let mut defaulted = (*pass.object).clone();
    defaults::default(&mut defaulted, None);
    let set: MachineSet =
        typed::view(&defaulted).map_err(|error| ReconcileError::failed("InvalidObject", error.to_string()))?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster = view.get(&kinds::cluster(), namespace, &set.spec.cluster_name).await?;
    let reference = cluster.as_deref().and_then(|cluster| cluster.pointer("/spec/controlPlaneRef")).cloned();
    let reference: Option<ContractReference> = reference.and_then(|value| serde_json::from_value(value).ok());
    let control_plane = match &reference {
        Some(reference) => Some(external::read(view, namespace, reference).await?),
        None => None,
    };
    let template = &set.spec.template.spec;
    let bootstrap = match &template.bootstrap.config_ref {
        Some(reference) => Some(external::read(view, namespace, reference).await?),
        None => None,
    };
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
        match ownership::controller_uid(&machine) {
            Some(owner) if owner == uid => machines.push(machine),
            None if !json::is_deleting(&machine) => strays.push(machine),
            _ => {}
        }
    }
    let mut clones = Vec::new();
    for template in [bootstrap.as_ref(), Some(&infrastructure)].into_iter().flatten().filter_map(External::found) {
        clones.extend(untaken(view, namespace, template.0, uid).await?);
    }
    Ok(Observed {
        object: pass.object.clone(),
        set,
        now: pass.now,
        cluster,
        control_plane,
        bootstrap,
        infrastructure,
        machines,
        strays,
        clones,
    })
}

/// Objects of a template's kind that the set owns and that are clones.
async fn untaken(view: &View, namespace: &str, template: &Value, uid: &str) -> Result<Vec<Arc<Value>>, ReconcileError> {
    let Some(kind) = json::kind(template).strip_suffix("Template") else { return Ok(Vec::new()) };
    let api_version = json::text(template, "/apiVersion").unwrap_or_default();
    let kind = match view.kind_at(api_version, kind).await {
        Ok(kind) => kind,
        Err(CacheError::UnknownKind { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let owned = view.list(&kind, Some(namespace), &Selector::owned_by(uid)).await?;
    Ok(owned.into_iter().filter(|clone| json::annotation(clone, annotations::CLONED_FROM_NAME).is_some()).collect())
}
