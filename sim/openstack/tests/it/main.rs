//! The simulated OpenStack, as its clients see it. What the answers are held against was read off the real services.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod balancing;
mod boot;
mod client;
mod compute;
mod failures;
mod identity;
mod network;
