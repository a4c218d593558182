//! The provider as its host calls it, pass after pass on a test host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "reconcile/deletion.rs"]
mod deletion;
#[path = "reconcile/health.rs"]
mod health;
#[path = "reconcile/ownership.rs"]
mod ownership;
#[path = "reconcile/provisioning.rs"]
mod provisioning;
#[path = "reconcile/rollout.rs"]
mod rollout;
#[path = "reconcile/world.rs"]
mod world;
