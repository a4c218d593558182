//! API versions of KubeadmControlPlane and its template.

use capwasm_api::conversion::kubeadm::KUBEADM_CONFIG_SPEC;
use capwasm_api::conversion::{self, CONDITIONS, ConversionError, Kind, Older, Rule};
use serde_json::Value;

/// API group of the kinds.
const GROUP: &str = "controlplane.cluster.x-k8s.io";

const KINDS: &[Kind] = &[
    Kind {
        group: GROUP,
        kind: "KubeadmControlPlane",
        older: &[Older { version: "v1beta1", rules: CONTROL_PLANE }],
        derived: None,
    },
    Kind {
        group: GROUP,
        kind: "KubeadmControlPlaneTemplate",
        older: &[Older { version: "v1beta1", rules: TEMPLATE }],
        derived: None,
    },
];

const CONTROL_PLANE: &[Rule] = &[
    Rule::Empty("status.observedGeneration"),
    Rule::Within("spec", "spec", SPEC),
    Rule::Empty("spec.kubeadmConfigSpec"),
    Rule::Tidy(&["spec.kubeadmConfigSpec"]),
    Rule::Adjust { new: |_| {}, old: |object| want(object, &["spec", "kubeadmConfigSpec"]) },
    Rule::Move("status.initialized", "status.initialization.controlPlaneInitialized"),
    Rule::Computed("status.ready", ready),
    Rule::Move("status.lastRemediation.timestamp", "status.lastRemediation.time"),
    Rule::Move("status.readyReplicas", "status.deprecated.v1beta1.readyReplicas"),
    Rule::Move("status.updatedReplicas", "status.deprecated.v1beta1.updatedReplicas"),
    Rule::Move("status.unavailableReplicas", "status.deprecated.v1beta1.unavailableReplicas"),
    Rule::Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
    Rule::Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
    CONDITIONS[0],
    CONDITIONS[1],
    Rule::Move("status.v1beta2.readyReplicas", "status.readyReplicas"),
    Rule::Move("status.v1beta2.availableReplicas", "status.availableReplicas"),
    Rule::Move("status.v1beta2.upToDateReplicas", "status.upToDateReplicas"),
];

const TEMPLATE: &[Rule] = &[
    Rule::Within("spec.template.spec", "spec.template.spec", SPEC),
    Rule::Empty("spec.template.spec.kubeadmConfigSpec"),
    Rule::Tidy(&["spec.template.spec.kubeadmConfigSpec"]),
    Rule::Adjust { new: |_| {}, old: |object| want(object, &["spec", "template", "spec", "kubeadmConfigSpec"]) },
];

/// Of a control plane, and of what its template makes.
const SPEC: &[Rule] = &[
    Rule::Empty("rolloutBefore.certificatesExpiryDays"),
    Rule::Within("kubeadmConfigSpec", "kubeadmConfigSpec", KUBEADM_CONFIG_SPEC),
    Rule::Move("machineNamingStrategy", "machineNaming"),
    Rule::Reference("machineTemplate.infrastructureRef", "machineTemplate.spec.infrastructureRef"),
    Rule::Move("machineTemplate.readinessGates", "machineTemplate.spec.readinessGates"),
    Rule::Move("machineTemplate.taints", "machineTemplate.spec.taints"),
    Rule::Seconds("machineTemplate.nodeDrainTimeout", "machineTemplate.spec.deletion.nodeDrainTimeoutSeconds"),
    Rule::Seconds(
        "machineTemplate.nodeVolumeDetachTimeout",
        "machineTemplate.spec.deletion.nodeVolumeDetachTimeoutSeconds",
    ),
    Rule::Seconds("machineTemplate.nodeDeletionTimeout", "machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds"),
    Rule::Move("remediationStrategy.maxRetry", "remediation.maxRetry"),
    Rule::Seconds("remediationStrategy.minHealthyPeriod", "remediation.minHealthyPeriodSeconds"),
    Rule::Seconds("remediationStrategy.retryPeriod", "remediation.retryPeriodSeconds"),
    Rule::Move("rolloutAfter", "rollout.after"),
    Rule::Move("rolloutBefore", "rollout.before"),
    Rule::Move("rolloutStrategy", "rollout.strategy"),
    Rule::Assume { path: "rollout.strategy", key: "type", value: "RollingUpdate" },
];

/// v1beta1 wants the object, though it may be empty.
fn want(object: &mut Value, path: &[&str]) {
    if object.get("spec").is_some_and(Value::is_object) {
        capwasm_object::json::map(object, path);
    }
}

/// In v1beta1 a control plane is ready when one of its machines is.
fn ready(object: &Value) -> Value {
    let count =
        object.pointer("/status/deprecated/v1beta1/readyReplicas").or_else(|| object.pointer("/status/readyReplicas"));
    count.and_then(Value::as_i64).map_or(Value::Null, |count| (count > 0).into())
}

/// `object` in the API version `to`.
///
/// # Errors
/// The kind or version is not known, or a value has no counterpart.
pub fn convert(object: Value, to: &str) -> Result<Value, ConversionError> {
    conversion::convert(&[KINDS], object, to, &conversion::known_api_version)
}
