//! End-to-end tests, over the binaries as a user runs them.
//!
//! ```text
//! Management  ── spawns ──►  capwasm up  ── spawns ──►  capwasm sim
//!     │                          ▲                          ▲
//!     └─ Objects, History ───────┘ (TLS, kubeconfig)        │
//!     └─ Engine ────────────────────────────────────────────┘ (Docker Engine API)
//! ```
//!
//! Everything that a test starts names the test's [`folder::Folder`] in its command line and ends with it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: a broken set-up is a failed test")]

pub mod api_server;
pub mod binary;
pub mod engine;
pub mod folder;
pub mod history;
pub mod management;
pub mod objects;
pub mod openstack;
pub mod real;
pub mod registry;
pub mod sample;
pub mod seed;
pub mod wait;

pub use capwasm_test_support::{guests, skip};
