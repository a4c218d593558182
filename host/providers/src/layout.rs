//! Paths of a kind's fields, by role, contract and schema. Computed once per generation, so that calls look at neither
//! schema nor role.

mod schema;

use capwasm_api::conditions;
use capwasm_api::contract::Contract;
use capwasm_contract::descriptor::KindDescriptor;
use serde_json::Value;

pub use self::schema::Schema;
use crate::field::{Field, READY, provisioned};
use crate::own_paths::OwnPaths;

/// Fields of one kind.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Contract version of the kind's CRD.
    pub contract: Contract,
    /// Format of `status.conditions`; `None` where the host writes none.
    pub conditions: Option<ConditionShape>,
    /// Condition that summarises a call.
    pub summary: Summary,
    /// Fields that say that the object is provisioned: first the contract's, then others of the schema, so that cores
    /// of either contract can read it.
    pub provisioned: Vec<Field>,
    /// Fields that are set once and never change back, whatever a later call answers.
    pub latches: Vec<Field>,
    /// Top-level fields of the status that a guest must not write.
    pub reserved: &'static [&'static str],
    /// Whether the schema has `spec.controlPlaneEndpoint`.
    pub endpoint: bool,
    /// Whether the schema has `status.failureDomain`.
    pub failure_domain: bool,
    /// Whether the schema has `status.observedGeneration`.
    pub observed_generation: bool,
    /// Boolean fields of the status that the schema requires.
    pub required: Vec<String>,
    /// Paths outside of status that the provider may write.
    pub own: OwnPaths,
}

/// Format of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionShape {
    /// Cluster API v1beta1: a severity when False, neither reason nor message when True.
    V1Beta1,
    /// metav1.Condition: always with a reason and a message.
    Metav1,
}

/// The condition that summarises a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// `Ready`, written by the host alone.
    Ready,
    /// `Available`, written by the provider; the host only reports failed calls.
    Available,
}

impl Summary {
    /// Type of the condition.
    pub fn name(self) -> &'static str {
        match self {
            Summary::Ready => "Ready",
            Summary::Available => "Available",
        }
    }
}

impl Layout {
    /// The layout that all roles share; a role's module changes it.
    pub fn common(kind: &KindDescriptor, schema: &Schema<'_>, contract: Contract) -> Self {
        let old = contract == Contract::V1Beta1;
        // By contract, or, of a kind that is in no contract, by its schema.
        let severity = old || schema.names("status.conditions[].severity");
        let newer = provisioned(Contract::V1Beta2);
        let both = old && schema.names(newer.0);
        Self {
            contract,
            conditions: Some(if severity { ConditionShape::V1Beta1 } else { ConditionShape::Metav1 }),
            summary: Summary::Ready,
            provisioned: [provisioned(contract)].into_iter().chain(both.then_some(newer)).collect(),
            latches: Vec::new(),
            reserved: &["conditions"],
            endpoint: true,
            failure_domain: schema.declares("status.failureDomain"),
            observed_generation: schema.declares("status.observedGeneration"),
            required: schema.required_flags(),
            own: OwnPaths::new(&kind.own),
        }
    }

    /// Latches of provisioned: some kinds of contract v1beta1 have v1beta2's field as well.
    pub fn provisioned_latches(&self) -> impl Iterator<Item = Field> {
        let newer = provisioned(Contract::V1Beta2);
        (self.contract == Contract::V1Beta1).then_some(READY).into_iter().chain([newer])
    }

    /// Whether the contract's field says that the object is provisioned.
    pub fn is_provisioned(&self, object: &Value) -> bool {
        self.provisioned.first().is_some_and(|field| field.is_true(object))
    }

    /// Whether the status changes only for human readers. Fields in `may_wait` count as such until the object is
    /// provisioned.
    pub fn is_informational(&self, before: &Value, after: &Value, may_wait: &[String]) -> bool {
        let names = if self.is_provisioned(before) { &[] } else { may_wait };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        conditions::is_informational(before, after, &names)
    }
}
