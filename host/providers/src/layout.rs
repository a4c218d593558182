//! Where the fields of a kind stand, by its role, the contract in force and its schema. Worked out once per generation: a call
//! asks no schema, and no role.

mod schema;

use capwasm_api::conditions;
use capwasm_api::contract::Contract;
use capwasm_contract::descriptor::KindDescriptor;
use serde_json::Value;

pub use self::schema::Schema;
use crate::field::{Field, READY, provisioned};
use crate::own_paths::OwnPaths;

/// Where the fields of one kind stand.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The contract version in force.
    pub contract: Contract,
    /// The shape of `status.conditions`; none where the kind has no conditions that the host may write.
    pub conditions: Option<ConditionShape>,
    /// The condition that sums up what the host knows of a call.
    pub summary: Summary,
    /// Where it says that the object is provisioned: first as the contract has it, then with the words that the schema has
    /// besides, so that cores of either contract read it.
    pub provisioned: Vec<Field>,
    /// What is set once and never taken back, whatever a later call answers.
    pub latches: Vec<Field>,
    /// Top-level fields of the status that are never the guest's.
    pub reserved: &'static [&'static str],
    /// There is room for `spec.controlPlaneEndpoint`.
    pub endpoint: bool,
    /// There is room for `status.failureDomain`.
    pub failure_domain: bool,
    /// There is room for `status.observedGeneration`.
    pub observed_generation: bool,
    /// Flags that the schema requires of a status, by their keys in it.
    pub required: Vec<String>,
    /// What the provider may write outside of status.
    pub own: OwnPaths,
}

/// How a condition is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionShape {
    /// With a severity where it is false, and neither reason nor message where it is true.
    V1Beta1,
    /// metav1: always with a reason and a message.
    Metav1,
}

/// The condition that sums up what the host knows of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// `Ready`, which the host alone writes.
    Ready,
    /// `Available`, which the provider reports by itself: the host says only what the provider cannot, that a call failed.
    Available,
}

impl Summary {
    /// Its type.
    pub fn name(self) -> &'static str {
        match self {
            Summary::Ready => "Ready",
            Summary::Available => "Available",
        }
    }
}

impl Layout {
    /// What all roles have in common; a role's module changes what is different there.
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

    /// The latches of what is provisioned: some kinds of the older contract have the newer one's word as well.
    pub fn provisioned_latches(&self) -> impl Iterator<Item = Field> {
        let newer = provisioned(Contract::V1Beta2);
        (self.contract == Contract::V1Beta1).then_some(READY).into_iter().chain([newer])
    }

    /// Whether an object says that it is provisioned, as its contract has it.
    pub fn is_provisioned(&self, object: &Value) -> bool {
        self.provisioned.first().is_some_and(|field| field.is_true(object))
    }

    /// Whether the status brings nothing that anybody but people acts on. What the provider says `may_wait` until then is news
    /// once somebody relies on it.
    pub fn is_informational(&self, before: &Value, after: &Value, may_wait: &[String]) -> bool {
        let names = if self.is_provisioned(before) { &[] } else { may_wait };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        conditions::is_informational(before, after, &names)
    }
}
