//! Condition reasons.

/// Available.
pub const AVAILABLE: &str = "Available";
/// Not available.
pub const NOT_AVAILABLE: &str = "NotAvailable";
/// Not known to be available.
pub const AVAILABLE_UNKNOWN: &str = "AvailableUnknown";
/// Ready.
pub const READY: &str = "Ready";
/// Not ready.
pub const NOT_READY: &str = "NotReady";
/// Not known to be ready.
pub const READY_UNKNOWN: &str = "ReadyUnknown";
/// Up to date.
pub const UP_TO_DATE: &str = "UpToDate";
/// Not up to date.
pub const NOT_UP_TO_DATE: &str = "NotUpToDate";
/// Not known to be up to date.
pub const UP_TO_DATE_UNKNOWN: &str = "UpToDateUnknown";
/// Initialized.
pub const INITIALIZED: &str = "Initialized";
/// Not initialized.
pub const NOT_INITIALIZED: &str = "NotInitialized";
/// Held.
pub const PAUSED: &str = "Paused";
/// Not held.
pub const NOT_PAUSED: &str = "NotPaused";
/// The object that should report does not exist.
pub const DOES_NOT_EXIST: &str = "DoesNotExist";
/// The object that should report was there and is gone.
pub const DELETED: &str = "Deleted";
/// The object that should report is being deleted.
pub const DELETING: &str = "Deleting";
/// Something failed that says nothing about the object; the message has more.
pub const INTERNAL_ERROR: &str = "InternalError";
/// The condition was not reported yet.
pub const NOT_YET_REPORTED: &str = "NotYetReported";
/// The reporting object gave no reason.
pub const NO_REASON_REPORTED: &str = "NoReasonReported";
/// The probe of the workload API server succeeded.
pub const PROBE_SUCCEEDED: &str = "ProbeSucceeded";
/// The probe of the workload API server failed.
pub const PROBE_FAILED: &str = "ProbeFailed";
/// The cluster has no workers.
pub const NO_WORKERS: &str = "NoWorkers";
/// There are no machines.
pub const NO_REPLICAS: &str = "NoReplicas";
/// `spec.replicas` is not set yet.
pub const WAITING_FOR_REPLICAS_SET: &str = "WaitingForReplicasSet";
/// `status.availableReplicas` is not set yet.
pub const WAITING_FOR_AVAILABLE_REPLICAS_SET: &str = "WaitingForAvailableReplicasSet";
/// Rolling out.
pub const ROLLING_OUT: &str = "RollingOut";
/// Not rolling out.
pub const NOT_ROLLING_OUT: &str = "NotRollingOut";
/// Not known to be rolling out.
pub const ROLLING_OUT_UNKNOWN: &str = "RollingOutUnknown";
/// Scaling up.
pub const SCALING_UP: &str = "ScalingUp";
/// Not scaling up.
pub const NOT_SCALING_UP: &str = "NotScalingUp";
/// Not known to be scaling up.
pub const SCALING_UP_UNKNOWN: &str = "ScalingUpUnknown";
/// Scaling down.
pub const SCALING_DOWN: &str = "ScalingDown";
/// Not scaling down.
pub const NOT_SCALING_DOWN: &str = "NotScalingDown";
/// Not known to be scaling down.
pub const SCALING_DOWN_UNKNOWN: &str = "ScalingDownUnknown";
/// Remediating.
pub const REMEDIATING: &str = "Remediating";
/// Not remediating.
pub const NOT_REMEDIATING: &str = "NotRemediating";
/// Not updating.
pub const NOT_UPDATING: &str = "NotUpdating";
/// Not deleting.
pub const NOT_DELETING: &str = "NotDeleting";

/// Deletion of a Cluster waits for its workers.
pub const WAITING_FOR_WORKERS_DELETION: &str = "WaitingForWorkersDeletion";
/// Deletion of a Cluster waits for its control plane.
pub const WAITING_FOR_CONTROL_PLANE_DELETION: &str = "WaitingForControlPlaneDeletion";
/// Deletion of a Cluster or a Machine waits for its infrastructure.
pub const WAITING_FOR_INFRASTRUCTURE_DELETION: &str = "WaitingForInfrastructureDeletion";
/// Deletion of a Machine waits for its bootstrap configuration.
pub const WAITING_FOR_BOOTSTRAP_DELETION: &str = "WaitingForBootstrapDeletion";
/// Deletion of a Machine is held before the drain.
pub const WAITING_FOR_PRE_DRAIN_HOOK: &str = "WaitingForPreDrainHook";
/// Deletion of a Machine is held before its infrastructure goes.
pub const WAITING_FOR_PRE_TERMINATE_HOOK: &str = "WaitingForPreTerminateHook";
/// The Node is drained.
pub const DRAINING_NODE: &str = "DrainingNode";
/// Volumes are still attached to the Node.
pub const WAITING_FOR_VOLUME_DETACH: &str = "WaitingForVolumeDetach";
/// The Node object is deleted.
pub const DELETING_NODE: &str = "DeletingNode";
/// Nothing is left to delete.
pub const DELETION_COMPLETED: &str = "DeletionCompleted";

/// The user supplied the bootstrap data.
pub const DATA_SECRET_PROVIDED: &str = "DataSecretProvided";
/// Ready, but not for long enough.
pub const WAITING_FOR_MIN_READY_SECONDS: &str = "WaitingForMinReadySeconds";
/// Waits for the cluster's infrastructure.
pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
/// Waits for the first control-plane machine.
pub const WAITING_FOR_CONTROL_PLANE_INITIALIZED: &str = "WaitingForControlPlaneInitialized";
/// The Node is ready.
pub const NODE_READY: &str = "NodeReady";
/// The Node is not ready.
pub const NODE_NOT_READY: &str = "NodeNotReady";
/// The Node's readiness is not known.
pub const NODE_READY_UNKNOWN: &str = "NodeReadyUnknown";
/// The Node is healthy.
pub const NODE_HEALTHY: &str = "NodeHealthy";
/// The Node is not healthy.
pub const NODE_NOT_HEALTHY: &str = "NodeNotHealthy";
/// The Node's health is not known.
pub const NODE_HEALTH_UNKNOWN: &str = "NodeHealthUnknown";
/// The Node was there and is gone.
pub const NODE_DELETED: &str = "NodeDeleted";
/// The Node was not there yet.
pub const NODE_DOES_NOT_EXIST: &str = "NodeDoesNotExist";
/// The Node could not be looked at.
pub const INSPECTION_FAILED: &str = "InspectionFailed";
/// The workload cluster has not been reachable for too long.
pub const CONNECTION_DOWN: &str = "ConnectionDown";
/// The health check found nothing wrong.
pub const HEALTH_CHECK_SUCCEEDED: &str = "HealthCheckSucceeded";
/// A user asked for the Machine to be replaced.
pub const HAS_REMEDIATE_ANNOTATION: &str = "HasRemediateAnnotation";
/// A condition of the Machine lasts for too long.
pub const UNHEALTHY_MACHINE: &str = "UnhealthyMachine";
/// A condition of the Node lasts for too long.
pub const UNHEALTHY_NODE: &str = "UnhealthyNode";
/// The Node did not come in time.
pub const NODE_STARTUP_TIMEOUT: &str = "NodeStartupTimeout";
/// Few enough Machines are unhealthy.
pub const REMEDIATION_ALLOWED: &str = "RemediationAllowed";
/// Too many Machines are unhealthy for anything to be done.
pub const TOO_MANY_UNHEALTHY: &str = "TooManyUnhealthy";
/// Somebody is asked to replace the Machine.
pub const WAITING_FOR_REMEDIATION: &str = "WaitingForRemediation";
/// There is no template for remediation by somebody outside.
pub const REMEDIATION_TEMPLATE_NOT_FOUND: &str = "RemediationTemplateNotFound";
/// Nobody outside could be asked.
pub const REMEDIATION_REQUEST_CREATION_FAILED: &str = "RemediationRequestCreationFailed";
/// The owner does not replace the Machine now.
pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
/// The owner does not replace the Machine at all.
pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
/// The owner deletes the Machine to replace it.
pub const MACHINE_DELETING: &str = "MachineDeleting";
