//! Finalizers of the core kinds.

/// Finalizer of Clusters.
pub const CLUSTER: &str = "cluster.cluster.x-k8s.io";
/// Finalizer of Machines.
pub const MACHINE: &str = "machine.cluster.x-k8s.io";
/// Finalizer of MachineSets.
pub const MACHINE_SET: &str = "cluster.x-k8s.io/machineset";
/// Finalizer of MachineDeployments.
pub const MACHINE_DEPLOYMENT: &str = "cluster.x-k8s.io/machinedeployment";
/// Finalizer of MachinePools.
pub const MACHINE_POOL: &str = "machinepool.cluster.x-k8s.io";
