//! Health checks of MachineHealthChecks, topologies and classes.

use super::rule::Rule::{self, Each, Move, Seconds, Template};

/// The older fields are in the object itself; the hub groups them.
pub const HEALTH_CHECK: &[Rule] = &[
    Move("enable", "enabled"),
    Each("unhealthyConditions", "checks.unhealthyNodeConditions", TIMEOUT),
    Each("unhealthyMachineConditions", "checks.unhealthyMachineConditions", TIMEOUT),
    Seconds("nodeStartupTimeout", "checks.nodeStartupTimeoutSeconds"),
    Move("maxUnhealthy", "remediation.triggerIf.unhealthyLessThanOrEqualTo"),
    Move("unhealthyRange", "remediation.triggerIf.unhealthyInRange"),
    Template("remediationTemplate", "remediation.templateRef"),
];

const TIMEOUT: &[Rule] = &[Seconds("timeout", "timeoutSeconds")];
