//! Annotation keys.

/// Pauses reconciliation of an object.
pub const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Name of the template of a clone.
pub const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
/// `Kind.group` of the template of a clone.
pub const CLONED_FROM_GROUP_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// Marks a Machine to be deleted first when a set shrinks.
pub const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
/// Excludes a Machine from MachineHealthChecks.
pub const SKIP_REMEDIATION: &str = "cluster.x-k8s.io/skip-remediation";
/// Makes a Machine unhealthy for all MachineHealthChecks that select it.
pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
/// Prevents a MachineSet from creating Machines.
pub const DISABLE_MACHINE_CREATE: &str = "cluster.x-k8s.io/disable-machine-create";

/// On Nodes: name of the Cluster.
pub const NODE_CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
/// On Nodes: namespace of the Cluster.
pub const NODE_CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
/// On Nodes: name of the Machine.
pub const NODE_MACHINE: &str = "cluster.x-k8s.io/machine";
/// On Nodes: kind of the Machine's controller.
pub const NODE_OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
/// On Nodes: name of the Machine's controller.
pub const NODE_OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";
/// On Nodes: comma-separated labels that came from the Machine, so that they can be removed.
pub const NODE_LABELS_FROM_MACHINE: &str = "cluster.x-k8s.io/labels-from-machine";
/// On Nodes: comma-separated annotations that came from the Machine.
pub const NODE_ANNOTATIONS_FROM_MACHINE: &str = "cluster.x-k8s.io/annotations-from-machine";

/// Deletes a Machine without draining its Node.
pub const EXCLUDE_NODE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
/// Deletes a Machine without waiting for its volumes to be detached.
pub const EXCLUDE_VOLUME_DETACH: &str = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";
/// Prefix of hooks that delay a deletion before the drain.
pub const PRE_DRAIN_HOOK_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
/// Prefix of hooks that delay a deletion before that of the infrastructure.
pub const PRE_TERMINATE_HOOK_PREFIX: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
/// When the certificates of a control-plane Machine expire, RFC 3339.
pub const CERTIFICATES_EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";

/// Revision of a MachineSet within its MachineDeployment.
pub const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
/// Replicas of the MachineDeployment when its MachineSet was last scaled.
pub const DESIRED_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
/// Replicas and surge of the MachineDeployment when its MachineSet was last scaled.
pub const MAX_REPLICAS: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
/// Comma-separated preflight checks that a MachineSet skips; `All` for every one.
pub const SKIP_PREFLIGHT_CHECKS: &str = "machineset.cluster.x-k8s.io/skip-preflight-checks";

/// On MachinePools: an external autoscaler sets the replicas, and the provider reports them.
pub const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";

/// Least replicas that the autoscaler may choose.
pub const AUTOSCALER_MIN: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
/// Most replicas that the autoscaler may choose.
pub const AUTOSCALER_MAX: &str = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";

/// On children: the slot from which their name is derived.
pub const SLOT: &str = "capwasm.dev/slot";
/// On owners: the first slot that was never used.
pub const NEXT_SLOT: &str = "capwasm.dev/next-slot";
