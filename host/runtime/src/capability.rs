//! The interfaces that a guest imports, one module each.
//!
//! Each module has a view that borrows what the capability needs from the call's state, the generated `Host` trait for
//! that view, and `add_to_linker`. A view checks the grants first and asks the host's trait only then.

pub(crate) mod call;
pub(crate) mod etcd;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod lookup;
pub(crate) mod names;
pub(crate) mod outcome;
pub(crate) mod pki;
pub(crate) mod scope;
pub(crate) mod secrets;
pub(crate) mod workload;
