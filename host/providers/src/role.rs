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
use capwasm_reconcile::{CacheError, Operation};
use serde_json::Value;

use crate::belongings::{Belongings, Owner, Waiting};
use crate::draft::Draft;
use crate::layout::{Layout, Schema};
use crate::related::Related;

/// The exported functions of a role.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    /// Brings an object about.
    pub reconcile: Function,
    /// Removes what was made for it.
    pub delete: Function,
}

/// What is particular to a role.
#[async_trait]
pub trait Rules: Send + Sync {
    /// What is called.
    fn functions(&self) -> Functions;

    /// Who may own an object, the first that does counts. Without any, nobody has to.
    fn owners(&self) -> &'static [Owner];

    /// Whether the object is somebody else's to manage.
    fn is_left_alone(&self, _object: &Value) -> bool {
        false
    }

    /// What has to be there before anything is done for an object.
    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting>;

    /// What has to be there, once the finalizer is, before the provider is called.
    fn waits_for_data(&self, _object: &Value, _belongings: &Belongings) -> Result<(), Waiting> {
        Ok(())
    }

    /// Adds what a call is told about, besides owner and Cluster.
    async fn relate(&self, _related: &mut Related<'_>, _cluster: &Value) -> Result<(), CacheError> {
        Ok(())
    }

    /// Where the fields stand, from where they stand in common.
    fn layout(&self, schema: &Schema<'_>, common: Layout) -> Layout;

    /// The write to another object that an answer asks for and rests on.
    fn operation(&self, _object: &Value, _belongings: &Belongings, _answer: &Answer) -> Option<Operation> {
        None
    }

    /// Writes an answer. One of another role says nothing; the runtime makes none.
    fn answer(&self, draft: &mut Draft<'_>, answer: &Answer);
}

/// The rules of a role; none for templates, which are served and never reconciled.
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

/// A kind of a generation that is reconciled.
pub struct ServedKind {
    /// As the provider describes it.
    pub descriptor: KindDescriptor,
    /// What is particular to its role.
    pub rules: &'static dyn Rules,
    /// Where its fields stand.
    pub layout: Layout,
}

impl ServedKind {
    /// A kind under a contract version; none for templates.
    pub fn new(descriptor: KindDescriptor, contract: Contract) -> Option<Self> {
        let rules = rules(descriptor.role)?;
        let schema = Schema::of(&descriptor.crd, &descriptor.version);
        let layout = rules.layout(&schema, Layout::common(&descriptor, &schema, contract));
        Some(Self { descriptor, rules, layout })
    }
}
