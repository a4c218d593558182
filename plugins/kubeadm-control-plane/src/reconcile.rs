//! One pass over a KubeadmControlPlane: observes, asks [`decide`](crate::decide) for the step, collects what should be.

use capwasm_api::names::{CORE_API_VERSION, annotations, labels, reason};
use capwasm_sdk::{Context, ControlPlaneAnswer, Fault, ObjectRef, Optional, Place, Problem, Refused, object};
use serde_json::{Value, json};

use crate::certificates::{Certificates, Purpose, Settings};
use crate::clone::{self, NewMachine};
use crate::decide::{Observed, Step, decide};
use crate::kubeconfig::{self, Target};
use crate::observe::{self, Cluster, ControlPlane, TemplateRef};
use crate::status::{self, CERTIFICATES_AVAILABLE};

/// Brings the machines nearer to what `object` asks for.
pub fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<ControlPlaneAnswer, Problem> {
    let plane = ControlPlane::read(object)?;
    let Some(cluster) = cx.related_one("cluster").map(|cluster| Cluster::read(&cluster)) else {
        return Err(Problem::waiting("WaitingForCluster", "no Cluster refers to this control plane yet"));
    };
    let settings = Settings::of(&plane.cluster_configuration());
    let mut machines = observe::owned_machines(cx.host, &cluster.name, &plane.uid)?;
    for machine in &mut machines {
        machine.outdated = observe::outdated(cx.host, &plane, machine)?;
    }
    let initialized = plane.initialized || (!machines.is_empty() && observe::is_initialized(cx)?);
    let observed = Observed {
        replicas: plane.replicas,
        initialized,
        external_etcd: settings.external_etcd,
        machines,
        failure_domains: cluster.failure_domains.clone(),
    };
    let answer = status::answer(&observed, &cluster.name);
    status::counters(&mut cx.out, &answer, &observed);
    status::conditions(&mut cx.out, &observed);
    let result = step(cx, &plane, &cluster, settings, &observed);
    // After the step, whose operations matter more: the first that fails stops the rest.
    keep_machines(cx, &plane, &cluster, &observed);
    status::machine_conditions(&mut cx.out, &observed);
    match result {
        // A wish that cannot be met does not make what runs unavailable.
        Err(problem) if initialized && problem.fault == Fault::Invalid => {
            status::refused(&mut cx.out, &observed, &problem);
            Ok(answer)
        }
        // Others wait for what latches; the problem is told by the next pass.
        Err(_) if initialized && !plane.initialized => {
            cx.out.wake_when_applied();
            Ok(answer)
        }
        result => result.map(|()| answer),
    }
}

/// At most one machine more or less, and what has to be there first.
fn step(
    cx: &mut Context<'_>,
    plane: &ControlPlane,
    cluster: &Cluster,
    settings: Settings,
    observed: &Observed,
) -> Result<(), Problem> {
    let template = own_template(cx, plane, cluster);
    if !cluster.infrastructure_provisioned {
        return Err(Problem::waiting(
            reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
            "the cluster's infrastructure is not provisioned yet",
        ));
    }
    let step = decide(observed);
    let kubeconfig = kubeconfig::observe(cx.host, &cluster.name)?;
    // The pairs are read when something needs them, not by every pass over a control plane that is complete.
    if kubeconfig != kubeconfig::Step::Keep || matches!(step, Ok(Step::Create { .. })) {
        let certificates = certificates(cx, plane, cluster, settings, observed)?;
        let (Some(server), Some(authority)) = (&cluster.server, certificates.get(Purpose::ClusterCa)) else {
            return Err(Problem::waiting("WaitingForEndpoint", "the Cluster has no control plane endpoint yet"));
        };
        let target = Target { namespace: &plane.namespace, cluster: &cluster.name, server };
        kubeconfig::write(cx, kubeconfig, target, authority, settings.algorithm, &plane.owner(true))?;
    }
    match step? {
        Step::Nothing => {}
        Step::Wait(why) => {
            if observed.machines.len() > observed.replicas as usize {
                hold_scale_down(cx, observed, &why);
            }
        }
        Step::Create { first, failure_domain } => {
            let slot = clone::slot(plane, &observed.machines);
            let name = clone::name(plane, cluster, slot)?;
            create(cx, &NewMachine { plane, cluster, template: &template?, name, slot, first, failure_domain });
        }
        Step::Remove { name, uid } => remove(cx, observed, name, uid)?,
    }
    Ok(())
}

/// What changes in place, the default of `spec.replicas`, and the record of used slots, which outlives the machines that had
/// them.
fn keep_machines(cx: &mut Context<'_>, plane: &ControlPlane, cluster: &Cluster, observed: &Observed) {
    if !plane.has_replicas {
        // Scaling and the Cluster's counters need a number to start from.
        cx.out.own(json!({"spec": {"replicas": plane.replicas}}));
    }
    let next = clone::slot(plane, &observed.machines).to_string();
    if next != "0" && plane.next_slot.as_deref() != Some(&next) {
        cx.out.own(json!({"metadata": {"annotations": {annotations::NEXT_SLOT: next}}}));
    }
    for machine in observed.machines.iter().filter(|machine| !machine.deleting) {
        if let Some(patch) = clone::in_place_patch(plane, cluster, machine) {
            let target = ObjectRef::new(CORE_API_VERSION, "Machine", &machine.name);
            cx.out.patch(format!("sync-{}", machine.name), Place::Management, target, patch);
        }
    }
}

/// The pairs of the control plane, made where they are missing.
fn certificates(
    cx: &mut Context<'_>,
    plane: &ControlPlane,
    cluster: &Cluster,
    settings: Settings,
    observed: &Observed,
) -> Result<Certificates, Problem> {
    let certificates = Certificates::read(cx.host, &cluster.name, settings).inspect_err(|problem| {
        cx.out.condition(CERTIFICATES_AVAILABLE, Some(false), reason::INTERNAL_ERROR, problem.message.clone());
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
    certificates.create_missing(cx, (&plane.namespace, &cluster.name), settings, &plane.owner(true))?;
    Err(Problem::waiting("WaitingForCertificates", missing))
}

/// Reads the infrastructure template and makes the Cluster its owner, so that it goes when the Cluster does.
fn own_template(cx: &mut Context<'_>, plane: &ControlPlane, cluster: &Cluster) -> Result<Value, Problem> {
    let reference = TemplateRef::of(plane);
    if reference.kind.is_empty() || reference.name.is_empty() {
        return Err(Problem::invalid(
            "InvalidTemplate",
            "spec.machineTemplate.spec.infrastructureRef must name a template",
        ));
    }
    let Some(template) = cx.host.lookup(&reference.target()).optional()? else {
        return Err(Problem::waiting("TemplateNotFound", format!("there is no {} {}", reference.kind, reference.name)));
    };
    clone::check_template(&template)?;
    let mut owners =
        template.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    if !owners.iter().any(|owner| object::text(owner, "/uid") == cluster.uid) {
        owners.push(cluster.owner());
        cx.out.patch(
            "own-template",
            Place::Management,
            reference.target(),
            // A merge patch replaces the list: refused when somebody else has written meanwhile.
            json!({"metadata": {
                "ownerReferences": owners,
                "resourceVersion": template.pointer("/metadata/resourceVersion"),
            }}),
        );
    }
    Ok(template)
}

/// In this order, so that nobody acts on a Machine whose parts are missing.
fn create(cx: &mut Context<'_>, new: &NewMachine<'_>) {
    cx.out
        .create("create-config", Place::Management, new.config())
        .create("create-infrastructure", Place::Management, new.infrastructure())
        .create("create-machine", Place::Management, new.machine())
        .event("SuccessfulCreate", format!("asked for Machine {}", new.name));
}

/// etcd keeps counting members that are gone. Until this provider can take a member out of etcd, machines that have one
/// stay: losing the quorum would cost the whole cluster.
fn remove(cx: &mut Context<'_>, observed: &Observed, name: String, uid: String) -> Result<(), Problem> {
    if !observed.external_etcd && observe::has_etcd_members(cx.host)? {
        hold_scale_down(cx, observed, "this version of the provider cannot take a member out of etcd yet");
        return Ok(());
    }
    cx.out.delete("delete-machine", Place::Management, ObjectRef::new(CORE_API_VERSION, "Machine", &name), Some(uid));
    cx.out.event("SuccessfulDelete", format!("asked for the deletion of Machine {name}"));
    Ok(())
}

fn hold_scale_down(cx: &mut Context<'_>, observed: &Observed, why: &str) {
    let message =
        format!("Scaling down from {} to {} replicas waits: {why}", observed.machines.len(), observed.replicas);
    cx.out.condition(capwasm_api::names::condition::SCALING_DOWN, Some(true), reason::SCALING_DOWN, message);
}

/// Deletes the machines once the workers are gone; true when none is left.
pub fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let cluster = match cx.related_one("cluster") {
        Some(cluster) => object::name(&cluster).to_owned(),
        None => object::label(object, labels::CLUSTER_NAME).unwrap_or_default().to_owned(),
    };
    if cluster.is_empty() {
        // Never belonged to a cluster, so that it never made anything.
        return Ok(true);
    }
    let own = observe::owned_machines(cx.host, &cluster, object::uid(object))?;
    let others = workers(cx, &cluster)?;
    status::deleting(&mut cx.out, &own, others);
    cx.out.status(json!({"replicas": own.len()}));
    if others == 0 {
        for machine in own.iter().filter(|machine| !machine.deleting) {
            let target = ObjectRef::new(CORE_API_VERSION, "Machine", &machine.name);
            cx.out.delete(format!("delete-{}", machine.name), Place::Management, target, Some(machine.uid.clone()));
        }
    }
    Ok(own.is_empty() && others == 0)
}

fn workers(cx: &Context<'_>, cluster: &str) -> Result<usize, Refused> {
    let selector = format!("{}={cluster},!{}", labels::CLUSTER_NAME, labels::CONTROL_PLANE);
    Ok(cx.host.lookup_list(CORE_API_VERSION, "Machine", None, &selector)?.len())
}
