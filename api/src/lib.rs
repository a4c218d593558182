//! Core Cluster API kinds, conditions and contract accessors, for the host and for providers.
//!
//! Everything here is pure: no I/O, no clock, no randomness. It builds for the host and for `wasm32-wasip2`.
//! Features: `crds` embeds the CustomResourceDefinitions of the core groups (the host wants them, plugins do not).

pub mod conditions;
pub mod contract;
pub mod conversion;
#[cfg(feature = "crds")]
pub mod crds;
pub mod defaults;
pub mod deprecated;
pub mod kinds;
pub mod names;
pub mod time;
pub mod validate;
