//! The machinery against the embedded API server, without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod caches;
mod operations;
mod passes;
mod slots;
mod support;
