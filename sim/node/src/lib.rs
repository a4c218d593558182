//! Simulated Kubernetes nodes.
//!
//! A node interprets its bootstrap data with a small shell ([`shell`]) and a simulated kubeadm ([`kubeadm`]) that write into its
//! [`files`]; its kubelet ([`agent`], [`kubelet`]) registers it, and a control-plane node serves the embedded API server with the
//! cluster's certificates ([`workload`]) beside its member of [`etcd`].
//!
//! A node runs in a container of the simulated engine, or as `capwasm-node` inside a real container ([`container`]) when there is
//! a Docker engine but no registry ([`image`]). What differs between the two is behind [`Node`] and [`files::Files`].

pub mod agent;
pub mod container;
pub mod etcd;
pub mod files;
pub mod image;
pub mod kubeadm;
mod kubectl;
pub mod kubelet;
mod node;
pub mod port_forward;
pub mod rest;
pub mod shell;
pub mod testing;
pub mod workload;

use std::time::Duration;

pub use kubelet::SIMULATED_LABEL;
pub use node::Node;

/// How long a killed node's kubelet may be silent until its Node becomes Unknown. Kubernetes waits 50 seconds; this is short, so
/// that what repairs clusters can be watched.
pub const NODE_GRACE: Duration = Duration::from_secs(5);
