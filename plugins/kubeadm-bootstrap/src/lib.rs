//! Cluster API provider kubeadm-bootstrap as a WebAssembly component.
