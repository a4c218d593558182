//! Taking over control-plane machines that nobody controls: they, and the Secrets that their configurations own, become the
//! control plane's.

use capwasm_kubeadm::certificates::{Purpose, Settings};
use capwasm_object::version::Version;
use capwasm_sdk::{Context, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::observe::Observed;

/// Whether machines can be taken over, all of them or none. What this control plane made itself, it takes back. Pure.
pub fn check(observed: &Observed) -> Result<(), String> {
    let wanted = Version::parse(&observed.plane.version);
    let is_own = |machine: &&Machine| observed.machines.iter().any(|own| own.uid == machine.uid);
    for machine in observed.orphans.iter().filter(|machine| !is_own(machine)) {
        let name = &machine.name;
        if machine.config_target().is_none() {
            return Err(format!("Machine {name} has no KubeadmConfig"));
        }
        if machine.version.is_empty() {
            // Nobody knows better than the one who made it.
            continue;
        }
        let Some(version) = Version::parse(&machine.version) else {
            return Err(format!("the version {} of Machine {name} is not one", machine.version));
        };
        let skew = wanted.as_ref().and_then(|wanted| wanted.minors_ahead_of(&version));
        if !matches!(skew, Some(-1..=1)) {
            return Err(format!(
                "the version {} of Machine {name} is more than one minor version away from {}",
                machine.version, observed.plane.version
            ));
        }
    }
    Ok(())
}

/// Takes them over; true when there was something to take over or to refuse, so that the rest waits.
pub fn adopt(cx: &mut Context<'_>, observed: &Observed, settings: Settings) -> Result<bool, Problem> {
    let candidates = || observed.orphans.iter().filter(|machine| machine.deleting.is_none());
    if candidates().next().is_none() {
        return Ok(false);
    }
    if let Err(why) = check(observed) {
        cx.out.warning("AdoptionFailed", why.clone());
        return Err(Problem::invalid("AdoptionFailed", format!("unable to take over machines: {why}")));
    }
    for machine in candidates() {
        // One that was only just made has none yet.
        let config = machine.config_target().map(|target| cx.host.lookup(&target).optional()).transpose()?.flatten();
        if let Some(config) = config {
            secrets(cx, observed, settings, &config)?;
        }
        take(cx, observed, machine);
    }
    Ok(true)
}

fn take(cx: &mut Context<'_>, observed: &Observed, machine: &Machine) {
    let owners = machine.stored.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned();
    let mut owners = owners.unwrap_or_default();
    // Of the Cluster it was because nothing else was there.
    owners.retain(|owner| object::text(owner, "/uid") != observed.cluster.uid);
    owners.push(observed.plane.owner());
    let merge = json!({"metadata": {
        "ownerReferences": owners,
        "resourceVersion": machine.stored.pointer("/metadata/resourceVersion"),
    }});
    cx.out.patch(format!("adopt-{}", machine.name), Place::Management, machine.target(), merge);
    cx.out.event("MachineAdopted", format!("Machine {} belongs to this control plane now", machine.name));
}

/// Certificates and kubeconfig that a machine's configuration made; those of users have no such owner and stay theirs.
fn secrets(cx: &mut Context<'_>, observed: &Observed, settings: Settings, config: &Value) -> Result<(), Problem> {
    let cluster = &observed.cluster.name;
    let names = settings.needed().into_iter().map(|purpose: Purpose| purpose.secret_name(cluster));
    for name in names.chain([format!("{cluster}-kubeconfig")]) {
        let target = ObjectRef::new("v1", "Secret", &name);
        let Some(secret) = cx.host.lookup(&target).optional()? else { continue };
        let mut owners =
            secret.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
        let before = owners.len();
        owners.retain(|owner| object::text(owner, "/uid") != object::uid(config));
        if owners.len() == before {
            continue;
        }
        owners.push(observed.plane.owner());
        let merge = json!({"metadata": {
            "ownerReferences": owners,
            "resourceVersion": secret.pointer("/metadata/resourceVersion"),
        }});
        cx.out.patch(format!("adopt-{name}"), Place::Management, target, merge);
    }
    Ok(())
}
