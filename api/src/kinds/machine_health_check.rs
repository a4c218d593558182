//! MachineHealthCheck.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::meta::Object;

/// Typed view of a MachineHealthCheck.
pub type MachineHealthCheck = Object<MachineHealthCheckSpec, MachineHealthCheckStatus>;

/// `spec` of a MachineHealthCheck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineHealthCheckSpec {
    /// Name of the Cluster in the same namespace.
    pub cluster_name: String,
    /// metav1.LabelSelector of Machines.
    pub selector: Value,
    /// Criteria for unhealthy Machines.
    pub checks: HealthChecks,
    /// Remediation of unhealthy Machines.
    pub remediation: HealthCheckRemediation,
}

/// `spec.checks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthChecks {
    /// Timeout in seconds for a Node to appear; 0 means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_startup_timeout_seconds: Option<i64>,
    /// Conditions of the Node that make its Machine unhealthy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_node_conditions: Vec<UnhealthyCondition>,
    /// Conditions of the Machine that make it unhealthy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unhealthy_machine_conditions: Vec<UnhealthyCondition>,
}

/// A condition status that makes a Machine unhealthy after a timeout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnhealthyCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status that is unhealthy: `True`, `False` or `Unknown`.
    pub status: String,
    /// Tolerated duration of the status in seconds.
    pub timeout_seconds: i64,
}

/// `spec.remediation`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthCheckRemediation {
    /// When remediation is allowed.
    pub trigger_if: RemediationTrigger,
    /// Template of external remediation requests; without it the Machine's owner replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateReference>,
}

/// `spec.remediation.triggerIf`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemediationTrigger {
    /// Most unhealthy Machines for remediation: an integer, or a percentage as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_less_than_or_equal_to: Option<Value>,
    /// Range of unhealthy Machines for remediation, such as `[3-5]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unhealthy_in_range: Option<String>,
}

/// Reference to a template at a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateReference {
    /// `group/version` of the template.
    pub api_version: String,
    /// Kind of the template; requests have the same without `Template`.
    pub kind: String,
    /// Name of the template in the same namespace.
    pub name: String,
}

/// `status` of a MachineHealthCheck, without conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineHealthCheckStatus {
    /// Number of selected Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_machines: Option<i64>,
    /// Number of selected Machines that are healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_healthy: Option<i64>,
    /// Number of further Machines that may become unhealthy until remediation stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediations_allowed: Option<i64>,
    /// Names of the selected Machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
}
