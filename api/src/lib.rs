//! Core Cluster API kinds, conditions and contract accessors, for the host and for providers.
//!
//! Everything here is pure: no I/O, no clock, no randomness. It builds for the host and for `wasm32-wasip2`.

pub mod descriptor;
