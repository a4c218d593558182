//! API versions of the OpenStack kinds: v1beta1 is stored and spoken, v1beta2 is served beside it.
//!
//! What says the opposite in the other version (`disableX`, `enableX`) is moved and then turned around.

use capwasm_api::conversion::{self, ConversionError, Kind, Older, Rule};
use serde_json::{Map, Value};

/// API group of the kinds.
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The reason of a condition that has none in v1beta1, as upstream writes it.
const NO_REASON: &str = "NoReasonReported";

const KINDS: &[Kind] = &[
    kind("OpenStackCluster", &[Older { version: "v1beta1", rules: CLUSTER }]),
    kind("OpenStackClusterTemplate", &[Older { version: "v1beta1", rules: CLUSTER_TEMPLATE }]),
    kind("OpenStackMachine", &[Older { version: "v1beta1", rules: MACHINE }]),
    kind("OpenStackMachineTemplate", &[Older { version: "v1beta1", rules: MACHINE_TEMPLATE }]),
];

const CLUSTER: &[Rule] = &[
    Rule::Within("spec", "spec", CLUSTER_SPEC),
    Rule::Each("status.bastion.resolved.ports", "status.bastion.resolved.ports", PORT),
    Rule::Move("status.apiServerLoadBalancer", "status.apiServerManagedLoadBalancer"),
    Rule::Named("status.failureDomains", "status.failureDomains"),
    STATUS[0],
    STATUS[1],
    STATUS[2],
    STATUS[3],
];

const CLUSTER_TEMPLATE: &[Rule] = &[Rule::Within("spec.template.spec", "spec.template.spec", CLUSTER_SPEC)];

const CLUSTER_SPEC: &[Rule] = &[
    Rule::Within("bastion.spec", "bastion.spec", MACHINE_SPEC),
    Rule::Move("disableExternalNetwork", "enableExternalNetwork"),
    Rule::Move("apiServerLoadBalancer", "apiServer.managedLoadBalancer"),
    Rule::Move("disableAPIServerFloatingIP", "apiServer.enableFloatingIP"),
    Rule::Move("apiServerFloatingIP", "apiServer.floatingIP"),
    Rule::Move("apiServerFixedIP", "apiServer.fixedIP"),
    Rule::Move("apiServerPort", "apiServer.port"),
    Rule::Move("networkMTU", "managedNetwork.mtu"),
    Rule::Move("disablePortSecurity", "managedNetwork.enablePortSecurity"),
    Rule::Move("externalRouterIPs", "managedRouter.externalIPs"),
    Rule::Move(
        "managedSecurityGroups.allNodesSecurityGroupRules",
        "managedSecurityGroups.clusterNodesSecurityGroupRules",
    ),
    Rule::Adjust {
        new: |spec| {
            turn(spec, &["enableExternalNetwork"]);
            turn(spec, &["apiServer", "enableFloatingIP"]);
            turn(spec, &["managedNetwork", "enablePortSecurity"]);
        },
        old: |spec| {
            turn(spec, &["disableExternalNetwork"]);
            turn(spec, &["disableAPIServerFloatingIP"]);
            turn(spec, &["disablePortSecurity"]);
        },
    },
];

const MACHINE: &[Rule] = &[
    Rule::Within("spec", "spec", MACHINE_SPEC),
    Rule::Each("status.resolved.ports", "status.resolved.ports", PORT),
    STATUS[0],
    STATUS[1],
    STATUS[2],
    STATUS[3],
];

const MACHINE_TEMPLATE: &[Rule] = &[Rule::Within("spec.template.spec", "spec.template.spec", MACHINE_SPEC)];

const MACHINE_SPEC: &[Rule] = &[
    Rule::Move("flavor", "flavor.filter.name"),
    Rule::Move("flavorID", "flavor.id"),
    Rule::Each("ports", "ports", PORT),
    Rule::Adjust { new: one_flavor, old: |_| {} },
];

const PORT: &[Rule] = &[
    Rule::Move("disablePortSecurity", "enablePortSecurity"),
    Rule::Adjust { new: |port| turn(port, &["enablePortSecurity"]), old: |port| turn(port, &["disablePortSecurity"]) },
];

const STATUS: [Rule; 4] = [
    Rule::Computed("status.ready", ready),
    Rule::OnlyOld("status.failureReason"),
    Rule::OnlyOld("status.failureMessage"),
    Rule::Each("status.conditions", "status.conditions", CONDITION),
];

const CONDITION: &[Rule] = &[
    Rule::OnlyOld("severity"),
    Rule::OnlyNew("observedGeneration"),
    Rule::Adjust {
        new: |condition| {
            if let Value::Object(fields) = condition {
                fields.entry("reason").or_insert_with(|| NO_REASON.into());
                fields.entry("message").or_insert_with(|| "".into());
            }
        },
        old: |condition| {
            if let Value::Object(fields) = condition {
                forget(fields, "reason", NO_REASON);
                forget(fields, "message", "");
            }
        },
    },
];

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

/// Turns a truth value around, if there is one.
fn turn(object: &mut Value, path: &[&str]) {
    if let Some(Value::Bool(flag)) = path.iter().try_fold(object, |at, key| at.get_mut(key)) {
        *flag = !*flag;
    }
}

/// v1beta1 may name a flavor twice, and then means the id.
fn one_flavor(spec: &mut Value) {
    if let Some(Value::Object(flavor)) = spec.get_mut("flavor")
        && flavor.contains_key("id")
    {
        flavor.remove("filter");
    }
}

/// v1beta1's `status.ready`, which its status cannot be without.
fn ready(object: &Value) -> Value {
    match object.get("status") {
        Some(Value::Object(status)) => {
            let provisioned = status.get("initialization").and_then(|so_far| so_far.get("provisioned"));
            Value::Bool(provisioned == Some(&Value::Bool(true)))
        }
        _ => Value::Null,
    }
}

fn forget(fields: &mut Map<String, Value>, name: &str, value: &str) {
    if fields.get(name).is_some_and(|found| found == value) {
        fields.remove(name);
    }
}
