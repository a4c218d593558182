//! Between real servers: a management server without a socket, workload servers over TLS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod connections;
mod etcd;
mod hostile;
mod simulated_engine;
mod support;
