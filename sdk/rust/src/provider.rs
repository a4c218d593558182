//! What a provider implements: one trait per role, and [`Provider`] for all.
//!
//! Every function is level-triggered: it is called again whenever something that it read changed, and from its start
//! after a crash. Whatever it did outside must be found again by name, not remembered.

use capwasm_contract::descriptor::Descriptor;
use capwasm_contract::{BootstrapData, ClusterAnswer, ControlPlaneAnswer, MachineAnswer, Outcome, PoolAnswer, Problem};
use serde_json::Value;

use crate::host::Host;

/// One call: whom to ask, and where to put what should be.
pub struct Context<'a> {
    /// Facts and capabilities.
    pub host: &'a dyn Host,
    /// What should be.
    pub out: Outcome,
}

impl<'a> Context<'a> {
    /// A context with an empty outcome.
    pub fn new(host: &'a dyn Host) -> Context<'a> {
        Context { host, out: Outcome::default() }
    }

    /// The first related object of a role, where there is at most one.
    pub fn related_one(&self, role: &str) -> Option<Value> {
        self.host.related(role).into_iter().next()
    }
}

/// Every provider says what it is.
pub trait Provider {
    /// The same document every time; see [`crate::Description`].
    fn describe() -> Descriptor;
}

/// The infrastructure that all machines of a cluster share.
pub trait InfrastructureCluster {
    /// Brings it nearer to what `object` asks for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem>;
    /// True when nothing is left.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// One machine.
pub trait InfrastructureMachine {
    /// Brings it nearer to what `object` asks for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem>;
    /// True when nothing is left.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// Machines that are made, counted and replaced together.
pub trait InfrastructureMachinePool {
    /// Brings them nearer to what `object` and the MachinePool ask for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<PoolAnswer, Problem>;
    /// True when nothing is left.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// Makes bootstrap data.
pub trait Bootstrap {
    /// The data, or none when the Secret should stay as it is.
    fn generate(cx: &mut Context<'_>, object: &Value) -> Result<Option<BootstrapData>, Problem>;
    /// True when nothing is left.
    fn release(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// The machines that run a cluster's API servers.
pub trait ControlPlane {
    /// Brings them nearer to what `object` asks for.
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<ControlPlaneAnswer, Problem>;
    /// True when nothing is left.
    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// Any kind of the provider's own that is none of the others. A provider with several such kinds tells them apart by
/// [`object::kind`](crate::object::kind).
pub trait Controller {
    /// Brings what `object` stands for nearer to what it asks for.
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem>;
    /// True when nothing is left.
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
