//! The runtime with real components: a Rust guest that does what it is told, and hostile ones in text form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod addresses;
mod admission;
mod aot;
mod calls;
mod compile;
mod conversion;
mod grants;
#[path = "../../../../tests/src/guests.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which build plugins too")]
mod guests;
mod http;
mod limits;
mod load;
mod logs;
mod record;
mod requests;
mod responses;
mod servers;
mod support;
