//! Condition types, with the same meaning on all kinds.

/// The object is operational; for Machines, Ready for `minReadySeconds`.
pub const AVAILABLE: &str = "Available";
/// The object is ready.
pub const READY: &str = "Ready";
/// Reconciliation is paused.
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
/// Machines are being replaced.
pub const ROLLING_OUT: &str = "RollingOut";
/// Machines are being added.
pub const SCALING_UP: &str = "ScalingUp";
/// Machines are being removed.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Unhealthy Machines are being replaced.
pub const REMEDIATING: &str = "Remediating";
/// The topology of a ClusterClass is applied.
pub const TOPOLOGY_RECONCILED: &str = "TopologyReconciled";

/// The bootstrap configuration is ready (Machine).
pub const BOOTSTRAP_CONFIG_READY: &str = "BootstrapConfigReady";
/// The Node is ready.
pub const NODE_READY: &str = "NodeReady";
/// The Node is ready and under no pressure.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// The Machine matches its owner's template.
pub const UP_TO_DATE: &str = "UpToDate";
/// The Machine is updated in place (negative polarity).
pub const UPDATING: &str = "Updating";
/// The Machine passes its health checks.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// The owner has replaced the unhealthy Machine; False asks it to.
pub const OWNER_REMEDIATED: &str = "OwnerRemediated";
/// Machine: whether an external remediation is complete.
pub const EXTERNALLY_REMEDIATED: &str = "ExternallyRemediated";
/// MachineHealthCheck: few enough Machines are unhealthy.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";

/// All Machines of a set or deployment are ready.
pub const MACHINES_READY: &str = "MachinesReady";
/// All Machines of a set or deployment are up to date.
pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
