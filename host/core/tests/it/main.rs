//! Core against the embedded API server, with a provider that is a few lines of test code and a second server as workload cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod life;
mod pool;
mod provider;
mod world;
