//! What tests of every crate need: components that are built on demand, servers that misbehave, and a way to say that a test
//! cannot run here.
//!
//! Depends on the standard library alone, so that any crate of the workspace can have it under `[dev-dependencies]`.

#![allow(clippy::expect_used, reason = "tests: a broken set-up is a failed test")]

pub mod counting;
pub mod guests;
pub mod hostile;
pub mod http2;
pub mod skip;
