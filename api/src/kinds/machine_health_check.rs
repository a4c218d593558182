//! MachineHealthCheck.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::Object;

/// A MachineHealthCheck.
pub type MachineHealthCheck = Object<MachineHealthCheckSpec, MachineHealthCheckStatus>;

/// What is wanted of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineHealthCheckSpec {
    /// Name of its Cluster, in its namespace.
    pub cluster_name: String,
    /// A metav1 label selector of Machines.
    pub selector: Value,
    /// What makes a Machine unhealthy.
    pub checks: HealthChecks,
    /// What is done about it.
    pub remediation: HealthCheckRemediation,
}

/// `spec.checks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthChecks {
    /// Seconds in which a Node must appear; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_startup_timeout_seconds: Option<i64>,
    /// Conditions of the Node that may not last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_node_conditions: Vec<UnhealthyCondition>,
    /// Conditions of the Machine that may not last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_machine_conditions: Vec<UnhealthyCondition>,
}

/// A condition that makes unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnhealthyCondition {
    /// Its type, as in `status.conditions`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status that is bad.
    pub status: String,
    /// For how many seconds it may be.
    pub timeout_seconds: i64,
}

/// `spec.remediation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthCheckRemediation {
    /// When it is done at all.
    pub trigger_if: RemediationTrigger,
    /// What is made for an unhealthy Machine, instead of its owner replacing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
}

/// `spec.remediation.triggerIf`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemediationTrigger {
    /// A number, or a percentage as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_less_than_or_equal_to: Option<Value>,
    /// `[3-5]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_in_range: Option<String>,
}

/// A reference to a template at a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateReference {
    /// `group/version` of the template.
    pub api_version: String,
    /// Kind of the template: what is made from it is of the same without `Template`.
    pub kind: String,
    /// Name of the template, in the health check's namespace.
    pub name: String,
}

/// What was observed of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineHealthCheckStatus {
    /// Machines that are looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_machines: Option<i64>,
    /// Those of them that are healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_healthy: Option<i64>,
    /// How many more may become unhealthy before nothing is done any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediations_allowed: Option<i64>,
    /// Names of the Machines that are looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
}
