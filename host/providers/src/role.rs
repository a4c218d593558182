//! What the host does for the objects of a provider's kind follows from the kind's role. Each role has a module, which says
//!
//! - who owns such an object and what it waits for before the provider is called ([`gate`](crate::gate) asks that),
//! - which objects the call is told about ([`related`](crate::related) reads them),
//! - where the fields stand that differ from other roles' ([`layout`](crate::layout)),
//! - how its answer is written ([`write_back`](crate::write_back) has what all answers share).
//!
//! Nothing else asks for a role.

mod bootstrap;
mod control_plane;
mod controller;
mod infrastructure_cluster;
mod infrastructure_machine;
mod machine_pool;

use async_trait::async_trait;
use capwasm_api::contract::Contract;
use capwasm_contract::descriptor::{KindDescriptor, Role};
use capwasm_contract::{Answer, Function};
use capwasm_reconcile::interests::Fields;
use capwasm_reconcile::{CacheError, Operation};
use capwasm_runtime::Grants;
use serde_json::Value;

use crate::belongings::{Belongings, Owner, Waiting};
use crate::draft::Draft;
use crate::layout::{Layout, Schema};
use crate::related::Related;

/// Functions that a component exports for a role.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Creates or updates the external resource.
    pub reconcile: Function,
    /// Deletes the external resource.
    pub delete: Function,
}

/// Rules of a role.
#[async_trait]
pub trait Rules: Send + Sync {
    fn functions(&self) -> Functions;

    /// Kinds that may own an object; the first that does counts. Empty: no owner is needed.
    fn owners(&self) -> &'static [Owner];

    /// What of its owner or Cluster an object has to hear of at once.
    fn news_of(&self, owner: Owner) -> Fields {
        owner.news()
    }

    /// Whether the object is externally managed.
    fn is_left_alone(&self, _object: &Value) -> bool {
        false
    }

    /// Gates before the finalizer.
    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting>;

    /// Gates between the finalizer and the call.
    fn waits_for_data(&self, _object: &Value, _belongings: &Belongings) -> Result<(), Waiting> {
        Ok(())
    }

    /// Adds related objects besides owner and Cluster.
    async fn relate(&self, _related: &mut Related<'_>, _cluster: &Value) -> Result<(), CacheError> {
        Ok(())
    }

    /// The role's changes to the common layout.
    fn layout(&self, schema: &Schema<'_>, common: Layout) -> Layout;

    /// A write to another object that must succeed before the answer is written.
    fn operation(&self, _object: &Value, _belongings: &Belongings, _answer: &Answer) -> Option<Operation> {
        None
    }

    /// Names of Secrets that belong to the object: it gets those back that nobody controls.
    fn own_secrets(&self, _object: &Value, _belongings: &Belongings, _grants: &Grants) -> Vec<String> {
        Vec::new()
    }

    /// A Secret that the object's status names, which anybody may have written.
    fn named_secret<'a>(&self, _object: &'a Value) -> Option<&'a str> {
        None
    }

    /// Writes an answer. Answers of other roles do not occur and are ignored.
    fn answer(&self, draft: &mut Draft<'_>, belongings: &Belongings, answer: &Answer);
}

/// `None` for templates, which are served and never reconciled.
pub fn rules(role: Role) -> Option<&'static dyn Rules> {
    match role {
        Role::InfrastructureCluster => Some(&infrastructure_cluster::InfrastructureCluster),
        Role::InfrastructureMachine => Some(&infrastructure_machine::InfrastructureMachine),
        Role::InfrastructureMachinePool => Some(&machine_pool::MachinePool),
        Role::Bootstrap => Some(&bootstrap::Bootstrap),
        Role::ControlPlane => Some(&control_plane::ControlPlane),
        Role::Controller => Some(&controller::Controller),
        Role::Template => None,
    }
}

/// A reconciled kind of a generation.
pub struct ServedKind {
    /// Description by the provider.
    pub descriptor: KindDescriptor,
    /// Rules of its role.
    pub rules: &'static dyn Rules,
    /// Paths of its fields.
    pub layout: Layout,
}

impl ServedKind {
    /// `None` for templates.
    pub fn new(descriptor: KindDescriptor, contract: Contract) -> Option<Self> {
        let rules = rules(descriptor.role)?;
        let schema = Schema::of(&descriptor.crd, &descriptor.version);
        let layout = rules.layout(&schema, Layout::common(&descriptor, &schema, contract));
        // A schema is most of what a descriptor holds, and has been looked at.
        let descriptor = KindDescriptor { crd: Value::Null, ..descriptor };
        Some(Self { descriptor, rules, layout })
    }
}

#[cfg(test)]
mod tests {
    use capwasm_object::{merge_patch, news};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_object_said_itself_is_no_news_to_it() {
        let rows = [
            ("a pause", Role::InfrastructureCluster, Owner::Cluster, json!({"spec": {"paused": true}}), true),
            (
                "its endpoint",
                Role::InfrastructureCluster,
                Owner::Cluster,
                json!({"spec": {"controlPlaneEndpoint": {"host": "h"}}}),
                false,
            ),
            (
                "that it is provisioned",
                Role::InfrastructureCluster,
                Owner::Cluster,
                json!({"status": {"initialization": {"infrastructureProvisioned": true}}}),
                false,
            ),
            (
                "the control plane",
                Role::InfrastructureCluster,
                Owner::Cluster,
                json!({"status": {"initialization": {"controlPlaneInitialized": true}}}),
                true,
            ),
            (
                "infrastructure",
                Role::Bootstrap,
                Owner::Cluster,
                json!({"status": {"initialization": {"infrastructureProvisioned": true}}}),
                true,
            ),
            (
                "its data",
                Role::Bootstrap,
                Owner::Machine,
                json!({"spec": {"bootstrap": {"dataSecretName": "s"}}}),
                false,
            ),
            (
                "bootstrap data",
                Role::InfrastructureMachine,
                Owner::Machine,
                json!({"spec": {"bootstrap": {"dataSecretName": "s"}}}),
                true,
            ),
            ("its ID", Role::InfrastructureMachine, Owner::Machine, json!({"spec": {"providerID": "p"}}), false),
            (
                "a Node",
                Role::InfrastructureMachine,
                Owner::Machine,
                json!({"status": {"nodeRef": {"name": "n"}}}),
                true,
            ),
            ("a Node", Role::Bootstrap, Owner::Machine, json!({"status": {"nodeRef": {"name": "n"}}}), true),
            ("deletion", Role::Bootstrap, Owner::Machine, json!({"metadata": {"deletionTimestamp": "t"}}), true),
        ];
        let before = json!({"metadata": {"name": "n"}, "spec": {"clusterName": "c"}, "status": {"phase": "Pending"}});
        for (change, role, owner, patch, expected) in rows {
            let mut after = before.clone();
            merge_patch::apply(&mut after, &patch);
            let fields = rules(role).map(|rules| rules.news_of(owner)).unwrap_or_default();
            let is_news = fields.iter().any(|field| news::field(&before, field) != news::field(&after, field));
            assert_eq!(is_news, expected, "{change} to {role:?}");
        }
    }
}
