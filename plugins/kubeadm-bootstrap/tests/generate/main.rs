//! The provider as its host calls it: pass after pass on a test host, with the data it ends in read as cloud-init or
//! Ignition reads them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod data;
mod init_lock;
mod refusals;
mod tokens;
mod world;
