//! Embedded Kubernetes API server.
//!
//! One generic REST store over JSON serves every kind, built-in or from a CustomResourceDefinition:
//!
//! - [`Store`]: revisioned, durable, shared by any number of servers ("keyspaces"); see its module for the guarantees.
//! - the registry: create, read, update, patch and delete with the rules of Kubernetes, steered by a catalog of resources
//!   and a few strategies; lists and watches over the bytes that the store holds.
//! - the handler: paths, content negotiation, authentication, authorisation, discovery, OpenAPI.
//! - controllers: garbage collection, namespaces, custom-resource cleanup, expiry of events, signing of node certificates.
//!
//! What is not there: webhooks (stored, never called; use [`ServerConfig::admission`],
//! [`ServerConfig::admitter`] and [`ServerConfig::converter`]), API
//! aggregation, ServiceAccount tokens, quotas and priority, protobuf *responses*, `/openapi/v2`, pods' log, exec and
//! attach, port-forwards over SPDY (over WebSockets there are, see [`PortForward`]), graceful deletion (there is no kubelet
//! to wait for), and the workload controllers (Deployments are stored, and nobody makes pods of them).
//!
//! [`Server::client`] is a `kube::Client` without a socket; [`Server::serve`] is the same server over TLS for everyone else.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use capwasm_apiserver::{Identity, Server, ServerConfig, Store};
//!
//! let store = Store::memory()?;
//! let server = Server::start(store, ServerConfig::new("management")).await?;
//! let client: kube::Client = server.client(Identity::admin("capwasm"));
//! # Ok(()) }
//! ```

mod apply;
pub mod bounded_patch;
mod builtin;
mod catalog;
mod config;
mod controllers;
mod crd;
mod field_selector;
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod identity;
mod openapi;
pub mod pki;
mod protobuf;
mod registry;
mod request;
mod schema;
mod server;
mod status;
mod store;
mod strategic;
mod table;
mod tree;
mod turn;

pub use config::{
    Admission, AdmissionError, Admitter, Authenticator, ByteStream, CertificateSigner, Clock, ConversionError,
    ConvertedKind, Converter, GroupKind, NotAdmitted, PortForward, ServerConfig, SigningRequest,
};
pub use handler::{Body, version_info};
pub use identity::Identity;
pub use server::{Filter, FirstRequest, InProcess, Server, ServerError, connections};
pub use store::{
    Finding, Findings, Repaired, Retention, Store, StoreError, check as check_store, repair as repair_store,
};
