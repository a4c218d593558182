//! Runs provider components.
//!
//! A provider is a WebAssembly component that exports functions from what was observed to what should be
//! (`wit/provider.wit`). This crate turns its bytes into a [`Provider`] and calls it; it knows wasmtime and nothing of
//! Kubernetes clients, which reach a guest only through the small traits in [`call`].
//!
//! ```no_run
//! use capwasm_contract::{Facts, Function};
//! use capwasm_runtime::{Call, Capabilities, Grants, Limits, Runtime, RuntimeOptions};
//! use std::sync::Arc;
//!
//! # async fn example(bytes: Vec<u8>, machine: String) -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::new(RuntimeOptions::default())?;
//! let provider = runtime.load(&bytes, Limits::default()).await?;
//! let reply = provider
//!     .call(Call {
//!         function: Function::MachineProvision,
//!         object: machine,
//!         facts: Facts { now_ms: 1_700_000_000_000, attempt: 1, id: "a1".into(), ..Facts::default() },
//!         capabilities: Capabilities::none(),
//!         grants: Arc::new(Grants::default()),
//!         seed: 7,
//!         recorder: None,
//!     })
//!     .await?;
//! println!("{:?}, {} operations", reply.answer, reply.outcome.operations.len());
//! # Ok(())
//! # }
//! ```
//!
//! What holds for every call:
//! - A fresh instance, dropped afterwards; a panic in host code fails this call alone.
//! - Limits on memory, CPU time, wall time, results and log lines; see [`Limits`]. A limit that is passed fails the call.
//! - Every capability answers `denied` unless [`Grants`] cover the call, before any trait is asked.
//! - WASI 0.2 is linked with nothing behind it: no files, sockets, environment. Its clocks and random numbers follow
//!   from [`Facts::now_ms`](capwasm_contract::Facts::now_ms) and [`Call::seed`].

mod aot;
mod bindings;
mod budget;
mod call;
mod capability;
mod compile;
mod engine;
mod external;
mod failure;
#[doc(hidden)]
pub mod fuzzing;
mod grants;
mod http;
mod limits;
mod load;
mod meter;
mod places;
mod precompiled;
mod provider;
pub mod record;
mod reply;
mod runtime;
mod state;
mod untrusted;
mod wasi;

pub use call::{Call, Capabilities, Etcd, Lookup, Secrets, ServingCertificates};
pub use compile::{ChildProcess, CompileError, CompileLimits, Compiler, InProcess, serve as serve_compilation};
pub use failure::CallError;
pub use grants::{ClientCertificate, GrantError, Grants, NamedEndpoint, Origin, Rule};
pub use http::{HttpClient, HttpRequest, HttpResponse, Network};
pub use limits::Limits;
pub use load::{LoadError, SUPPORTED_CONTRACTS, digest};
pub use precompiled::{Precompiled, attach as attach_precompiled};
pub use provider::{Provider, PureError, PureReply};
pub use reply::{CallStats, Reply};
pub use runtime::{Runtime, RuntimeError, RuntimeOptions};
