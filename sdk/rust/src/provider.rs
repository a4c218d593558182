//! What a provider implements: one trait per role, and [`Provider`] for all.
//!
//! Every function is level-triggered: it is called again whenever something that it read changed, and from its start
//! after a crash. Whatever it did outside must be found again by name, not remembered.

use serde_json::Value;

use crate::host::Host;
use crate::outcome::Outcome;
use crate::problem::Problem;
use capwasm_api::descriptor::Descriptor;

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

/// Where an API server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Where machines can be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureDomain {
    /// Unique in the cluster.
    pub name: String,
    /// Whether control-plane machines may be placed there.
    pub control_plane: bool,
    /// Provider's own.
    pub attributes: Vec<(String, String)>,
}

/// Kinds of machine addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum AddressKind {
    Hostname,
    ExternalIp,
    InternalIp,
    ExternalDns,
    InternalDns,
}

impl AddressKind {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            AddressKind::Hostname => "Hostname",
            AddressKind::ExternalIp => "ExternalIP",
            AddressKind::InternalIp => "InternalIP",
            AddressKind::ExternalDns => "ExternalDNS",
            AddressKind::InternalDns => "InternalDNS",
        }
    }
}

/// An address of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What kind.
    pub kind: AddressKind,
    /// Name or address.
    pub value: String,
}

/// What an infrastructure cluster looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterAnswer {
    /// Machines may be made. Latches.
    pub provisioned: bool,
    /// Latches.
    pub endpoint: Option<Endpoint>,
    /// May be empty.
    pub failure_domains: Vec<FailureDomain>,
}

/// The infrastructure that all machines of a cluster share.
pub trait InfrastructureCluster {
    /// Brings it nearer to what `object` asks for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem>;
    /// True when nothing is left.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// What a machine looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineAnswer {
    /// The machine runs. Latches.
    pub provisioned: bool,
    /// Equal to the Node's. Latches.
    pub provider_id: Option<String>,
    /// May be empty.
    pub addresses: Vec<Address>,
    /// Where it was placed.
    pub failure_domain: Option<String>,
}

/// One machine.
pub trait InfrastructureMachine {
    /// Brings it nearer to what `object` asks for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem>;
    /// True when nothing is left.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// What a pool of machines looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolAnswer {
    /// The pool stands. Latches.
    pub provisioned: bool,
    /// Of the instances that there are, each equal to its Node's.
    pub provider_ids: Vec<String>,
    /// How many instances there are.
    pub replicas: u32,
}

/// Machines that are made, counted and replaced together.
pub trait InfrastructureMachinePool {
    /// Brings them nearer to what `object` and the MachinePool ask for.
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<PoolAnswer, Problem>;
    /// True when nothing is left.
    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// Formats of bootstrap data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Format {
    CloudConfig,
    Ignition,
}

impl Format {
    /// As it stands in the Secret.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::CloudConfig => "cloud-config",
            Format::Ignition => "ignition",
        }
    }
}

/// What a machine runs to become a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapData {
    /// Of `value`.
    pub format: Format,
    /// The document.
    pub value: Vec<u8>,
}

/// Makes bootstrap data.
pub trait Bootstrap {
    /// The data, or none when the Secret should stay as it is.
    fn generate(cx: &mut Context<'_>, object: &Value) -> Result<Option<BootstrapData>, Problem>;
    /// True when nothing is left.
    fn release(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem>;
}

/// What a control plane looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlPlaneAnswer {
    /// The first API server answers. Latches.
    pub initialized: bool,
    /// Only where the control plane provides it.
    pub endpoint: Option<Endpoint>,
    /// The lowest of all machines.
    pub version: Option<String>,
    /// Machines.
    pub replicas: u32,
    /// Ready machines.
    pub ready: u32,
    /// Available machines.
    pub available: u32,
    /// Machines that are as the spec wants them.
    pub up_to_date: u32,
    /// Label selector of the machines.
    pub selector: String,
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
