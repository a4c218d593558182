//! `status.deprecated.v1beta1`: what readers of the v1beta1 API still look at. Its conditions have a severity where they do
//! not hold, and nothing but their status where they do.

use capwasm_api::conditions::timestamp;
use capwasm_api::names::condition;
use capwasm_object::{conditions, json};
use capwasm_sdk::{Outcome, object};
use serde_json::{Value, json};

use crate::names;
use crate::observe::{Observed, Reach};

/// A condition before it gets its time: status, severity, reason, message.
type Verdict = (Option<bool>, &'static str, &'static str, String);

const HOLDS: Verdict = (Some(true), "", "", String::new());

/// Fills it from the conditions of this pass.
pub fn fill(status: &mut Value, out: &Outcome, observed: &Observed) {
    let known = json::items(&observed.plane.object, "/status/deprecated/v1beta1/conditions");
    let now = timestamp(observed.now);
    let mut list = Vec::new();
    let verdicts = all(out, observed, |name| known.iter().any(|one| object::text(one, "/type") == name));
    let summary = summary(&verdicts);
    for (name, verdict) in std::iter::once(("Ready", summary)).chain(verdicts) {
        list.push(entry(name, verdict, known, &now));
    }
    let nodes = |machine: &&crate::machine::Machine| {
        machine.node.as_ref().is_some_and(|name| {
            let node = observed.workload.nodes.iter().find(|node| object::name(node) == name);
            node.is_some_and(|node| object::is_true(node, "Ready"))
        })
    };
    let ready = match &observed.workload.reach {
        // What was last seen stands for a while.
        Reach::Settling(_) => {
            let last =
                json::at(&observed.plane.object, "/status/deprecated/v1beta1/readyReplicas").and_then(Value::as_u64);
            usize::try_from(last.unwrap_or_default()).unwrap_or_default().min(observed.machines.len())
        }
        _ => observed.machines.iter().filter(nodes).count(),
    };
    status["deprecated"] = json!({"v1beta1": {
        "conditions": list,
        "updatedReplicas": observed.machines.iter().filter(|machine| machine.outdated.is_empty()).count(),
        "readyReplicas": ready,
        "unavailableReplicas": observed.machines.len() - ready,
    }});
}

fn entry(name: &str, (status, severity, reason, message): Verdict, known: &[Value], now: &str) -> Value {
    let status = match status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let mut entry = json!({"type": name, "status": status});
    conditions::stamp(&mut entry, known, now);
    for (field, text) in [("severity", severity), ("reason", reason), ("message", message.as_str())] {
        if !text.is_empty() {
            entry[field] = json!(text);
        }
    }
    entry
}

/// In upstream's order; those that do not apply yet are left out.
fn all(out: &Outcome, observed: &Observed, has: impl Fn(&str) -> bool) -> Vec<(&'static str, Verdict)> {
    let (wanted, there) = (observed.plane.replicas as usize, observed.machines.len());
    let mut list = Vec::new();
    if there >= wanted || has("MachinesCreated") {
        list.push(("MachinesCreated", HOLDS));
    }
    let outdated = observed.machines.iter().filter(|machine| !machine.outdated.is_empty()).count();
    if outdated > 0 {
        let message =
            format!("Rolling {outdated} replicas with outdated spec ({} replicas up to date)", there - outdated);
        list.push(("MachinesSpecUpToDate", (Some(false), "Warning", "RollingUpdateInProgress", message)));
    } else if has("MachinesSpecUpToDate") {
        list.push(("MachinesSpecUpToDate", HOLDS));
    }
    let resizing = |direction: &str| format!("Scaling {direction} control plane to {wanted} replicas (actual {there})");
    let ready = observed.machines.iter().filter(|machine| machine.holds(condition::READY) == Some(true)).count();
    match there.cmp(&wanted) {
        std::cmp::Ordering::Less => list.push(("Resized", (Some(false), "Warning", "ScalingUp", resizing("up")))),
        std::cmp::Ordering::Greater => {
            list.push(("Resized", (Some(false), "Warning", "ScalingDown", resizing("down"))))
        }
        std::cmp::Ordering::Equal if ready == there || has("Resized") => list.push(("Resized", HOLDS)),
        std::cmp::Ordering::Equal => {}
    }
    if there > 0 {
        let message = format!("{ready} of {there} completed");
        list.push((
            "MachinesReady",
            if ready == there { HOLDS } else { (Some(false), "Info", "MachinesNotReady", message) },
        ));
    }
    list.push((
        "Available",
        if observed.initialized { HOLDS } else { (Some(false), "Info", "WaitingForKubeadmInit", String::new()) },
    ));
    let certificates = super::certificates_available(out, observed);
    if certificates || out.condition_named(names::CERTIFICATES_AVAILABLE).is_some() || has("CertificatesAvailable") {
        let message = out.condition_named(names::CERTIFICATES_AVAILABLE).map(|one| one.message.clone());
        list.push((
            "CertificatesAvailable",
            if certificates {
                HOLDS
            } else {
                (Some(false), "Warning", "CertificatesGenerationFailed", message.unwrap_or_default())
            },
        ));
    }
    for (name, ill, unknown) in [
        ("ControlPlaneComponentsHealthy", "ControlPlaneComponentsUnhealthy", "ControlPlaneComponentsUnknown"),
        ("EtcdClusterHealthy", "EtcdClusterUnhealthy", "EtcdClusterUnknown"),
    ] {
        if !observed.initialized {
            continue;
        }
        if name == "EtcdClusterHealthy" && observed.external_etcd {
            list.push((name, HOLDS));
        } else if let Some(one) = out.condition_named(name) {
            list.push((
                name,
                match one.status {
                    Some(true) => HOLDS,
                    Some(false) => (Some(false), "Error", ill, one.message.clone()),
                    None => (None, "", unknown, one.message.clone()),
                },
            ));
        }
    }
    list
}

/// `Ready`: the worst of those that upstream counts.
fn summary(verdicts: &[(&str, Verdict)]) -> Verdict {
    let counted = verdicts.iter().filter(|(name, _)| !name.ends_with("Healthy"));
    let weight = |verdict: &Verdict| match (verdict.0, verdict.1) {
        (Some(false), "Error") => 0,
        (Some(false), "Warning") => 1,
        (Some(false), _) => 2,
        (Some(true), _) => 3,
        (None, _) => 4,
    };
    counted.map(|(_, verdict)| verdict).min_by_key(|verdict| weight(verdict)).cloned().unwrap_or(HOLDS)
}
