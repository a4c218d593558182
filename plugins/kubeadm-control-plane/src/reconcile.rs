//! One pass over a KubeadmControlPlane: observes, judges, takes at most one step, reports.

use std::time::Duration;

use capwasm_api::names::{annotations, condition, reason};
use capwasm_kubeadm::certificates::{self, Certificates, Purpose, Settings};
use capwasm_kubeadm::discovery;
use capwasm_kubeadm::kubeconfig::{self, Target};
use capwasm_object::json;
use capwasm_object::version::Version;
use capwasm_sdk::{Context, ControlPlaneAnswer, Fault, Host, Level, ObjectRef, Place, Problem, Refused, object};
use serde_json::{Value, json};

use crate::clone::{self, NewMachine};
use crate::config::Entry;
use crate::decide::{self, Step};
use crate::etcd::{self, Stray};
use crate::machine::Machine;
use crate::names::{self, CERTIFICATES_AVAILABLE};
use crate::observe::{self, Observed, Reach};
use crate::plane::{Cluster, ControlPlane, TemplateRef};
use crate::propagate::Wanted;
use crate::status::{self, Report};
use crate::{adoption, expiry, health, kubeadm, pre_terminate, remediation, rollout, validate};

/// How soon etcd is looked at again while something is not well: nothing tells when it is.
const UNWELL: Duration = Duration::from_secs(15);
/// The same while a machine has only just joined and will soon be well.
const JOINING: Duration = Duration::from_secs(3);
/// How long a machine counts as having just joined.
const YOUNG: Duration = Duration::from_secs(60);

/// One pass over a KubeadmControlPlane: observes, and makes, changes or removes at most one machine.
pub fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<ControlPlaneAnswer, Problem> {
    let plane = ControlPlane::read(object)?;
    let Some(cluster) = cx.related_one("cluster").map(|cluster| Cluster::read(&cluster)) else {
        return Err(Problem::waiting("WaitingForCluster", "no Cluster refers to this control plane yet"));
    };
    let settings = Settings::of(&plane.cluster_configuration());
    let mut observed = observe::observe(cx, plane, cluster, settings)?;
    status::mark_up_to_date(&mut observed);
    let findings = health::judge(&mut observed);
    let mut report = Report::default();
    // Before the step, which may begin another remediation.
    keep_plane(cx, &mut observed);
    let result = step(cx, &mut observed, settings, &mut report);
    timers(cx, &observed);

    let unmet = match &result {
        // A wish that cannot be met does not make what runs unavailable.
        Err(problem) if observed.initialized && problem.fault == Fault::Invalid => {
            cx.out.warning(&problem.reason, problem.message.clone());
            report.refused = Some(problem.clone());
            true
        }
        _ => false,
    };
    // With the first news of a machine's health, so that core tells both at once.
    if observed.workload.reach == Reach::Up {
        expiry::record(cx, &observed);
    }
    status::publish(&mut cx.out, &observed, &findings, &report);
    // Last, because the first operation that fails stops the rest.
    for machine in &observed.machines {
        machine.publish(&mut cx.out);
    }
    let answer = status::answer(&observed);
    let just_initialized = observed.initialized && !observed.plane.initialized;
    // All of the instance's memory goes when the call ends; taking the objects apart would be a tenth of it.
    std::mem::forget(observed);
    match result {
        Err(_) if unmet => Ok(answer),
        // Others wait for what latches; the problem is told by the next pass.
        Err(_) if just_initialized => {
            cx.out.wake_when_applied();
            Ok(answer)
        }
        result => result.map(|()| answer),
    }
}

/// Everything that may be done, in order; what waits does not hold up what comes before it.
fn step(cx: &mut Context<'_>, observed: &mut Observed, settings: Settings, report: &mut Report) -> Result<(), Problem> {
    let template = own_template(cx, observed);
    if adoption::adopt(cx, observed, settings)? {
        return Ok(());
    }
    if !observed.cluster.infrastructure_provisioned {
        return Err(Problem::waiting(
            reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
            "the cluster's infrastructure is not provisioned yet",
        ));
    }
    secrets(cx, observed, settings)?;
    create_bootstrap_and_infrastructure(cx, observed, &template);
    let template = template.map(drop);
    keep_machines(cx, observed);
    if strays(cx, observed, report)? || release(cx, observed, report)? || remediate(cx, observed)? {
        return Ok(());
    }
    validate::check(&observed.plane, observed.external_etcd, &observed.machines)?;
    let step = decide::decide(observed)?;
    if let (true, Reach::Up, Some(version)) =
        (observed.outdated().next().is_some(), &observed.workload.reach, Version::parse(&observed.plane.version))
    {
        kubeadm::prepare(cx, &observed.plane, &version)?;
    }
    match step {
        Step::Wait(preflight) => report.preflight = Some(preflight),
        Step::Create(failure_domain) => {
            // Without it the Machine would stay a name.
            template?;
            create(cx, observed, failure_domain)?;
        }
        Step::Remove(name) => remove(cx, observed, &name)?,
        Step::Nothing => {
            let settled = observed.machines.iter().all(|machine| machine.node.is_some() && machine.deleting.is_none());
            if settled && observed.workload.reach == Reach::Up {
                kubeadm::addons(cx, &observed.plane)?;
            }
            // One that is not there is told; it is needed for the next machine only.
            if let Err(problem) = template
                && problem.fault == Fault::Invalid
            {
                return Err(problem);
            }
        }
    }
    Ok(())
}

/// Reads the infrastructure template and makes the Cluster its owner, so that it goes when the Cluster does.
fn own_template<'a>(cx: &mut Context<'_>, observed: &'a Observed) -> Result<&'a Value, Problem> {
    let reference = TemplateRef::of(&observed.plane);
    if reference.kind.is_empty() || reference.name.is_empty() {
        return Err(Problem::invalid(
            "InvalidTemplate",
            "spec.machineTemplate.spec.infrastructureRef must name a template",
        ));
    }
    let Some(template) = &observed.template else {
        return Err(Problem::waiting("TemplateNotFound", format!("there is no {} {}", reference.kind, reference.name)));
    };
    clone::check_template(template)?;
    let owners = json::items(template, "/metadata/ownerReferences");
    if !owners.iter().any(|owner| object::text(owner, "/uid") == observed.cluster.uid) {
        let mut owners = owners.to_vec();
        owners.push(observed.cluster.owner());
        cx.out.patch(
            "own-template",
            Place::Management,
            reference.target(),
            // A merge patch replaces the list: refused when somebody else has written meanwhile.
            json!({"metadata": {
                "ownerReferences": owners,
                "resourceVersion": json::at(template, "/metadata/resourceVersion"),
            }}),
        );
    }
    Ok(template)
}

/// Certificates and kubeconfig. The pairs are read when something needs them, not by every pass over a control plane that
/// is complete.
fn secrets(cx: &mut Context<'_>, observed: &Observed, settings: Settings) -> Result<(), Problem> {
    let Observed { plane, cluster, .. } = observed;
    let kubeconfig = kubeconfig::observe(cx.host, &cluster.name, cluster.server.as_deref())?;
    if let kubeconfig::Step::Keep(Some(due)) = kubeconfig {
        cx.out.wake_after(Duration::from_millis(due));
    }
    let known = capwasm_api::conditions::is_true(&plane.object, CERTIFICATES_AVAILABLE);
    let grows = observed.machines.len() < plane.replicas as usize || observed.outdated().next().is_some();
    if known && !grows && matches!(kubeconfig, kubeconfig::Step::Keep(_)) {
        return Ok(());
    }
    let certificates = certificates(cx, observed, settings)?;
    let (Some(server), Some(authority)) = (&cluster.server, certificates.get(Purpose::ClusterCa)) else {
        return Err(Problem::waiting("WaitingForEndpoint", "the Cluster has no control plane endpoint yet"));
    };
    if matches!(kubeconfig, kubeconfig::Step::Keep(_)) {
        return Ok(());
    }
    let target = Target { namespace: &plane.namespace, cluster: &cluster.name, server };
    kubeconfig::write(cx, kubeconfig, target, authority, settings.algorithm, &plane.owner())?;
    Ok(())
}

/// The pairs of the control plane, made where they are missing.
fn certificates(cx: &mut Context<'_>, observed: &Observed, settings: Settings) -> Result<Certificates, Problem> {
    let Observed { plane, cluster, .. } = observed;
    let certificates = Certificates::read(cx.host, &cluster.name, settings).inspect_err(|problem| {
        cx.out.condition(CERTIFICATES_AVAILABLE, None, reason::INTERNAL_ERROR, problem.message.clone());
    })?;
    if certificates.is_complete() {
        cx.out.condition(CERTIFICATES_AVAILABLE, Some(true), reason::AVAILABLE, "");
        return Ok(certificates);
    }
    let missing = format!("waiting for the Secrets {}", certificates.missing_names(&cluster.name));
    cx.out.condition(CERTIFICATES_AVAILABLE, Some(false), reason::NOT_AVAILABLE, missing.clone());
    if observed.initialized || !observed.machines.is_empty() {
        // New authorities would be another cluster's: the machines trust the old ones.
        return Err(Problem::terminal(
            "CertificatesLost",
            format!(
                "the control plane has machines, but its certificates are gone ({missing}); restore the Secrets from a backup"
            ),
        ));
    }
    certificates.create_missing(cx, (&plane.namespace, &cluster.name), settings, &plane.owner())?;
    Err(Problem::waiting("WaitingForCertificates", missing))
}

/// KubeadmConfig and infrastructure machine of Machines that have none yet. One that is gone later is not made again: the
/// machine that it stood for is lost.
fn create_bootstrap_and_infrastructure(cx: &mut Context<'_>, observed: &Observed, template: &Result<&Value, Problem>) {
    let Observed { plane, cluster, .. } = observed;
    for machine in observed.machines.iter().filter(|machine| machine.deleting.is_none()) {
        let done = |pointer: &str| {
            json::at(&machine.stored, pointer).is_some_and(|value| !value.is_null() && *value != json!(false))
        };
        let had_data = done("/spec/bootstrap/dataSecretName");
        if machine.config.is_none() && machine.config_target().is_some() && !had_data {
            let entry = if observed.initialized { Entry::Join } else { Entry::Init };
            let mut config = clone::config(plane, cluster, machine, entry);
            if entry == Entry::Join {
                admit(cx.host, cluster, &mut config);
            }
            cx.out.create(format!("create-config-{}", machine.name), Place::Management, config);
        }
        let had_machine = done("/status/initialization/infrastructureProvisioned");
        if let (None, false, Ok(template)) = (&machine.infrastructure, had_machine, template) {
            let infrastructure = clone::infrastructure(plane, cluster, machine, template);
            cx.out.create(format!("create-infrastructure-{}", machine.name), Place::Management, infrastructure);
        }
    }
}

/// Says in a new KubeadmConfig how its machine finds the cluster, with a token that the bootstrap provider lets in: what stands
/// there from the start need not be added. What is not known here is left to that provider, which tells what is wrong.
fn admit(host: &dyn Host, cluster: &Cluster, config: &mut Value) {
    let given = json::at(config, "/spec/joinConfiguration/discovery").and_then(Value::as_object).cloned();
    let given = given.unwrap_or_default();
    let endpoint = cluster.server.as_deref().and_then(|server| server.strip_prefix("https://"));
    let Some(endpoint) = endpoint.filter(|_| !given.contains_key("file")) else { return };
    let hash = if discovery::wants_ca(&given) {
        let Some(hash) = authority_hash(host, &cluster.name) else { return };
        Some(hash)
    } else {
        None
    };
    let discovery = discovery::complete(&given, endpoint, hash.as_deref(), || discovery::new_token(host));
    object::merge(config, &json!({"spec": {"joinConfiguration": {"discovery": discovery}}}));
}

/// The hash by which machines know the cluster's authority.
fn authority_hash(host: &dyn Host, cluster: &str) -> Option<String> {
    let found = certificates::find(host, &Purpose::ClusterCa.secret_name(cluster)).ok().flatten()?;
    host.public_key_hash(&found.certificate_pem).ok()
}

/// Patches what may change without replacing a machine: labels, annotations, deletion timeouts, readiness gates.
fn keep_machines(cx: &mut Context<'_>, observed: &Observed) {
    let wanted = Wanted::of(&observed.plane, &observed.cluster, observed.external_etcd);
    for machine in observed.machines.iter().filter(|machine| machine.deleting.is_none()) {
        let name = &machine.name;
        if let Some(patch) = wanted.machine_patch(machine) {
            cx.out.patch(format!("sync-{name}"), Place::Management, machine.target(), patch);
        }
        if let (Some(config), Some(target)) = (&machine.config, machine.config_target())
            && let Some(patch) = wanted.metadata_patch(config)
        {
            cx.out.patch(format!("sync-config-{name}"), Place::Management, target, patch);
        }
        if let Some(patch) = machine.infrastructure.as_ref().and_then(|clone| wanted.metadata_patch(clone)) {
            cx.out.patch(
                format!("sync-infrastructure-{name}"),
                Place::Management,
                machine.infrastructure_target(),
                patch,
            );
        }
    }
}

/// The default of `spec.replicas`, the record of used slots, which outlives the machines that had them, and the record of a
/// remediation, until its replacement is there.
fn keep_plane(cx: &mut Context<'_>, observed: &mut Observed) {
    let plane = &observed.plane;
    if !plane.has_replicas {
        // Scaling and the Cluster's counters need a number to start from.
        cx.out.own(json!({"spec": {"replicas": plane.replicas}}));
    }
    let next = clone::slot(plane, &observed.machines).to_string();
    if next != "0" && plane.next_slot.as_deref() != Some(&next) {
        cx.out.own(json!({"metadata": {"annotations": {annotations::NEXT_SLOT: next}}}));
    }
    if plane.remediating.is_some() && remediation::under_way(observed).is_none() {
        cx.out.own(json!({"metadata": {"annotations": {names::REMEDIATION_IN_PROGRESS: null}}}));
        // Nor does it relax what stands against the next machine, or count as what that one came for.
        observed.plane.remediating = None;
    }
}

/// Takes members out of etcd that no machine hosts, then what is left of their Nodes; true when a member left, so that
/// nothing else is decided by a membership that is not true any more.
fn strays(cx: &mut Context<'_>, observed: &Observed, report: &mut Report) -> Result<bool, Refused> {
    match observed.manages_etcd().then(|| etcd::stray(observed)).flatten() {
        Some(Stray::Remove { id, name }) => {
            cx.host.etcd_remove(id)?;
            cx.out.event("EtcdMemberRemoved", format!("etcd member {name} had no Machine"));
            // Nothing about etcd wakes: look at what is left.
            cx.out.wake_after(Duration::from_secs(1));
            return Ok(true);
        }
        Some(Stray::Hold { name }) => {
            report.holds.push(format!(
                "etcd member {name} has no Machine, and removing it could cost the quorum; waiting for the other members to become healthy"
            ));
            cx.out.wake_after(UNWELL);
        }
        None if observed.manages_etcd() => {
            for name in etcd::abandoned(observed) {
                cx.out.delete(format!("delete-node-{name}"), Place::Workload, ObjectRef::new("v1", "Node", name), None);
                cx.out.event("NodeDeleted", format!("Node {name} had neither a Machine nor an etcd member"));
            }
        }
        None => {}
    }
    Ok(false)
}

/// Lets a deleted machine go, after its member; true when something was done.
fn release(cx: &mut Context<'_>, observed: &Observed, report: &mut Report) -> Result<bool, Refused> {
    match pre_terminate::decide(observed) {
        pre_terminate::Step::Nothing => Ok(false),
        pre_terminate::Step::Hold { machine, why } => {
            report.holds.push(format!("Machine {machine} is being deleted and waits: {why}"));
            cx.out.wake_after(UNWELL);
            Ok(false)
        }
        pre_terminate::Step::Release { machine, successor, member } => {
            if let Some(successor) = successor {
                cx.host.etcd_move_leader(successor)?;
            }
            if let Some(member) = member {
                cx.host.etcd_remove(member)?;
                cx.out.event("EtcdMemberRemoved", format!("the etcd member of Machine {machine} left"));
            }
            if let Some(machine) = observed.machines.iter().find(|known| known.name == machine) {
                unhook(cx, machine);
                // Its member has left already: what another operation meets must not keep it.
                cx.out.operations.rotate_right(1);
            }
            Ok(true)
        }
    }
}

/// Takes the hook away from a machine.
pub fn unhook(cx: &mut Context<'_>, machine: &Machine) {
    let merge = json!({"metadata": {"annotations": {names::CLEANUP_HOOK: null}}});
    cx.out.patch(format!("unhook-{}", machine.name), Place::Management, machine.target(), merge);
}

/// Deletes a machine that a health check found unhealthy; true when one was deleted.
fn remediate(cx: &mut Context<'_>, observed: &mut Observed) -> Result<bool, Problem> {
    let (step, now) = (remediation::decide(observed), observed.now);
    let mut say = |name: &str, why: &str, message: &str| {
        if let Some(machine) = observed.machines.iter_mut().find(|machine| machine.name == name) {
            machine.set(now, condition::OWNER_REMEDIATED, Some(false), why, message);
        }
    };
    match step {
        remediation::Step::Nothing => Ok(false),
        remediation::Step::Hold { machine, reason, message, retry } => {
            say(&machine, reason, &message);
            if let Some(retry) = retry {
                cx.out.wake_after(retry);
            }
            Ok(false)
        }
        remediation::Step::Delete { machine, successor, record } => {
            say(&machine, reason::MACHINE_DELETING, "Machine is deleting");
            if let Some(successor) = successor {
                cx.host.etcd_move_leader(successor)?;
            }
            // Written before the deletion: a pass that is lost in between deletes the same machine.
            cx.out.own(json!({"metadata": {"annotations": {names::REMEDIATION_IN_PROGRESS: record.write()}}}));
            if let Some(machine) = observed.machines.iter().find(|known| known.name == machine) {
                delete_machine(cx, machine);
                cx.out.event("MachineRemediated", format!("Machine {} is unhealthy and is replaced", machine.name));
            }
            Ok(true)
        }
    }
}

/// Asks for the deletion of a machine.
pub fn delete_machine(cx: &mut Context<'_>, machine: &Machine) {
    cx.out.delete(format!("delete-{}", machine.name), Place::Management, machine.target(), Some(machine.uid.clone()));
}

/// Asks for one Machine more; what belongs to it comes with the next pass.
fn create(cx: &mut Context<'_>, observed: &Observed, failure_domain: Option<String>) -> Result<(), Problem> {
    let Observed { plane, cluster, external_etcd, .. } = observed;
    if cluster.server.is_none() {
        return Err(Problem::waiting("WaitingForEndpoint", "the Cluster has no control plane endpoint yet"));
    }
    let slot = clone::slot(plane, &observed.machines);
    let new = NewMachine { name: clone::name(plane, cluster, slot)?, slot, failure_domain };
    cx.out
        .create("create-machine", Place::Management, clone::machine(plane, cluster, *external_etcd, &new))
        .event("SuccessfulCreate", format!("asked for Machine {}", new.name))
        .wake_when_applied();
    Ok(())
}

/// Asks for the deletion of a Machine; its member leaves etcd once it is drained.
fn remove(cx: &mut Context<'_>, observed: &Observed, name: &str) -> Result<(), Problem> {
    let Some(machine) = observed.machines.iter().find(|machine| machine.name == name) else { return Ok(()) };
    if observed.manages_etcd()
        && let Ok(Some(successor)) = etcd::successor(observed, machine)
    {
        cx.host.etcd_move_leader(successor)?;
    }
    delete_machine(cx, machine);
    cx.out.event("SuccessfulDelete", format!("asked for the deletion of Machine {name}"));
    Ok(())
}

/// When to look again at what changes with time alone.
fn timers(cx: &mut Context<'_>, observed: &Observed) {
    if let Some(due) = rollout::next_due(&observed.plane.rollout, &observed.machines, observed.now) {
        cx.out.wake_after(due);
    }
    match &observed.workload.reach {
        Reach::Settling(Some(left)) => {
            cx.out.wake_after((*left).min(UNWELL));
        }
        // An API server that is connected, and whose etcd has no quorum, tells nobody when that is over.
        Reach::Settling(None) | Reach::Down(_) | Reach::Failed(_) => {
            cx.out.wake_after(UNWELL);
        }
        Reach::Up => {
            if let Some(Err(why)) = &observed.workload.members {
                cx.host.log(Level::Info, "unable to ask etcd for its members", &[("problem", why)]);
            }
            // Of all that is looked at, only etcd does not tell when it changes.
            let unwell = |machine: &&Machine| {
                machine.deleting.is_none()
                    && machine.node.is_some()
                    && machine.holds(names::ETCD_MEMBER_HEALTHY) != Some(true)
            };
            if observed.manages_etcd()
                && let Some(youngest) = observed.machines.iter().filter(unwell).map(joined).max()
            {
                let age = Duration::try_from(observed.now.duration_since(youngest)).unwrap_or_default();
                cx.out.wake_after(if age < YOUNG { JOINING } else { UNWELL });
            }
        }
        Reach::NotInitialized => {}
    }
}

/// When a machine's Node was found, as near as its conditions tell.
fn joined(machine: &Machine) -> jiff::Timestamp {
    machine.conditions.get(condition::NODE_HEALTHY).and_then(|health| health.since()).unwrap_or(machine.created)
}
