//! API versions of KubeadmConfig and its template.

use capwasm_api::conversion::kubeadm::KUBEADM_CONFIG_SPEC;
use capwasm_api::conversion::{self, CONDITIONS, ConversionError, Kind, Older, Rule};
use serde_json::Value;

/// API group of the kinds.
const GROUP: &str = "bootstrap.cluster.x-k8s.io";

const KINDS: &[Kind] = &[
    Kind { group: GROUP, kind: "KubeadmConfig", older: &[Older { version: "v1beta1", rules: CONFIG }], derived: None },
    Kind {
        group: GROUP,
        kind: "KubeadmConfigTemplate",
        older: &[Older { version: "v1beta1", rules: TEMPLATE }],
        derived: None,
    },
];

const CONFIG: &[Rule] = &[
    Rule::Empty("status.observedGeneration"),
    Rule::Tidy(&["spec"]),
    Rule::Within("spec", "spec", KUBEADM_CONFIG_SPEC),
    Rule::Empty("spec"),
    Rule::Move("status.ready", "status.initialization.dataSecretCreated"),
    Rule::Move("status.failureReason", "status.deprecated.v1beta1.failureReason"),
    Rule::Move("status.failureMessage", "status.deprecated.v1beta1.failureMessage"),
    CONDITIONS[0],
    CONDITIONS[1],
];

const TEMPLATE: &[Rule] = &[
    Rule::Within("spec.template.spec", "spec.template.spec", KUBEADM_CONFIG_SPEC),
    Rule::Empty("spec.template.spec"),
    Rule::Tidy(&["spec.template.spec"]),
];

/// `object` in the API version `to`.
///
/// # Errors
/// The kind or version is not known, or a value has no counterpart.
pub fn convert(object: Value, to: &str) -> Result<Value, ConversionError> {
    conversion::convert(&[KINDS], object, to, &conversion::known_api_version)
}
