//! What a decision about a MachineDeployment needs.

use std::sync::Arc;

use capwasm_api::kinds::{MachineDeployment, MachineSet};
use capwasm_api::names::labels;
use capwasm_object::{owners, selector};
use capwasm_reconcile::{Pass, ReconcileError, Selector};
use jiff::Timestamp;
use serde_json::Value;

use crate::{draft, kinds};

/// The MachineDeployment and all that is related to it.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) object: Arc<Value>,
    /// With defaults.
    pub(super) deployment: MachineDeployment,
    pub(super) now: Timestamp,
    pub(super) cluster: Option<Arc<Value>>,
    /// The MachineSets that it controls.
    pub(super) sets: Vec<Set>,
    /// Machines that match its selector.
    pub(super) machines: Vec<Arc<Value>>,
}

/// A MachineSet, untyped and typed.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) object: Arc<Value>,
    pub(super) typed: MachineSet,
}

impl Observed {
    pub(super) fn is_deleting(&self) -> bool {
        self.deployment.metadata.is_deleting()
    }

    /// `spec.replicas`, 1 when it is not set.
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
    let owned = view.list(&kinds::machine_set(), Some(namespace), &Selector::owned_by(uid)).await?;
    let controlled = owned.into_iter().filter(|object| owners::controller_uid(object) == Some(uid));
    let sets = controlled.map(set).collect::<Result<_, _>>()?;
    let machines = match Selector::from_label_selector(&deployment.spec.selector) {
        Ok(wanted) if !selector::is_empty(&deployment.spec.selector) => {
            let wanted = wanted.and_label(labels::CLUSTER_NAME, &deployment.spec.cluster_name);
            view.list(&kinds::machine(), Some(namespace), &wanted).await?
        }
        _ => Vec::new(),
    };
    Ok(Observed { object: pass.object.clone(), deployment, now: pass.now, cluster, sets, machines })
}
