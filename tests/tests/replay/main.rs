//! Calls of a running host, recorded, and made again without it: by the same components, by another one, and natively.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod again;
mod commands;
mod hosts;
mod recorded;
