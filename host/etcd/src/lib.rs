//! Membership of an etcd cluster, over etcd's own gRPC v3 API.
//!
//! A [`Client`] speaks to one member over any byte stream: etcd of a workload cluster is reached through a port-forward, not
//! through an address. Mutual TLS always ([`Credentials`]); what the member shows is verified against the cluster's
//! authority and the name that the caller expects.
//!
//! Only what a control plane needs is here: members, their status and alarms, adding, promoting and removing them, and who
//! leads. With the feature `server` there is the other side too, so that a simulated member can be asked by any etcd client.
//!
//! ```no_run
//! # async fn example(stream: tokio::net::TcpStream, authority: &str, certificate: &str, key: &str) -> Result<(), Box<dyn std::error::Error>> {
//! use capwasm_etcd::{Client, Credentials};
//!
//! let credentials = Credentials::new(authority, certificate, key)?;
//! let member = Client::connect(stream, "node-1", &credentials).await?;
//! let status = member.status().await?;
//! println!("member {:x}, leader {:x}", status.header.unwrap_or_default().member_id, status.leader);
//! # Ok(()) }
//! ```
//!
//! The messages are written down by hand ([`message`]), because generating them needs `protoc` on every machine that builds.

mod client;
mod credentials;
#[doc(hidden)]
pub mod fuzzing;
pub mod message;
#[cfg(feature = "server")]
pub mod server;

pub use client::{Client, ConnectError, Error};
pub use credentials::{Credentials, CredentialsError};
pub use tonic::Code;
