//! SDK for provider authors: write ordinary Rust against traits, test it natively, export it as a component.
//!
//! A provider is a function from what was observed to what should be. It implements [`Provider`] and the traits of its
//! roles, asks its [`Host`] for facts and reads, and collects what should be in an [`Outcome`]. An export macro makes a
//! WebAssembly component of it; natively the same code runs against `test::TestHost`.
//!
//! ```
//! use capwasm_sdk::descriptor::{Descriptor, Role};
//! use capwasm_sdk::test::{TestHost, run};
//! use capwasm_sdk::{
//!     ClusterAnswer, Context, Description, HttpRequest, HttpResponse, InfrastructureCluster, InfrastructureMachine,
//!     Kind, MachineAnswer, Problem, Provider, object,
//! };
//! use serde_json::{Value, json};
//!
//! struct Boxes;
//!
//! impl Provider for Boxes {
//!     fn describe() -> Descriptor {
//!         let crd = |kind: &str| {
//!             let plural = format!("{}s", kind.to_lowercase());
//!             let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
//!             json!({
//!                 "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
//!                 "metadata": {"name": format!("{plural}.boxes.example.org")},
//!                 "spec": {
//!                     "group": "boxes.example.org", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
//!                     "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}}],
//!                 },
//!             })
//!             .to_string()
//!         };
//!         Description::new("boxes", "0.1.0")
//!             .kind(Kind::new(Role::InfrastructureCluster, &crd("BoxCluster")))
//!             .kind(Kind::new(Role::InfrastructureMachine, &crd("Box")).finalizer("boxes.example.org").own("spec.providerID"))
//!             .origin("https://boxes.example.org")
//!             .build()
//!     }
//! }
//!
//! impl InfrastructureCluster for Boxes {
//!     fn provision(_: &mut Context<'_>, _: &Value) -> Result<ClusterAnswer, Problem> {
//!         Ok(ClusterAnswer { provisioned: true, ..ClusterAnswer::default() })
//!     }
//!     fn deprovision(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
//!         Ok(true)
//!     }
//! }
//!
//! impl InfrastructureMachine for Boxes {
//!     fn provision(cx: &mut Context<'_>, machine: &Value) -> Result<MachineAnswer, Problem> {
//!         let id = object::uid(machine);
//!         // PUT to a name of our own choice: a repeated call meets itself.
//!         let answer = cx.host.http(&HttpRequest::new("PUT", format!("https://boxes.example.org/{id}")))?;
//!         let on = answer.status == 200;
//!         cx.out.condition("BoxRunning", Some(on), if on { "Running" } else { "Starting" }, "");
//!         Ok(MachineAnswer { provisioned: on, provider_id: Some(format!("box:///{id}")), ..MachineAnswer::default() })
//!     }
//!     fn deprovision(cx: &mut Context<'_>, machine: &Value) -> Result<bool, Problem> {
//!         let url = format!("https://boxes.example.org/{}", object::uid(machine));
//!         Ok(cx.host.http(&HttpRequest::new("DELETE", url))?.status == 404)
//!     }
//! }
//!
//! capwasm_sdk::export_infrastructure_provider!(Boxes);
//!
//! let host = TestHost::new().http(|_| Ok(HttpResponse { status: 200, ..HttpResponse::default() }));
//! let machine = json!({"metadata": {"uid": "u1"}});
//! let (answer, outcome) = run(&host, |cx| <Boxes as InfrastructureMachine>::provision(cx, &machine));
//! assert_eq!(answer.unwrap().provider_id.as_deref(), Some("box:///u1"));
//! assert_eq!(outcome.condition_named("BoxRunning").unwrap().status, Some(true));
//! assert_eq!(host.requests()[0].url, "https://boxes.example.org/u1");
//! ```
//!
//! A panic becomes a trap: the host reports its message, and the outcome of that call is lost.

#[cfg(all(feature = "crds", not(target_family = "wasm")))]
pub mod crd;
mod description;
mod export;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
mod host;
pub mod object;
mod partial_json;
mod provider;
#[cfg(not(target_family = "wasm"))]
pub mod test;

pub use capwasm_api as api;
pub use capwasm_contract::descriptor;
pub use capwasm_contract::{
    Address, AddressKind, Algorithm, BootstrapData, ClusterAnswer, Condition, ControlPlaneAnswer, Endpoint, EtcdMember,
    Event, FailureDomain, Fault, Format, HttpResponse, MachineAnswer, ObjectRef, Operation, Optional, Outcome, Pair,
    Place, PoolAnswer, Problem, Refusal, Refused, Selection, Subject,
};
pub use capwasm_object::{conditions, selector};

pub use description::{CONTRACT, Description, Kind};
pub use host::{Host, HttpRequest, Level};
pub use provider::{
    Admission, Bootstrap, Context, ControlPlane, Controller, Conversion, InfrastructureCluster, InfrastructureMachine,
    InfrastructureMachinePool, Provider,
};
