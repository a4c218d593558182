//! The runtime with real components: a Rust guest that follows instructions, and hostile ones in text form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod addresses;
mod admission;
mod aot;
mod calls;
mod compile;
mod conversion;
mod grants;
mod http;
mod limits;
mod load;
mod logs;
mod plugins;
mod record;
mod requests;
mod responses;
mod servers;
mod support;
