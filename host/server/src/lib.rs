//! The host put together: an API server, the core's reconcilers, providers, and what an API server elsewhere needs of them.
//!
//! ```text
//! up ──► embedded ─┐
//!                  ├─► host ──► controllers of core, and of the providers that the loader loads
//! run ─► webhook ──┘
//! ```
//!
//! [`up`] is a management cluster in one process, [`run`] a host against an API server that is there already, guarded by a Lease.
//! Both start [`host`], which installs CRDs and WasmProviders and runs every controller over one client; where the API server is
//! embedded, it asks this process to convert and to admit, otherwise the [`webhook`] is asked. Nothing here knows arguments.

mod admission;
mod artifacts;
pub mod bundle;
pub mod compile;
mod conversion;
pub mod diagnostics;
pub mod embedded;
pub mod engine;
mod fenced;
pub mod files;
pub mod host;
pub mod leadership;
pub mod readiness;
pub mod run;
mod store_metrics;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod up;
pub mod webhook;
