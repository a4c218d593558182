//! OpenStack as a test sees it: the real services of `tests/openstack`, or the fake of `capwasm_sim_openstack::openstack`, through the same
//! client, with a project of the test's own.
//!
//! ```text
//! Project ──► Cloud (token, catalog) ──► the services
//! host    ──► Proxy (counts, cuts, answers instead) ──► the services ◄── Hypervisor (nodes for real Nova's servers)
//! ```

mod access;
mod bed;
mod cloud;
pub mod contract;
mod hypervisor;
pub mod manifests;
mod project;
pub mod proxy;
pub mod shape;

use std::path::PathBuf;

pub use access::Access;
pub use bed::Bed;
pub use cloud::{Answer, Cloud};
pub use hypervisor::Hypervisor;
pub use project::{LOOK, Project};
pub use proxy::Proxy;

use crate::skip;

/// Where the real services' `clouds.yaml` should be.
pub fn clouds_yaml() -> PathBuf {
    std::env::var_os("CAPWASM_OPENSTACK")
        .map_or_else(|| crate::binary::target().join("openstack/clouds.yaml"), PathBuf::from)
}

/// An admin of the real services; otherwise `test` is told to be skipped.
pub fn real(test: &str) -> Option<Access> {
    if !skip::part("openstack", test) {
        return None;
    }
    let file = clouds_yaml();
    match std::fs::read_to_string(&file) {
        Ok(text) => Some(Access::of(&text, "ost-admin")),
        Err(error) => {
            let how = "start the services with `tests/openstack/stack up`";
            skip::skip(test, &format!("{}: {error}; {how}", file.display()));
            None
        }
    }
}
