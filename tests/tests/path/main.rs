//! The whole path on the simulator, arrow by arrow: what a user creates, what controllers make of it, and in which order.
//!
//! One cluster is provisioned while every version of every object is recorded ([`run`]); most tests look at that record.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod cluster;
mod machines;
mod run;
mod scenarios;
mod writes;
