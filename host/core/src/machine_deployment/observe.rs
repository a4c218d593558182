//! Input of a decision about a MachineDeployment.

use std::sync::Arc;

use capwasm_api::kinds::{MachineDeployment, MachineSet};
use capwasm_api::names::labels;
use capwasm_object::selector;
use capwasm_reconcile::{Pass, ReconcileError, Selector};
use jiff::Timestamp;
use serde_json::Value;

use super::sets;
use crate::{draft, kinds, ownership};

/// The MachineDeployment with related objects.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    pub(super) deployment: MachineDeployment,
    pub(super) now: Timestamp,
    pub(super) cluster: Option<Arc<Value>>,
    /// MachineSets that the deployment controls, and those of its that nobody controls (any more).
    pub(super) sets: Vec<Set>,
    /// Machines that match the selector.
    pub(super) machines: Vec<Arc<Value>>,
}

#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) object: Arc<Value>,
    pub(super) typed: MachineSet,
}

impl Observed {
    pub(super) fn is_deleting(&self) -> bool {
        self.deployment.metadata.is_deleting()
    }

    /// `spec.replicas`, by default 1.
    pub(super) fn replicas(&self) -> i64 {
        i64::from(self.deployment.spec.replicas.unwrap_or(1))
    }
}

pub(super) fn set(object: Arc<Value>) -> Result<Set, ReconcileError> {
    let typed = draft::read(&object)?;
    Ok(Set { object, typed })
}

pub(super) async fn observe(pass: &Pass<'_>) -> Result<Observed, ReconcileError> {
    let deployment: MachineDeployment = draft::read_defaulted(&pass.object)?;
    let (view, namespace) = (pass.view, pass.key.namespace.as_str());
    let cluster =
        view.get_for_fields(&kinds::cluster(), namespace, &deployment.spec.cluster_name, &["/spec/paused"]).await?;
    let uid = deployment.metadata.uid.as_str();
    let cluster_name = deployment.spec.cluster_name.as_str();
    let selected = match Selector::from_label_selector(&deployment.spec.selector) {
        Ok(wanted) if !selector::is_empty(&deployment.spec.selector) => {
            Some(wanted.and_label(labels::CLUSTER_NAME, cluster_name))
        }
        _ => None,
    };
    // By owner, by label and by name: what lost some of them is still there, and counts.
    let mut found = view.list(&kinds::machine_set(), Some(namespace), &Selector::owned_by(uid)).await?;
    let mut machines = Vec::new();
    if let Some(selected) = &selected {
        found.extend(view.list(&kinds::machine_set(), Some(namespace), selected).await?);
        machines = view.list(&kinds::machine(), Some(namespace), selected).await?;
    }
    for name in sets::unseen_names(&pass.object, &deployment, &found) {
        found.extend(view.get(&kinds::machine_set(), namespace, &name).await?);
    }
    let sets = ownership::claimed(found, uid, cluster_name).into_iter().map(set).collect::<Result<_, _>>()?;
    Ok(Observed { object: pass.object.clone(), deployment, now: pass.now, cluster, sets, machines })
}
