//! Names that this provider shares with upstream's: condition types, reasons, annotations.

/// The first API server has answered.
pub const INITIALIZED: &str = "Initialized";
/// The cluster's certificates exist.
pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
/// All members of a managed etcd are well, and belong to machines.
pub const ETCD_CLUSTER_HEALTHY: &str = "EtcdClusterHealthy";
/// All static pods are well.
pub const COMPONENTS_HEALTHY: &str = "ControlPlaneComponentsHealthy";

/// On a Machine: its Node has the labels and taints that kubeadm gives it.
pub const NODE_LABELS_AND_TAINTS_SET: &str = "NodeKubeadmLabelsAndTaintsSet";
/// On a Machine: its kube-apiserver runs.
pub const API_SERVER_POD_HEALTHY: &str = "APIServerPodHealthy";
/// On a Machine: its kube-controller-manager runs.
pub const CONTROLLER_MANAGER_POD_HEALTHY: &str = "ControllerManagerPodHealthy";
/// On a Machine: its kube-scheduler runs.
pub const SCHEDULER_POD_HEALTHY: &str = "SchedulerPodHealthy";
/// On a Machine: its etcd runs.
pub const ETCD_POD_HEALTHY: &str = "EtcdPodHealthy";
/// On a Machine: its etcd member is well.
pub const ETCD_MEMBER_HEALTHY: &str = "EtcdMemberHealthy";

/// Static pods of a machine, by condition and component; etcd's comes last and only where etcd is managed.
pub const PODS: [(&str, &str); 4] = [
    (API_SERVER_POD_HEALTHY, "kube-apiserver"),
    (CONTROLLER_MANAGER_POD_HEALTHY, "kube-controller-manager"),
    (SCHEDULER_POD_HEALTHY, "kube-scheduler"),
    (ETCD_POD_HEALTHY, "etcd"),
];

/// What must hold on a machine for it to be left alone: static pods and, where etcd is managed, its member.
pub fn health_conditions(managed_etcd: bool) -> Vec<&'static str> {
    let pods = PODS.iter().map(|(condition, _)| *condition).filter(|name| managed_etcd || *name != ETCD_POD_HEALTHY);
    pods.chain(managed_etcd.then_some(ETCD_MEMBER_HEALTHY)).collect()
}

/// Reasons that are this kind's own.
pub mod reason {
    #![allow(missing_docs, reason = "the names say it")]
    pub const HEALTHY: &str = "Healthy";
    pub const NOT_HEALTHY: &str = "NotHealthy";
    pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
    pub const RUNNING: &str = "Running";
    pub const PROVISIONING: &str = "Provisioning";
    pub const FAILED: &str = "Failed";
    pub const SET: &str = "Set";
    pub const NOT_SET: &str = "NotSet";
    pub const CANNOT_BE_REMEDIATED: &str = "CannotBeRemediated";
    pub const REMEDIATION_DEFERRED: &str = "RemediationDeferred";
    pub const WAITING_FOR_MACHINE_DELETION: &str = "WaitingForMachineDeletion";
}

/// Holds the end of a Machine until its etcd member is gone.
pub const CLEANUP_HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
/// On the control plane: an unhealthy machine is deleted and its replacement is not there yet.
pub const REMEDIATION_IN_PROGRESS: &str = "controlplane.cluster.x-k8s.io/remediation-in-progress";
/// On a Machine: which one it replaces.
pub const REMEDIATION_FOR: &str = "controlplane.cluster.x-k8s.io/remediation-for";
/// On a Machine: a person wants it to be replaced.
pub const REMEDIATE_MACHINE: &str = "cluster.x-k8s.io/remediate-machine";
/// On the control plane: CoreDNS is somebody else's.
pub const SKIP_COREDNS: &str = "controlplane.cluster.x-k8s.io/skip-coredns";
/// On the control plane: kube-proxy is somebody else's.
pub const SKIP_KUBE_PROXY: &str = "controlplane.cluster.x-k8s.io/skip-kube-proxy";
/// On a Cluster: the version that a chained upgrade is at.
pub const TOPOLOGY_UPGRADE_STEP: &str = "topology.internal.cluster.x-k8s.io/upgrade-step";
/// On an infrastructure machine: what the template said when it was cloned.
pub const TEMPLATE_HASH: &str = "capwasm.dev/template-hash";
/// On what was made from the control plane's template: which labels and annotations came from there.
pub const PROPAGATED: &str = "capwasm.dev/propagated";

/// Label of control-plane Nodes, and key of their taint.
pub const CONTROL_PLANE_NODE: &str = "node-role.kubernetes.io/control-plane";
/// Group of KubeadmConfigs.
pub const BOOTSTRAP_GROUP: &str = "bootstrap.cluster.x-k8s.io";
/// Version of KubeadmConfigs.
pub const BOOTSTRAP_API_VERSION: &str = "bootstrap.cluster.x-k8s.io/v1beta2";
