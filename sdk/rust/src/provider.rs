//! What a provider implements: one trait per role, and [`Provider`] for all.
//!
//! Every function is level-triggered: it is called again whenever something that it read changed, and from its start
//! after a crash. Whatever it did outside must be found again by name, not remembered.

use capwasm_contract::descriptor::Descriptor;
use capwasm_contract::{BootstrapData, ClusterAnswer, ControlPlaneAnswer, MachineAnswer, Outcome, PoolAnswer, Problem};
use serde_json::Value;

use crate::host::Host;

/// What a role function works with: the host to ask, and the outcome to fill.
pub struct Context<'a> {
    /// Facts of the call, reads and capabilities.
    pub host: &'a dyn Host,
    /// Status, conditions, events and writes to other objects. The host carries them out after the call, also when it returns a
    /// problem, but not after a panic.
    pub out: Outcome,
}

impl<'a> Context<'a> {
    /// A context with an empty outcome.
    pub fn new(host: &'a dyn Host) -> Context<'a> {
        Context { host, out: Outcome::default() }
    }

    /// The first object of [`Host::related`]; for roles of which there is at most one, such as `cluster`.
    pub fn related_one(&self, role: &str) -> Option<Value> {
        self.host.related(role).into_iter().next()
    }
}

/// What every provider implements: who it is, and what it serves.
pub trait Provider {
    /// Name, version, kinds and wanted grants, built with [`crate::Description`]. The same document every time; no host can be
    /// asked.
    fn describe() -> Descriptor;
}

/// The infrastructure that all machines of a cluster share.
pub trait InfrastructureCluster {
    /// Makes or changes what `object` asks for. `provisioned` and the endpoint of the answer latch: they are never taken back.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem>;
    /// Called while the object is being deleted. `true` when nothing is left, which removes the finalizers; after `false` it is
    /// called again when something that it read changes, or after its `wake_after`.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// The server, container or VM behind one Machine.
pub trait InfrastructureMachine {
    /// Makes or changes what `object` asks for. `provider_id` and `provisioned` of the answer latch: they are never taken back.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem>;
    /// As [`InfrastructureCluster::deprovision`].
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// Machines that are made, counted and replaced together.
pub trait InfrastructureMachinePool {
    /// Makes, replaces and removes instances as `object` and the MachinePool (`machine-pool`) ask for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<PoolAnswer, Problem>;
    /// As [`InfrastructureCluster::deprovision`].
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// What a machine runs to become a node.
pub trait Bootstrap {
    /// The bootstrap data, which the host stores in a Secret; `None` leaves a Secret that is there as it is. Called again once it
    /// is there; data for a Machine is then ignored, and for a MachinePool it replaces the Secret's.
    fn generate(cx: &mut Context<'_>, object: &Value) -> Result<Option<BootstrapData>, Problem>;
    /// As [`InfrastructureCluster::deprovision`].
    fn release(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// The machines that run a cluster's API servers.
pub trait ControlPlane {
    /// Makes, changes or removes control-plane Machines as `object` asks for. `initialized` of the answer latches.
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<ControlPlaneAnswer, Problem>;
    /// As [`InfrastructureCluster::deprovision`].
    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// Any kind of the provider's own that is none of the others. A provider with several such kinds tells them apart by
/// [`object::kind`](crate::object::kind).
pub trait Controller {
    /// Makes or changes what `object` asks for.
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem>;
    /// As [`InfrastructureCluster::deprovision`].
    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// The API versions of a provider's kinds. Pure: it has no host to ask.
pub trait Conversion {
    /// `object` in the API version `to` (`group/version`), with nothing lost.
    fn convert(object: Value, to: &str) -> Result<Value, Problem>;
}

/// Defaults and rules of the kinds that are described with [`Kind::admission`](crate::Kind::admission), beyond what the
/// schemas of their CRDs say. Pure: it has no host to ask. A provider with several such kinds tells them apart by
/// [`object::kind`](crate::object::kind).
///
/// ```
/// use capwasm_sdk::{Admission, Problem};
/// use serde_json::{Value, json};
///
/// struct Boxes;
///
/// impl Admission for Boxes {
///     fn default(mut object: Value, _: Option<&Value>) -> Result<Value, Problem> {
///         if object["spec"]["size"].is_null() {
///             object["spec"]["size"] = json!("small");
///         }
///         Ok(object)
///     }
///     fn validate(object: &Value, old: Option<&Value>) -> Result<Vec<String>, Problem> {
///         match old {
///             Some(old) if old["spec"]["size"] != object["spec"]["size"] => {
///                 Err(Problem::invalid("SizeImmutable", "spec.size: may not change; make another box"))
///             }
///             _ => Ok(Vec::new()),
///         }
///     }
/// }
///
/// let small = <Boxes as Admission>::default(json!({"spec": {}}), None).unwrap();
/// assert_eq!(small["spec"]["size"], "small");
/// assert!(Boxes::validate(&json!({"spec": {"size": "large"}}), Some(&small)).is_err());
/// ```
pub trait Admission {
    /// `object` with what its author left out; without this, as it is. `old` is the stored one, none when it is created.
    fn default(object: Value, _old: Option<&Value>) -> Result<Value, Problem> {
        Ok(object)
    }
    /// Refuses with a problem, or warns the client with the texts that it returns.
    fn validate(object: &Value, old: Option<&Value>) -> Result<Vec<String>, Problem>;
}
