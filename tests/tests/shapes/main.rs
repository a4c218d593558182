//! Clusters as their users write them for upstream: Ignition, keys of their own, an etcd elsewhere, files and accounts, large
//! pools, machines that time or misfortune replaces. Each test has a cluster in a namespace of its own on the simulator, and
//! looks in the end that nothing is left of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod bootstrap;
mod cluster;
mod replacement;
mod workers;
