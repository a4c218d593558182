//! MachineHealthCheck.

use serde::Deserialize;
use serde_json::Value;

use super::meta::Metadata;

/// `MachineHealthCheck`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MachineHealthCheck {
    /// Metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: MachineHealthCheckSpec,
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineHealthCheckSpec {
    /// The cluster.
    pub cluster_name: String,
    /// A metav1 label selector of Machines.
    pub selector: Value,
    /// What makes a Machine unhealthy.
    pub checks: HealthChecks,
    /// What is done about it.
    pub remediation: HealthCheckRemediation,
}

/// `spec.checks`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthChecks {
    /// Seconds in which a Node must appear; 0 is no limit.
    pub node_startup_timeout_seconds: Option<i64>,
    /// Conditions of the Node that may not last.
    pub unhealthy_node_conditions: Vec<UnhealthyCondition>,
    /// Conditions of the Machine that may not last.
    pub unhealthy_machine_conditions: Vec<UnhealthyCondition>,
}

/// A condition that makes unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnhealthyCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status that is bad.
    pub status: String,
    /// For how many seconds it may be.
    pub timeout_seconds: i64,
}

/// `spec.remediation`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthCheckRemediation {
    /// When it is done at all.
    pub trigger_if: RemediationTrigger,
    /// What is made for an unhealthy Machine, instead of its owner replacing it.
    pub template_ref: Option<TemplateReference>,
}

/// `spec.remediation.triggerIf`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemediationTrigger {
    /// A number, or a percentage as text.
    pub unhealthy_less_than_or_equal_to: Option<Value>,
    /// `[3-5]`.
    pub unhealthy_in_range: Option<String>,
}

/// A reference to a template at a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateReference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}
