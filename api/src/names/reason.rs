//! Condition reasons. `X`, `NotX` and `XUnknown` are those of a condition `X` that is True, False and Unknown.

/// `Available`, or a condition that merges it, is True.
pub const AVAILABLE: &str = "Available";
/// `Available`, or a condition that merges it, is False.
pub const NOT_AVAILABLE: &str = "NotAvailable";
/// `Available`, or a condition that merges it, is Unknown.
pub const AVAILABLE_UNKNOWN: &str = "AvailableUnknown";
/// `Ready`, or a condition that merges it, is True.
pub const READY: &str = "Ready";
/// `Ready`, or a condition that merges it, is False.
pub const NOT_READY: &str = "NotReady";
/// `Ready`, or a condition that merges it, is Unknown.
pub const READY_UNKNOWN: &str = "ReadyUnknown";
/// `UpToDate`, or a condition that merges it, is True.
pub const UP_TO_DATE: &str = "UpToDate";
/// `UpToDate`, or a condition that merges it, is False.
pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
/// `UpToDate`, or a condition that merges it, is Unknown.
pub const UP_TO_DATE_UNKNOWN: &str = "UpToDateUnknown";
/// `ControlPlaneInitialized` is True.
pub const INITIALIZED: &str = "Initialized";
/// `ControlPlaneInitialized` is False.
pub const NOT_INITIALIZED: &str = "NotInitialized";
/// `Paused` is True.
pub const PAUSED: &str = "Paused";
/// `Paused` is False.
pub const NOT_PAUSED: &str = "NotPaused";
/// The reporting object does not exist.
pub const DOES_NOT_EXIST: &str = "DoesNotExist";
/// The reporting object existed and is gone.
pub const DELETED: &str = "Deleted";
/// The object, or the one that should report, is being deleted.
pub const DELETING: &str = "Deleting";
/// An error that says nothing about the object; the message has more.
pub const INTERNAL_ERROR: &str = "InternalError";
/// The condition is not reported yet.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// The reporting object gave no reason.
pub const NO_REASON_REPORTED: &str = "NoReasonReported";
/// The probe of the workload API server succeeded.
pub const PROBE_SUCCEEDED: &str = "ProbeSucceeded";
/// The probe of the workload API server failed.
pub const PROBE_FAILED: &str = "ProbeFailed";
/// The cluster has no workers.
pub const NO_WORKERS: &str = "NoWorkers";
/// There are no Machines.
pub const NO_REPLICAS: &str = "NoReplicas";
/// `spec.replicas` is not set yet.
pub const WAITING_FOR_REPLICAS_SET: &str = "WaitingForReplicasSet";
/// `status.availableReplicas` is not set yet.
pub const WAITING_FOR_AVAILABLE_REPLICAS_SET: &str = "WaitingForAvailableReplicasSet";
/// `RollingOut` is True.
pub const ROLLING_OUT: &str = "RollingOut";
/// `RollingOut` is False.
pub const NOT_ROLLING_OUT: &str = "NotRollingOut";
/// `RollingOut` is Unknown.
pub const ROLLING_OUT_UNKNOWN: &str = "RollingOutUnknown";
/// `ScalingUp` is True.
pub const SCALING_UP: &str = "ScalingUp";
/// `ScalingUp` is False.
pub const NOT_SCALING_UP: &str = "NotScalingUp";
/// `ScalingUp` is Unknown.
pub const SCALING_UP_UNKNOWN: &str = "ScalingUpUnknown";
/// `ScalingDown` is True.
pub const SCALING_DOWN: &str = "ScalingDown";
/// `ScalingDown` is False.
pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
/// `ScalingDown` is Unknown.
pub const SCALING_DOWN_UNKNOWN: &str = "ScalingDownUnknown";
/// `Remediating` is True.
pub const REMEDIATING: &str = "Remediating";
/// `Remediating` is False.
pub const NOT_REMEDIATING: &str = "NotRemediating";
/// `Updating` is False.
pub const NOT_UPDATING: &str = "NotUpdating";
/// `Deleting` is False.
pub const NOT_DELETING: &str = "NotDeleting";

/// Deletion of a Cluster waits for its workers.
pub const WAITING_FOR_WORKERS_DELETION: &str = "WaitingForWorkersDeletion";
/// Deletion of a Cluster waits for its control plane.
pub const WAITING_FOR_CONTROL_PLANE_DELETION: &str = "WaitingForControlPlaneDeletion";
/// Deletion of a Cluster or a Machine waits for its infrastructure.
pub const WAITING_FOR_INFRASTRUCTURE_DELETION: &str = "WaitingForInfrastructureDeletion";
/// Deletion of a Machine waits for its bootstrap configuration.
pub const WAITING_FOR_BOOTSTRAP_DELETION: &str = "WaitingForBootstrapDeletion";
/// Deletion of a Machine waits for pre-drain hooks.
pub const WAITING_FOR_PRE_DRAIN_HOOK: &str = "WaitingForPreDrainHook";
/// Deletion of a Machine waits for pre-terminate hooks.
pub const WAITING_FOR_PRE_TERMINATE_HOOK: &str = "WaitingForPreTerminateHook";
/// Deletion of a Machine drains its Node.
pub const DRAINING_NODE: &str = "DrainingNode";
/// Deletion of a Machine waits for volumes to be detached.
pub const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";
/// Deletion of a Machine deletes its Node object.
pub const DELETING_NODE: &str = "DeletingNode";
/// Deletion is complete.
pub const DELETION_COMPLETED: &str = "DeletionCompleted";

/// The user provided the bootstrap data Secret.
pub const DATA_SECRET_PROVIDED: &str = "DataSecretProvided";
/// Ready for less than `minReadySeconds`.
pub const WAITING_FOR_MIN_READY_SECONDS: &str = "WaitingForMinReadySeconds";
/// Waits for the Cluster's infrastructure.
pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
/// Waits for the first control plane machine.
pub const WAITING_FOR_CONTROL_PLANE_INITIALIZED: &str = "WaitingForControlPlaneInitialized";
/// `NodeReady` is True.
pub const NODE_READY: &str = "NodeReady";
/// `NodeReady` is False.
pub const NODE_NOT_READY: &str = "NodeNotReady";
/// `NodeReady` is Unknown.
pub const NODE_READY_UNKNOWN: &str = "NodeReadyUnknown";
/// `NodeHealthy` is True.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// `NodeHealthy` is False.
pub const NODE_NOT_HEALTHY: &str = "NodeNotHealthy";
/// `NodeHealthy` is Unknown.
pub const NODE_HEALTH_UNKNOWN: &str = "NodeHealthUnknown";
/// The Node existed and is gone.
pub const NODE_DELETED: &str = "NodeDeleted";
/// The Node does not exist yet.
pub const NODE_DOES_NOT_EXIST: &str = "NodeDoesNotExist";
/// The Node could not be read.
pub const INSPECTION_FAILED: &str = "InspectionFailed";
/// The workload cluster is unreachable for too long.
pub const CONNECTION_DOWN: &str = "ConnectionDown";
/// The health check found no problem.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// The Machine has the remediate annotation.
pub const HAS_REMEDIATE_ANNOTATION: &str = "HasRemediateAnnotation";
/// A condition of the Machine is unhealthy for too long.
pub const UNHEALTHY_MACHINE: &str = "UnhealthyMachine";
/// A condition of the Node is unhealthy for too long.
pub const UNHEALTHY_NODE: &str = "UnhealthyNode";
/// The Node did not appear in time.
pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
/// Few enough Machines are unhealthy.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// Too many Machines are unhealthy for remediation.
pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
/// Remediation is requested.
pub const WAITING_FOR_REMEDIATION: &str = "WaitingForRemediation";
/// The template of the external remediation does not exist.
pub const REMEDIATION_TEMPLATE_NOT_FOUND: &str = "RemediationTemplateNotFound";
/// The external remediation request could not be created.
pub const REMEDIATION_REQUEST_CREATION_FAILED: &str = "RemediationRequestCreationFailed";
/// The owner does not replace the Machine at present.
pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
/// The owner cannot replace the Machine.
pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
/// The owner deletes the Machine for its replacement.
pub const MACHINE_DELETING: &str = "MachineDeleting";
