//! Simulated container engine and Kubernetes nodes.
