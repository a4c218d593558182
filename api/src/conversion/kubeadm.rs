//! KubeadmConfigSpec, which a KubeadmConfig, its template and a KubeadmControlPlane have in common.
//!
//! v1beta1 follows kubeadm's v1beta3 (arguments as maps, the control plane's timeout at the API server), v1beta2 its
//! v1beta4 (arguments as lists, all timeouts in one place).

use serde_json::Value;

use super::rule::Rule::{self, Adjust, Arguments, Copy, Each, Empty, OnlyNew, OnlyOld, Seconds, Tidy};

/// Rules of a KubeadmConfigSpec.
pub const KUBEADM_CONFIG_SPEC: &[Rule] = &[
    Empty("initConfiguration.localAPIEndpoint.bindPort"),
    Empty("joinConfiguration.controlPlane.localAPIEndpoint.bindPort"),
    Empty("joinConfiguration.controlPlane.localAPIEndpoint"),
    Tidy(&[
        // No taints at all, where absence means kubeadm's own.
        "initConfiguration.nodeRegistration.taints",
        "joinConfiguration.nodeRegistration.taints",
        // Joins the control plane.
        "joinConfiguration.controlPlane",
        "clusterConfiguration.featureGates",
    ]),
    OnlyOld("useExperimentalRetryJoin"),
    OnlyOld("clusterConfiguration.apiVersion"),
    OnlyOld("clusterConfiguration.kind"),
    OnlyOld("clusterConfiguration.clusterName"),
    OnlyOld("clusterConfiguration.kubernetesVersion"),
    OnlyOld("clusterConfiguration.networking"),
    OnlyOld("initConfiguration.apiVersion"),
    OnlyOld("initConfiguration.kind"),
    OnlyOld("joinConfiguration.apiVersion"),
    OnlyOld("joinConfiguration.kind"),
    Seconds(
        "clusterConfiguration.apiServer.timeoutForControlPlane",
        "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds",
    ),
    Seconds("joinConfiguration.discovery.timeout", "joinConfiguration.timeouts.tlsBootstrapSeconds"),
    OnlyNew("initConfiguration.timeouts"),
    OnlyNew("joinConfiguration.timeouts"),
    // A machine that joins waits as long as the first.
    Copy(
        "initConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds",
        "joinConfiguration.timeouts.controlPlaneComponentHealthCheckSeconds",
    ),
    Arguments("clusterConfiguration.apiServer.extraArgs", "clusterConfiguration.apiServer.extraArgs"),
    Arguments("clusterConfiguration.controllerManager.extraArgs", "clusterConfiguration.controllerManager.extraArgs"),
    Arguments("clusterConfiguration.scheduler.extraArgs", "clusterConfiguration.scheduler.extraArgs"),
    Arguments("clusterConfiguration.etcd.local.extraArgs", "clusterConfiguration.etcd.local.extraArgs"),
    Arguments(
        "initConfiguration.nodeRegistration.kubeletExtraArgs",
        "initConfiguration.nodeRegistration.kubeletExtraArgs",
    ),
    Arguments(
        "joinConfiguration.nodeRegistration.kubeletExtraArgs",
        "joinConfiguration.nodeRegistration.kubeletExtraArgs",
    ),
    Each("initConfiguration.bootstrapTokens", "initConfiguration.bootstrapTokens", BOOTSTRAP_TOKEN),
    Each("diskSetup.partitions", "diskSetup.partitions", PARTITION),
];

const BOOTSTRAP_TOKEN: &[Rule] = &[Empty("token"), Seconds("ttl", "ttlSeconds")];

const PARTITION: &[Rule] = &[Adjust { new: one_layout, old: always_layout }];

/// v1beta2 has either `layout` or `diskLayout`.
fn one_layout(partition: &mut Value) {
    if let Value::Object(map) = partition
        && map.contains_key("diskLayout")
        && map.get("layout") == Some(&Value::Bool(false))
    {
        map.remove("layout");
    }
}

/// v1beta1 requires `layout`.
fn always_layout(partition: &mut Value) {
    if let Value::Object(map) = partition {
        map.entry("layout").or_insert(Value::Bool(false));
    }
}
