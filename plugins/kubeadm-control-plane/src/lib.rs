//! Cluster API provider kubeadm-control-plane as a WebAssembly component.
