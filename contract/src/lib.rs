//! The vocabulary of the provider contract (`wit/provider.wit`) as plain types: what a host hands to a provider, what it gets
//! back, and how both are recorded.
//!
//! The host, the SDK and whatever reads recordings speak of the same things through this crate. It knows neither wasmtime nor
//! the bindings that are generated from the WIT: the host and the SDK convert at their edge. It builds for components too.
//! [`payload`] says how bytes are written; everything else has the names of the contract, in camelCase.

mod answer;
mod call;
pub mod descriptor;
mod etcd;
mod failure;
pub mod host_keys;
mod http;
mod outcome;
pub mod payload;
mod pki;
mod problem;
pub mod recording;
mod reference;
mod refused;

pub use answer::{
    Address, AddressKind, Answer, BootstrapData, ClusterAnswer, ControlPlaneAnswer, Endpoint, FailureDomain, Format,
    MachineAnswer, PoolAnswer,
};
pub use call::{Facts, Function};
pub use etcd::EtcdMember;
pub use failure::Failure;
pub use http::HttpResponse;
pub use outcome::{Condition, Event, Operation, Outcome};
pub use pki::{Algorithm, Pair, Subject};
pub use problem::{Fault, Problem};
pub use reference::{ObjectRef, Place, Selection};
pub use refused::{Optional, Refusal, Refused};
