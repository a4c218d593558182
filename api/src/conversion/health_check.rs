//! Health checks: of a MachineHealthCheck, and inside topologies and classes.

use super::rule::Rule::{self, Each, Move, Seconds, Template};

/// Of an object that has the older fields directly in it; the hub groups them.
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
