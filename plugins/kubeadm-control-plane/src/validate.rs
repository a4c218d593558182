//! What a KubeadmControlPlane must not ask for and its schema cannot say. Pure.

use capwasm_object::json;
use capwasm_object::version::Version;
use capwasm_sdk::Problem;
use serde_json::Value;

use crate::machine::Machine;
use crate::plane::{self, ControlPlane};

/// Upstream's least number of days: rolling out takes a while.
const LEAST_EXPIRY_DAYS: u64 = 7;
/// How long kubeadm's certificates are valid unless it is told otherwise.
const CERTIFICATE_DAYS: u64 = 365;

/// The first thing that is wrong.
pub fn check(plane: &ControlPlane, external_etcd: bool, machines: &[Machine]) -> Result<(), Problem> {
    replicas(plane, external_etcd)?;
    rollout(plane)?;
    etcd(plane)?;
    version(plane, machines)
}

fn invalid(reason: &str, message: impl Into<String>) -> Result<(), Problem> {
    Err(Problem::invalid(reason, message))
}

fn replicas(plane: &ControlPlane, external_etcd: bool) -> Result<(), Problem> {
    match plane.replicas {
        0 => invalid("InvalidReplicas", "spec.replicas must be at least 1; delete the control plane instead"),
        even if even % 2 == 0 && !external_etcd => {
            invalid("InvalidReplicas", "spec.replicas must be odd where etcd runs on the control plane machines")
        }
        _ => Ok(()),
    }
}

fn rollout(plane: &ControlPlane) -> Result<(), Problem> {
    let at = |pointer: &str| json::at(&plane.object, pointer).filter(|value| !value.is_null());
    let kind = at("/spec/rollout/strategy/type").and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "RollingUpdate") {
        return invalid("InvalidRollout", "spec.rollout.strategy.type must be RollingUpdate");
    }
    if let Some(surge) = at("/spec/rollout/strategy/rollingUpdate/maxSurge") {
        match plane::surge(&plane.object) {
            Some(0) if plane.replicas < 3 => {
                return invalid(
                    "InvalidRollout",
                    "spec.rollout.strategy.rollingUpdate.maxSurge 0 needs at least 3 replicas: with fewer, the rollout would take away what the cluster lives on",
                );
            }
            Some(0 | 1) => {}
            _ => {
                return invalid(
                    "InvalidRollout",
                    format!("spec.rollout.strategy.rollingUpdate.maxSurge must be 0 or 1, not {surge}"),
                );
            }
        }
    }
    let days = at("/spec/rollout/before/certificatesExpiryDays").and_then(Value::as_u64);
    if days.is_some_and(|days| days < LEAST_EXPIRY_DAYS) {
        return invalid(
            "InvalidRollout",
            format!("spec.rollout.before.certificatesExpiryDays must be at least {LEAST_EXPIRY_DAYS}"),
        );
    }
    let valid = plane.cluster_configuration().get("certificateValidityPeriodDays").and_then(Value::as_u64);
    let valid = valid.unwrap_or(CERTIFICATE_DAYS);
    if days.is_some_and(|days| days >= valid) {
        return invalid(
            "InvalidRollout",
            format!(
                "spec.rollout.before.certificatesExpiryDays must be less than the {valid} days that certificates are valid: new machines would be replaced at once, without end"
            ),
        );
    }
    if at("/spec/rollout/after").is_some() && plane.rollout.after.is_none() {
        return invalid("InvalidRollout", "spec.rollout.after must be a time as RFC 3339 has it");
    }
    Ok(())
}

fn etcd(plane: &ControlPlane) -> Result<(), Problem> {
    let configuration = plane.cluster_configuration();
    let part = |name: &str| configuration.get("etcd").and_then(|etcd| etcd.get(name)).is_some_and(Value::is_object);
    if part("local") && part("external") {
        return invalid("InvalidConfiguration", "clusterConfiguration.etcd cannot be local and external at once");
    }
    Ok(())
}

/// A version must be one, and an upgrade takes one minor version at a time.
fn version(plane: &ControlPlane, machines: &[Machine]) -> Result<(), Problem> {
    let Some(wanted) = Version::parse(&plane.version) else {
        return invalid("InvalidVersion", format!("spec.version {:?} is not a version", plane.version));
    };
    let Some(lowest) = machines.iter().filter_map(|machine| Version::parse(&machine.version)).min() else {
        return Ok(());
    };
    match wanted.minors_ahead_of(&lowest) {
        Some(..=1) => Ok(()),
        _ => invalid(
            "InvalidVersion",
            format!(
                "spec.version {} is more than one minor version ahead of a machine's v{}.{}.{}; upgrade one minor version at a time",
                plane.version, lowest.major, lowest.minor, lowest.patch
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::{Fault, object};
    use serde_json::json;

    #[test]
    fn what_the_schema_cannot_say_is_said_here() {
        let surge = |value: Value| json!({"rollout": {"strategy": {"rollingUpdate": {"maxSurge": value}}}});
        let etcd = json!({"kubeadmConfigSpec": {"clusterConfiguration": {"etcd": {"local": {}, "external": {}}}}});
        for (what, spec, external, machines, expected) in [
            ("fine", json!({}), false, &["v1.36.0"][..], ""),
            ("no replicas", json!({"replicas": 0}), false, &[], "InvalidReplicas"),
            ("an even number", json!({"replicas": 2}), false, &[], "InvalidReplicas"),
            ("an even number with etcd elsewhere", json!({"replicas": 2}), true, &[], ""),
            ("one more", surge(json!(1)), false, &[], ""),
            ("one more as text", surge(json!("1")), false, &[], ""),
            ("none more", surge(json!(0)), false, &[], ""),
            (
                "none more of one",
                json!({"replicas": 1, "rollout": surge(json!(0))["rollout"]}),
                false,
                &[],
                "InvalidRollout",
            ),
            ("two more", surge(json!(2)), false, &[], "InvalidRollout"),
            ("a share more", surge(json!("50%")), false, &[], "InvalidRollout"),
            ("another strategy", json!({"rollout": {"strategy": {"type": "OnDelete"}}}), false, &[], "InvalidRollout"),
            (
                "too few days",
                json!({"rollout": {"before": {"certificatesExpiryDays": 6}}}),
                false,
                &[],
                "InvalidRollout",
            ),
            (
                "as many days as certificates are valid",
                json!({"rollout": {"before": {"certificatesExpiryDays": 365}}}),
                false,
                &[],
                "InvalidRollout",
            ),
            (
                "more days than these certificates are valid",
                json!({
                    "rollout": {"before": {"certificatesExpiryDays": 30}},
                    "kubeadmConfigSpec": {"clusterConfiguration": {"certificateValidityPeriodDays": 20}},
                }),
                false,
                &[],
                "InvalidRollout",
            ),
            ("not a time", json!({"rollout": {"after": "soon"}}), false, &[], "InvalidRollout"),
            ("two etcds", etcd, false, &[], "InvalidConfiguration"),
            ("not a version", json!({"version": "latest"}), false, &[], "InvalidVersion"),
            ("the next minor version", json!({"version": "v1.37.1"}), false, &["v1.36.9"], ""),
            ("two at once", json!({"version": "v1.38.0"}), false, &["v1.37.0", "v1.36.0"], "InvalidVersion"),
            ("back, before anything was upgraded", json!({"version": "v1.35.0"}), false, &["v1.36.0"], ""),
            ("another major version", json!({"version": "v2.0.0"}), false, &["v1.36.0"], "InvalidVersion"),
        ] {
            let mut object = json!({"spec": {"version": "v1.36.0", "replicas": 3}});
            object::merge(&mut object, &json!({"spec": spec}));
            let plane = ControlPlane::read(&object).unwrap();
            let machines: Vec<_> =
                machines.iter().map(|version| Machine { version: (*version).into(), ..Machine::default() }).collect();
            let result = check(&plane, external, &machines);
            assert_eq!(result.as_ref().map_or_else(|problem| problem.reason.as_str(), |()| ""), expected, "{what}");
            assert!(result.is_ok() || result.unwrap_err().fault == Fault::Invalid, "{what}");
        }
    }
}
