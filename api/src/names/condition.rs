//! Condition types. The same word means the same on every kind that has it.

/// The object does what it is for.
pub const AVAILABLE: &str = "Available";
/// The object, or what a provider made for it, is ready.
pub const READY: &str = "Ready";
/// Reconciliation is held.
pub const PAUSED: &str = "Paused";
/// Deletion is in progress (negative polarity).
pub const DELETING: &str = "Deleting";

/// The infrastructure object is ready (Cluster, Machine).
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// The control plane has been reachable once.
pub const CONTROL_PLANE_INITIALIZED: &str = "ControlPlaneInitialized";
/// The control plane is available.
pub const CONTROL_PLANE_AVAILABLE: &str = "ControlPlaneAvailable";
/// All control-plane Machines are ready.
pub const CONTROL_PLANE_MACHINES_READY: &str = "ControlPlaneMachinesReady";
/// All control-plane Machines are up to date.
pub const CONTROL_PLANE_MACHINES_UP_TO_DATE: &str = "ControlPlaneMachinesUpToDate";
/// All worker groups are available.
pub const WORKERS_AVAILABLE: &str = "WorkersAvailable";
/// All worker Machines are ready.
pub const WORKER_MACHINES_READY: &str = "WorkerMachinesReady";
/// All worker Machines are up to date.
pub const WORKER_MACHINES_UP_TO_DATE: &str = "WorkerMachinesUpToDate";
/// The workload cluster's API server answers.
pub const REMOTE_CONNECTION_PROBE: &str = "RemoteConnectionProbe";
/// Machines are being replaced (negative polarity in no summary).
pub const ROLLING_OUT: &str = "RollingOut";
/// Machines are being added.
pub const SCALING_UP: &str = "ScalingUp";
/// Machines are being taken away.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Unhealthy machines are being replaced.
pub const REMEDIATING: &str = "Remediating";
/// The topology is in place.
pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";

/// The bootstrap configuration is ready (Machine).
pub const BOOTSTRAP_CONFIG_READY: &str = "BootstrapConfigReady";
/// The Node is ready.
pub const NODE_READY: &str = "NodeReady";
/// The Node is ready and under no pressure.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// The Machine's spec is the one that its owner wants.
pub const UP_TO_DATE: &str = "UpToDate";
/// The Machine is updated in place (negative polarity).
pub const UPDATING: &str = "Updating";
/// A health check's verdict.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// The owner should replace, or has replaced, the Machine.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
/// Machine: whether somebody outside has replaced it.
pub const EXTERNALLY_REMEDIATED: &str = "ExternallyRemediated";
/// MachineHealthCheck: whether few enough Machines are unhealthy.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";

/// All Machines of a set or deployment are ready.
pub const MACHINES_READY: &str = "MachinesReady";
/// All Machines of a set or deployment are up to date.
pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
