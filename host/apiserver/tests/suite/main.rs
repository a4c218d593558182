//! The server as kube-rs sees it. Tests of API behaviour run twice: in-process and over TLS.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod access;
mod collection;
mod custom;
mod fixture;
mod hooks;
mod hostile;
mod kubectl;
mod objects;
mod openstack;
mod patches;
mod port_forward;
mod restart;
mod watches;
