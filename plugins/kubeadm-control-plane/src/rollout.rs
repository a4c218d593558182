//! Why a machine is to be replaced. Pure.

use std::time::Duration;

use capwasm_api::names::annotations;
use capwasm_sdk::object;
use jiff::Timestamp;
use serde_json::Value;

use crate::machine::Machine;
use crate::plane::{ControlPlane, Rollout, TemplateRef};
use crate::{config, names};

/// Reasons, those of a changed version first; none for a machine that is as it should be. What cannot be read counts as
/// fine: a machine is not replaced for want of knowledge.
/// `template` is the hash of what the template says.
pub fn reasons(plane: &ControlPlane, machine: &Machine, template: Option<&str>, now: Timestamp) -> Vec<String> {
    let mut reasons = Vec::new();
    if machine.version != plane.version {
        reasons.push(format!("Version {}, {} required", machine.version, plane.version));
    }
    if let Some(config) = &machine.config {
        let differing = config::differences(&plane.config, config, &machine.version);
        if !differing.is_empty() {
            reasons.push(format!("KubeadmConfig is not up-to-date: {}", differing.join(", ")));
        }
    }
    if let Some(infrastructure) = &machine.infrastructure
        && is_from_elsewhere(plane, infrastructure, template)
    {
        reasons.push(format!("{} is not up-to-date", object::text(infrastructure, "/kind")));
    }
    match expiry_due(&plane.rollout, machine) {
        Some(due) if due <= now => {
            reasons.push("Certificates will expire soon, spec.rollout.before is reached".to_owned())
        }
        _ => {}
    }
    if plane.rollout.after.is_some_and(|after| after <= now && machine.created < after) {
        reasons.push("KubeadmControlPlane spec.rollout.after expired".to_owned());
    }
    reasons
}

/// Whether a clone was made from another template, or from what this one said before. Clones without a record, of other
/// makers, are left alone.
fn is_from_elsewhere(plane: &ControlPlane, clone: &Value, template: Option<&str>) -> bool {
    let wanted = TemplateRef::of(plane);
    let record = |key| object::annotation(clone, key);
    let (Some(name), Some(group_kind)) =
        (record(annotations::CLONED_FROM_NAME), record(annotations::CLONED_FROM_GROUP_KIND))
    else {
        return false;
    };
    if (name, group_kind) != (wanted.name.as_str(), wanted.group_kind().as_str()) {
        return true;
    }
    match (record(names::TEMPLATE_HASH), template) {
        (Some(hash), Some(template)) => hash != template,
        _ => false,
    }
}

/// When a machine's certificates come too near to their end.
fn expiry_due(rollout: &Rollout, machine: &Machine) -> Option<Timestamp> {
    let expiry: Timestamp = object::text(&machine.stored, "/status/certificatesExpiryDate").parse().ok()?;
    expiry.checked_sub(rollout.before_expiry?).ok()
}

/// How long until time alone makes a machine outdated.
pub fn next_due(rollout: &Rollout, machines: &[Machine], now: Timestamp) -> Option<Duration> {
    let expiries = machines.iter().filter_map(|machine| expiry_due(rollout, machine));
    let due = expiries.chain(rollout.after).filter(|due| *due > now).min()?;
    Duration::try_from(due.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::clone;
    use serde_json::json;

    fn plane(spec: Value) -> ControlPlane {
        let mut object = json!({"spec": {
            "version": "v1.36.0",
            "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "g", "kind": "BoxTemplate", "name": "t"}}},
        }});
        object::merge(&mut object, &json!({"spec": spec}));
        ControlPlane::read(&object).unwrap()
    }

    fn machine(patch: Value) -> Machine {
        let mut object = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"version": "v1.36.0"},
        });
        object::merge(&mut object, &patch);
        Machine::read(object)
    }

    #[test]
    fn every_trigger_of_a_rollout_is_named_and_what_is_unknown_is_none() {
        let template = clone::template_hash(&json!({"spec": {"template": {"spec": {"size": 2}}}}));
        let clone = |name: &str, hash: Option<String>| {
            let mut clone = json!({"kind": "Box", "metadata": {"annotations": {
                annotations::CLONED_FROM_NAME: name, annotations::CLONED_FROM_GROUP_KIND: "BoxTemplate.g",
            }}});
            if let Some(hash) = hash {
                clone["metadata"]["annotations"][names::TEMPLATE_HASH] = json!(hash);
            }
            Some(clone)
        };
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let expiring = json!({"status": {"certificatesExpiryDate": "2026-06-08T00:00:00Z"}});
        let before = |days: u32| json!({"rollout": {"before": {"certificatesExpiryDays": days}}});
        for (what, spec, object, infrastructure, expected) in [
            ("as it should be", json!({}), json!({}), clone("t", Some(template.clone())), vec![]),
            ("a version", json!({"version": "v1.37.0"}), json!({}), None, vec!["Version v1.36.0, v1.37.0 required"]),
            ("another template", json!({}), json!({}), clone("old", None), vec!["Box is not up-to-date"]),
            (
                "what the template says",
                json!({}),
                json!({}),
                clone("t", Some("x".into())),
                vec!["Box is not up-to-date"],
            ),
            ("a clone without a record of the content", json!({}), json!({}), clone("t", None), vec![]),
            ("a clone of somebody else", json!({}), json!({}), Some(json!({"kind": "Box"})), vec![]),
            (
                "certificates with time",
                before(7),
                json!({"status": {"certificatesExpiryDate": "2026-06-08T00:00:01Z"}}),
                None,
                vec![],
            ),
            (
                "certificates at the limit",
                before(7),
                expiring.clone(),
                None,
                vec!["Certificates will expire soon, spec.rollout.before is reached"],
            ),
            ("certificates, no limit", json!({}), expiring, None, vec![]),
            (
                "rollout.after in the future",
                json!({"rollout": {"after": "2026-07-01T00:00:00Z"}}),
                json!({}),
                None,
                vec![],
            ),
            (
                "rollout.after passed",
                json!({"rollout": {"after": "2026-05-01T00:00:00Z"}}),
                json!({}),
                None,
                vec!["KubeadmControlPlane spec.rollout.after expired"],
            ),
            (
                "rollout.after, replaced since",
                json!({"rollout": {"after": "2025-05-01T00:00:00Z"}}),
                json!({}),
                None,
                vec![],
            ),
        ] {
            let machine = Machine { infrastructure, ..machine(object) };
            assert_eq!(reasons(&plane(spec), &machine, Some(&template), now), expected, "{what}");
        }
    }

    #[test]
    fn time_wakes_when_it_makes_a_machine_outdated() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let machine = machine(json!({"status": {"certificatesExpiryDate": "2026-06-10T00:00:00Z"}}));
        let rollout = Rollout {
            after: Some(at("2026-06-09T00:00:00Z")),
            before_expiry: Some(Duration::from_secs(7 * 86_400)),
            no_surge: false,
        };
        let due = |now: &str| next_due(&rollout, std::slice::from_ref(&machine), at(now)).map(|due| due.as_secs());
        assert_eq!(due("2026-06-02T00:00:00Z"), Some(86_400), "the certificates");
        assert_eq!(due("2026-06-04T00:00:00Z"), Some(5 * 86_400), "rollout.after");
        assert_eq!(due("2026-06-11T00:00:00Z"), None);
    }
}
