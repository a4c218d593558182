//! Finalizers of the core kinds.

/// Cluster.
pub const CLUSTER: &str = "cluster.cluster.x-k8s.io";
/// Machine.
pub const MACHINE: &str = "machine.cluster.x-k8s.io";
/// MachineSet.
pub const MACHINE_SET: &str = "cluster.x-k8s.io/machineset";
/// MachineDeployment.
pub const MACHINE_DEPLOYMENT: &str = "cluster.x-k8s.io/machinedeployment";
/// MachinePool.
pub const MACHINE_POOL: &str = "machinepool.cluster.x-k8s.io";
