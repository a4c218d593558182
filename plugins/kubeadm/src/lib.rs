//! What the kubeadm providers, bootstrap and control plane, do alike.
//!
//! - [`certificates`]: the key pairs that all machines of a control plane share
//! - [`kubeconfig`]: the admin's kubeconfig, made once and renewed in time
//! - [`discovery`]: how a joining machine finds and trusts the API server
//! - [`cluster`]: what both read of a Cluster

pub mod certificates;
pub mod cluster;
pub mod discovery;
pub mod kubeconfig;
