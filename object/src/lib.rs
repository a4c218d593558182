//! Kubernetes objects as JSON: what the host, the API server, the SDK and the providers read and write in an object of any kind.
//!
//! - [`json`] reads and writes by path,
//! - [`bounded`] reads JSON of strangers, charged for what it takes,
//! - [`meta`] reads and writes `metadata`, [`owners`] the owner references in it,
//! - [`selector`] reads label selectors and matches them,
//! - [`conditions`] reads and writes conditions,
//! - [`group_version`] takes an `apiVersion` apart, and orders versions of an API,
//! - [`version`] reads and orders versions of Kubernetes,
//! - [`merge_patch`] makes and applies JSON merge patches (RFC 7396),
//! - [`news`] tells what anybody but people acts on from the rest.
//!
//! Everything here is pure and borrows: no I/O, no clock, no needless copy of a key or a subtree. It builds for the host
//! and for `wasm32-wasip2`, and its size counts there.

#![forbid(unsafe_code)]

pub mod bounded;
pub mod conditions;
pub mod group_version;
pub mod json;
pub mod merge_patch;
pub mod meta;
pub mod news;
pub mod owners;
pub mod selector;
pub mod version;
