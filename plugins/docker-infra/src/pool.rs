//! DockerMachinePool: DockerMachines that are made, counted and replaced together.
//!
//! A pool has no containers of its own: it makes DockerMachines, core makes a Machine for each, and each becomes a node as any
//! other does. One that has to go goes by its Machine, so that its Node is drained.

mod decide;
mod members;

use capwasm_api::names::fingerprint;
use capwasm_sdk::{Context, ObjectRef, Place, PoolAnswer, Problem, object};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::deprecated;
use crate::kinds::{CLUSTER_NAME_LABEL, FAILURE_DOMAIN_LABEL, Mount, POOL_NAME_LABEL, SIMULATE, VERSION};
use decide::Going;
use members::{API_VERSION, Member};

/// All that were asked for are nodes, and no others are left.
const REPLICAS_READY: &str = "ReplicasReady";
/// Annotation of a member: fingerprint of what it was made from.
const MADE_FROM: &str = "capwasm.dev/made-from";
/// Linux' limit for a host name, less what else is in a member's.
const LONGEST_BASE: usize = 63 - 8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PoolSpec {
    #[serde(rename = "providerID")]
    provider_id: String,
    template: Template,
}

/// What every member gets; written as it is read, so that it can be fingerprinted and passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Template {
    #[serde(skip_serializing_if = "String::is_empty")]
    custom_image: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pre_load_images: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extra_mounts: Vec<Mount>,
}

/// One pass over a DockerMachinePool.
struct Subject<'a> {
    object: &'a Value,
    pool: Value,
    cluster: String,
    version: String,
    template: Value,
    /// Fingerprint of version and template, by which outdated members are told.
    print: String,
    replicas: usize,
}

/// Makes, replaces and removes members as the MachinePool asks for.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<PoolAnswer, Problem> {
    let pool = cx
        .related_one("machine-pool")
        .ok_or_else(|| Problem::waiting("WaitingForMachinePool", "no MachinePool owns this object yet"))?;
    let spec: PoolSpec = object::spec(object)?;
    let subject = subject(object, pool, &spec.template)?;
    cx.out.status(json!({"infrastructureMachineKind": "DockerMachine"}));
    if object::text(&subject.pool, "/spec/template/spec/bootstrap/dataSecretName").is_empty() {
        return Err(Problem::waiting("WaitingForBootstrapData", "the MachinePool has no bootstrap data yet"));
    }
    if spec.provider_id.is_empty() {
        // It names no thing, as upstream's does not; core wants one.
        let id = format!("docker:////{}-dmp-{}", subject.cluster, object::name(object));
        cx.out.own(json!({"spec": {"providerID": id}}));
    }
    let selector =
        format!("{CLUSTER_NAME_LABEL}={},{POOL_NAME_LABEL}={}", subject.cluster, object::name(&subject.pool));
    let (members, taken) = members::of(cx.host, object, &selector)?;
    let plan = decide::decide(subject.replicas, &subject.print, &members);
    create(cx, &subject, &members, &taken, plan.create);
    for (member, why) in &plan.delete {
        delete(cx, member, *why);
    }
    Ok(answer(cx, &subject, &members))
}

fn subject<'a>(object: &'a Value, pool: Value, template: &Template) -> Result<Subject<'a>, Problem> {
    let cluster = object::text(&pool, "/spec/clusterName").to_owned();
    if cluster.is_empty() {
        return Err(Problem::invalid("NoClusterName", "the MachinePool has no spec.clusterName"));
    }
    let version = object::text(&pool, "/spec/template/spec/version").to_owned();
    let template = serde_json::to_value(template)
        .map_err(|error| Problem::invalid("BadSpec", format!("spec.template: {error}")))?;
    let replicas = pool.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    Ok(Subject {
        object,
        cluster,
        print: fingerprint(&format!("{version} {template}")),
        version,
        template,
        replicas: usize::try_from(replicas).unwrap_or(usize::MAX),
        pool,
    })
}

/// Makes members. Their names follow from the pool and a number; a name is free when neither a DockerMachine nor a Machine has
/// it, because a Machine outlives its Node.
fn create(cx: &mut Context<'_>, subject: &Subject<'_>, members: &[Member], taken: &[String], count: usize) {
    let domains: Vec<&str> = subject
        .pool
        .pointer("/spec/failureDomains")
        .and_then(Value::as_array)
        .map(|domains| domains.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut used: Vec<String> = members.iter().map(|member| member.failure_domain.clone()).collect();
    let names = (0..).map(|number| name(subject, number)).filter(|name| !taken.contains(name));
    for name in names.take(count) {
        let domain = domains.iter().min_by_key(|domain| used.iter().filter(|used| used == domain).count());
        let domain = domain.copied().unwrap_or_default();
        used.push(domain.to_owned());
        cx.out.event("MemberCreated", format!("created DockerMachine {name}"));
        cx.out.create(format!("create {name}"), Place::Management, member(subject, &name, domain));
    }
}

fn name(subject: &Subject<'_>, number: u32) -> String {
    let print = fingerprint(&format!("{}/{number}", object::uid(subject.object)));
    let longest = LONGEST_BASE.saturating_sub(subject.cluster.len()).max(1);
    let base: String = object::name(subject.object).chars().take(longest).collect();
    format!("{}-{}", base.trim_end_matches(['-', '.']), print.get(..6).unwrap_or(&print))
}

fn member(subject: &Subject<'_>, name: &str, domain: &str) -> Value {
    let mut annotations = json!({MADE_FROM: subject.print});
    let simulated = object::annotation(subject.object, SIMULATE).unwrap_or_default();
    for (annotation, value) in
        [(VERSION, subject.version.as_str()), (FAILURE_DOMAIN_LABEL, domain), (SIMULATE, simulated)]
    {
        if !value.is_empty() {
            object::merge(&mut annotations, &json!({annotation: value}));
        }
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "DockerMachine",
        "metadata": {
            "name": name,
            "namespace": object::namespace(subject.object),
            "labels": {CLUSTER_NAME_LABEL: subject.cluster, POOL_NAME_LABEL: object::name(&subject.pool)},
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": object::text(subject.object, "/apiVersion"),
                "kind": object::text(subject.object, "/kind"),
                "name": object::name(subject.object),
                "uid": object::uid(subject.object),
            }],
        },
        "spec": subject.template,
    })
}

fn delete(cx: &mut Context<'_>, member: &Member, why: Going) {
    let Some((machine, uid)) = &member.machine else { return };
    let why = match why {
        Going::Outdated => "it is outdated",
        Going::Surplus => "it is one too many",
    };
    cx.out.event("MemberDeleted", format!("deleting Machine {machine}, because {why}"));
    let target = ObjectRef::new("cluster.x-k8s.io/", "Machine", machine);
    cx.out.delete(format!("delete {machine}"), Place::Management, target, Some(uid.clone()));
}

fn answer(cx: &mut Context<'_>, subject: &Subject<'_>, members: &[Member]) -> PoolAnswer {
    let mut provider_ids: Vec<String> =
        members.iter().map(|member| member.provider_id.clone()).filter(|id| !id.is_empty()).collect();
    provider_ids.sort();
    let instances: Vec<Value> = members.iter().map(|member| member.instance.clone()).collect();
    cx.out.status(json!({"instances": instances}));
    let complete = provider_ids.len() == subject.replicas && members.len() == subject.replicas;
    if complete {
        cx.out.condition(REPLICAS_READY, Some(true), REPLICAS_READY, "");
    } else {
        let message =
            format!("{} of {} instances are nodes, {} are wanted", provider_ids.len(), members.len(), subject.replicas);
        cx.out.condition(REPLICAS_READY, Some(false), "WaitingForReplicasReady", message);
    }
    deprecated::conditions(cx, subject.object, &[(REPLICAS_READY, "WaitingForReplicasReady")]);
    PoolAnswer { provisioned: complete, provider_ids, replicas: u32::try_from(members.len()).unwrap_or(u32::MAX) }
}

/// Removes all members: by their Machines, or directly where core has made none.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let selector = object::label(object, CLUSTER_NAME_LABEL)
        .map(|cluster| format!("{CLUSTER_NAME_LABEL}={cluster}"))
        .unwrap_or_default();
    let (members, _) = members::of(cx.host, object, &selector)?;
    for member in members.iter().filter(|member| !member.deleting) {
        let (kind, name, uid) = match &member.machine {
            Some((machine, uid)) => (ObjectRef::new("cluster.x-k8s.io/", "Machine", machine), machine, uid),
            None => (ObjectRef::new(API_VERSION, "DockerMachine", &member.name), &member.name, &member.uid),
        };
        cx.out.delete(format!("delete {name}"), Place::Management, kind, Some(uid.clone()));
    }
    cx.out.condition(REPLICAS_READY, Some(false), "Deleting", "");
    deprecated::conditions(cx, object, &[(REPLICAS_READY, "Deleting")]);
    Ok(members.is_empty())
}
