//! API versions of the Docker kinds.

use capwasm_api::conversion::{self, CONDITIONS, ConversionError, Kind, Older, Rule};
use serde_json::Value;

/// API group of the kinds.
const GROUP: &str = "infrastructure.cluster.x-k8s.io";

const KINDS: &[Kind] = &[
    kind("DockerCluster", &[Older { version: "v1beta1", rules: CLUSTER }]),
    kind("DockerClusterTemplate", &[Older { version: "v1beta1", rules: CLUSTER_TEMPLATE }]),
    kind("DockerMachine", &[Older { version: "v1beta1", rules: MACHINE }]),
    kind("DockerMachineTemplate", &[Older { version: "v1beta1", rules: MACHINE_TEMPLATE }]),
    kind("DockerMachinePool", &[Older { version: "v1beta1", rules: MACHINE_POOL }]),
    kind("DockerMachinePoolTemplate", &[Older { version: "v1beta1", rules: MACHINE_POOL_TEMPLATE }]),
];

const CLUSTER: &[Rule] = &[
    Rule::Within("spec", "spec", CLUSTER_SPEC),
    Rule::Tidy(&[]),
    Rule::Move("status.ready", "status.initialization.provisioned"),
    Rule::Named("status.failureDomains", "status.failureDomains"),
    Rule::OnlyNew("status.loadBalancer"),
    CONDITIONS[0],
    CONDITIONS[1],
];

const CLUSTER_TEMPLATE: &[Rule] =
    &[Rule::Within("spec.template.spec", "spec.template.spec", CLUSTER_SPEC), Rule::Tidy(&["spec.template.spec"])];

const CLUSTER_SPEC: &[Rule] = &[
    Rule::Empty("controlPlaneEndpoint.host"),
    Rule::Empty("controlPlaneEndpoint.port"),
    Rule::Tidy(&[]),
    Rule::Named("failureDomains", "failureDomains"),
];

const MACHINE: &[Rule] = &[
    Rule::Empty("spec.providerID"),
    Rule::Tidy(&["spec"]),
    Rule::Move("status.ready", "status.initialization.provisioned"),
    Rule::OnlyNew("status.failureDomain"),
    Rule::OnlyNew("status.bootstrap"),
    CONDITIONS[0],
    CONDITIONS[1],
];

const MACHINE_TEMPLATE: &[Rule] =
    &[Rule::Empty("spec.template.spec.providerID"), Rule::Tidy(&["spec.template.spec"]), Rule::OnlyNew("status")];

/// Its v1beta1 has conditions of the older form only.
const MACHINE_POOL: &[Rule] = &[Rule::Tidy(&["spec"]), CONDITIONS[0], Rule::OnlyNew("status.conditions")];

const MACHINE_POOL_TEMPLATE: &[Rule] = &[Rule::Tidy(&["spec.template.spec"])];

const fn kind(kind: &'static str, older: &'static [Older]) -> Kind {
    Kind { group: GROUP, kind, older, derived: None }
}

/// `object` in the API version `to`.
///
/// # Errors
/// The kind or version is not known, or a value has no counterpart.
pub fn convert(object: Value, to: &str) -> Result<Value, ConversionError> {
    conversion::convert(&[KINDS], object, to, &conversion::known_api_version)
}
