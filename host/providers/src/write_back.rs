//! A guest's reply becomes a plan: typed answers go to the fields of the contract version in force, the outcome to status,
//! own paths, conditions, events and operations. Pure.
//!
//! What latches stays: provider id, endpoint, provisioned, initialized and the name of the data Secret are set once and
//! never taken back, whatever a later call answers.

use crate::schema;
use capwasm_api::conditions::{self, Condition, Status};
use capwasm_api::descriptor::{KindDescriptor, Role};
use capwasm_api::json;
use capwasm_reconcile::{Action, ClusterId, Event, Operation, Place, Plan, Target, Verdict};
use capwasm_runtime::{Answer, Fault, ObjectRef, Outcome, Problem, Refused};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The contract version in force for a kind at its spoken version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contract {
    /// `status.ready` and conditions with severity.
    V1Beta1,
    /// `status.initialization` and metav1 conditions.
    V1Beta2,
}

impl Contract {
    /// By the CRD's contract labels; the newest whose label names the version.
    pub fn of(crd: &Value, version: &str) -> Self {
        let named = |contract: &str| {
            json::label(crd, &format!("cluster.x-k8s.io/{contract}"))
                .is_some_and(|list| list.split('_').any(|v| v == version))
        };
        if !named("v1beta2") && named("v1beta1") { Self::V1Beta1 } else { Self::V1Beta2 }
    }
}

/// What a reply is written back to.
pub struct WriteBack<'a> {
    /// The object as it was when the guest saw it.
    pub object: &'a Value,
    /// Its kind.
    pub kind: &'a KindDescriptor,
    /// The contract version in force.
    pub contract: Contract,
    /// The cluster that it belongs to: where operations on the workload cluster go.
    pub cluster: Option<&'a ClusterId>,
    /// A MachinePool owns it: bootstrap data is for instances that are still to come, and may be replaced.
    pub of_pool: bool,
    /// When.
    pub now: Timestamp,
}

/// The plan of a call that was answered.
pub fn answered(at: &WriteBack<'_>, answer: &Result<Answer, Problem>, outcome: &Outcome) -> Plan {
    let mut desired = resumed(at);
    let mut plan = Plan::nothing();
    for fields in &outcome.status {
        merge(json::map(&mut desired, &["status"]), fields, hosts_own(at.kind.role));
    }
    for fields in &outcome.own {
        for path in merge_own(&mut desired, fields, &at.kind.own) {
            plan.events.push(Event::warning(
                "PathNotOwned",
                format!("the provider set {path}, which its descriptor does not declare as its own; dropped"),
            ));
        }
    }
    for condition in &outcome.conditions {
        set_condition(at, &mut desired, &condition.name, condition.status, &condition.reason, &condition.message, None);
    }
    plan.events.extend(outcome.events.iter().map(|event| Event {
        warning: event.warning,
        reason: event.reason.clone(),
        message: event.message.clone(),
    }));
    plan.wake_after = outcome.wake_after;
    plan.wake_when_applied = outcome.wake_when_applied;

    let refused = operations(at, outcome, &mut plan.operations);
    match answer {
        Ok(Answer::Gone(gone)) => {
            ready(at, &mut desired, Some(false), "Deleting", "", Some(Fault::Waiting));
            if *gone && refused.is_none() {
                plan.release.clone_from(&at.kind.finalizers);
            }
            plan.verdict = if *gone { Verdict::Done } else { Verdict::Waiting };
        }
        // An answer counts once everything that it rests on is done: a Secret that could not be written must not be
        // announced, and what latches could never be taken back.
        Ok(answer) if refused.is_none() => {
            let mut without = desired.clone();
            keep_latched(at, &mut without);
            write_answer(at, &mut desired, answer, &mut plan.operations);
            complete(at, &mut without);
            plan.fallback = (!plan.operations.is_empty()).then_some(without);
            plan.verdict = Verdict::Done;
        }
        Ok(_) => {}
        Err(problem) => {
            ready(at, &mut desired, Some(false), &problem.reason, &problem.message, Some(problem.fault));
            plan.verdict = verdict(problem);
            if problem.fault == Fault::Waiting {
                // What nothing announces: the provider knows when it is worth a look.
                plan.wake_after = plan.wake_after.into_iter().chain(problem.retry_after).min();
            }
        }
    }
    if let Some((key, refused)) = refused {
        let message = format!("operation {key:?} is not granted: {}", refused.message);
        ready(at, &mut desired, Some(false), &refused.reason, &message, Some(Fault::Invalid));
        plan.verdict = Verdict::Failed { reason: refused.reason, message, retry_after: None, backoff: false };
    }
    keep_latched(at, &mut desired);
    count_own_change(at, &mut desired);
    complete(at, &mut desired);
    // Whoever asks to be called once it is written does not want it written later; with operations, these are waited for.
    plan.status_may_wait = (!plan.wake_when_applied || !plan.operations.is_empty()) && may_wait(at, &desired);
    plan.desired = Some(desired);
    plan
}

/// Fields of a status that are never the guest's. Conditions have a function of their own. Whoever names the data Secret says
/// what machines get for bootstrap data, and what the host writes over: that is the Secret that the host made, no other.
fn hosts_own(role: Role) -> &'static [&'static str] {
    if role == Role::Bootstrap { &["conditions", "dataSecretName"] } else { &["conditions"] }
}

/// The plan of a call that came to nothing: a trap, or a passed limit. Nothing that the guest collected counts.
pub fn failed(at: &WriteBack<'_>, reason: &str, message: &str) -> Plan {
    let mut desired = resumed(at);
    set_condition(at, &mut desired, ready_condition(at.kind.role), None, reason, message, Some(Fault::Transient));
    complete(at, &mut desired);
    Plan { desired: Some(desired), verdict: Verdict::retry(reason, message), ..Plan::default() }
}

/// The plan of an object whose gate is closed by somebody else's slowness.
pub fn waiting(at: &WriteBack<'_>, reason: &str, message: &str) -> Plan {
    let mut desired = resumed(at);
    if !json::flag(at.object, &format!("/{}", provisioned_path(at).join("/"))).unwrap_or_default() {
        ready(at, &mut desired, Some(false), reason, message, Some(Fault::Waiting));
    }
    complete(at, &mut desired);
    let status_may_wait = may_wait(at, &desired);
    Plan { desired: Some(desired), verdict: Verdict::Waiting, status_may_wait, ..Plan::default() }
}

/// The plan that only says whether the object is paused.
pub fn paused(at: &WriteBack<'_>) -> Plan {
    let mut desired = at.object.clone();
    set_condition(at, &mut desired, "Paused", Some(true), "Paused", "", None);
    complete(at, &mut desired);
    Plan { desired: Some(desired), verdict: Verdict::Waiting, ..Plan::default() }
}

/// The plan that writes the finalizers, and calls again once they can be read.
pub fn finalize(object: &Value, finalizer: &str) -> Plan {
    let mut desired = object.clone();
    let list = json::map(&mut desired, &["metadata"]).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(finalizer.into());
    }
    Plan { desired: Some(desired), wake_when_applied: true, ..Plan::default() }
}

/// Whether the status brings nothing that anybody but people acts on. What the provider names may wait until then is news
/// once somebody relies on it.
fn may_wait(at: &WriteBack<'_>, desired: &Value) -> bool {
    let provisioned = json::flag(at.object, &format!("/{}", provisioned_path(at).join("/"))).unwrap_or_default();
    let names: Vec<&str> = at.kind.may_wait.iter().map(String::as_str).filter(|_| !provisioned).collect();
    conditions::is_informational(at.object, desired, &names)
}

/// A copy of the object to work on. A resumed object says so; one that was never paused says nothing, which saves a write.
fn resumed(at: &WriteBack<'_>) -> Value {
    let mut desired = at.object.clone();
    if conditions::is_true(at.object, "Paused") {
        set_condition(at, &mut desired, "Paused", Some(false), "NotPaused", "", None);
    }
    desired
}

/// Puts back what latched, should the guest have cleared or changed it by status or own fields.
fn keep_latched(at: &WriteBack<'_>, desired: &mut Value) {
    for path in latches(at) {
        let held = at.object.pointer(&format!("/{}", path.join("/")));
        // An endpoint that Go wrote empty has port 0.
        let empty = |held: &Value| held.as_bool() == Some(false) || held.is_null() || *held == "" || *held == 0;
        if let Some(held) = held.filter(|held| !empty(held)) {
            json::set(desired, path, held.clone());
        }
    }
}

/// Adds the flags without which the API server takes no status at all. Whoever sets them says more than this.
fn complete(at: &WriteBack<'_>, desired: &mut Value) {
    let Some(status) = desired.get_mut("status").and_then(Value::as_object_mut) else { return };
    for flag in schema::required_flags(&at.kind.crd, &at.kind.version) {
        status.entry(flag).or_insert(Value::Bool(false));
    }
}

/// What is set once and never taken back. A v1beta1 control plane's `ready` comes and goes.
fn latches(at: &WriteBack<'_>) -> &'static [&'static [&'static str]] {
    const HOST: &[&str] = &["spec", "controlPlaneEndpoint", "host"];
    const PORT: &[&str] = &["spec", "controlPlaneEndpoint", "port"];
    const PROVIDER_ID: &[&str] = &["spec", "providerID"];
    const DATA: &[&str] = &["status", "dataSecretName"];
    const READY: &[&str] = &["status", "ready"];
    const PROVISIONED: &[&str] = &["status", "initialization", "provisioned"];
    const CREATED: &[&str] = &["status", "initialization", "dataSecretCreated"];
    const INITIALIZED: &[&str] = &["status", "initialization", "controlPlaneInitialized"];
    match (at.kind.role, at.contract) {
        (Role::InfrastructureCluster, Contract::V1Beta1) => &[HOST, PORT, READY, PROVISIONED],
        (Role::InfrastructureCluster, Contract::V1Beta2) => &[HOST, PORT, PROVISIONED],
        (Role::InfrastructureMachine, Contract::V1Beta1) => &[PROVIDER_ID, READY, PROVISIONED],
        (Role::InfrastructureMachine, Contract::V1Beta2) => &[PROVIDER_ID, PROVISIONED],
        (Role::InfrastructureMachinePool, _) => &[READY, PROVISIONED],
        (Role::Bootstrap, Contract::V1Beta1) => &[DATA, READY],
        (Role::Bootstrap, Contract::V1Beta2) => &[DATA, CREATED],
        (Role::ControlPlane, Contract::V1Beta1) => &[HOST, PORT, &["status", "initialized"]],
        (Role::ControlPlane, Contract::V1Beta2) => &[HOST, PORT, INITIALIZED],
        (Role::Controller | Role::Template, _) => &[],
    }
}

fn write_answer(at: &WriteBack<'_>, desired: &mut Value, answer: &Answer, operations: &mut Vec<Operation>) {
    match answer {
        Answer::Cluster { provisioned, endpoint, failure_domains } => {
            latch_endpoint(desired, endpoint.as_ref().map(|endpoint| (endpoint.host.as_str(), endpoint.port)));
            let domains = failure_domains.iter().map(|domain| {
                let attributes: serde_json::Map<String, Value> =
                    domain.attributes.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
                let mut entry = json!({"controlPlane": domain.control_plane});
                if !attributes.is_empty() {
                    entry["attributes"] = Value::Object(attributes);
                }
                (domain.name.clone(), entry)
            });
            let domains = match at.contract {
                Contract::V1Beta1 => Value::Object(domains.collect()),
                Contract::V1Beta2 => domains
                    .map(|(name, mut entry)| {
                        entry["name"] = name.into();
                        entry
                    })
                    .collect(),
            };
            let none = domains.as_array().is_some_and(Vec::is_empty)
                || domains.as_object().is_some_and(serde_json::Map::is_empty);
            json::set(desired, &["status", "failureDomains"], if none { Value::Null } else { domains });
            latch_provisioned(at, desired, *provisioned);
        }
        Answer::Machine { provisioned, provider_id, addresses, failure_domain } => {
            if let (None, Some(id)) = (json::text(at.object, "/spec/providerID"), provider_id) {
                json::set(desired, &["spec", "providerID"], id.clone());
            }
            if !addresses.is_empty() {
                let addresses: Value = addresses.iter().map(|a| json!({"type": a.kind, "address": a.value})).collect();
                json::set(desired, &["status", "addresses"], addresses);
            }
            if let Some(domain) = failure_domain
                .as_ref()
                .filter(|_| schema::declares(&at.kind.crd, &at.kind.version, "status.failureDomain"))
            {
                json::set(desired, &["status", "failureDomain"], domain.clone());
            }
            latch_provisioned(at, desired, *provisioned);
        }
        Answer::Pool { provisioned, provider_ids, replicas } => {
            // An empty list where there was none would be a write for nothing.
            if !provider_ids.is_empty() || !json::items(at.object, "/spec/providerIDList").is_empty() {
                json::set(desired, &["spec", "providerIDList"], json!(provider_ids));
            }
            json::set(desired, &["status", "replicas"], *replicas);
            latch_provisioned(at, desired, *provisioned);
            // Upstream's core looks for `ready` of pools in either contract (up to 1.14).
            if *provisioned && schema::declares(&at.kind.crd, &at.kind.version, "status.ready") {
                json::set(desired, &["status", "ready"], true);
            }
            observed_generation(at, desired);
        }
        Answer::Bootstrap(data) => {
            let announced = json::text(at.object, "/status/dataSecretName");
            let name = announced.unwrap_or(json::name(at.object)).to_owned();
            if let Some(data) = data {
                let secret = data_secret(at.object, &name, data);
                let action = if at.of_pool && announced.is_some() {
                    // Announced means that it was made by this object, so nothing of somebody else's is replaced.
                    Action::Apply { object: secret, manager: "capwasm".into(), force: true }
                } else {
                    Action::Create(secret)
                };
                operations.push(Operation::management("bootstrap-data", action));
            }
            let made = data.is_some() || announced.is_some();
            if made {
                json::set(desired, &["status", "dataSecretName"], name);
                match at.contract {
                    Contract::V1Beta1 => json::set(desired, &["status", "ready"], true),
                    Contract::V1Beta2 => json::set(desired, &["status", "initialization", "dataSecretCreated"], true),
                }
                ready(at, desired, Some(true), "Ready", "", None);
            } else {
                ready(at, desired, Some(false), "WaitingForBootstrapData", "", Some(Fault::Waiting));
            }
        }
        Answer::ControlPlane(state) => {
            if schema::declares(&at.kind.crd, &at.kind.version, "spec.controlPlaneEndpoint") {
                latch_endpoint(
                    desired,
                    state.endpoint.as_ref().map(|endpoint| (endpoint.host.as_str(), endpoint.port)),
                );
            }
            let status = json::map(desired, &["status"]);
            status.insert("replicas".into(), state.replicas.into());
            status.insert("readyReplicas".into(), state.ready.into());
            match at.contract {
                Contract::V1Beta1 => {
                    status.insert("updatedReplicas".into(), state.up_to_date.into());
                    status.insert("unavailableReplicas".into(), state.replicas.saturating_sub(state.available).into());
                }
                Contract::V1Beta2 => {
                    status.insert("availableReplicas".into(), state.available.into());
                    status.insert("upToDateReplicas".into(), state.up_to_date.into());
                }
            }
            if !state.selector.is_empty() {
                status.insert("selector".into(), state.selector.clone().into());
            }
            if let Some(version) = &state.version {
                status.insert("version".into(), version.clone().into());
            }
            if state.initialized {
                match at.contract {
                    Contract::V1Beta1 => {
                        json::set(desired, &["status", "initialized"], true);
                        json::set(desired, &["status", "ready"], state.ready > 0);
                    }
                    Contract::V1Beta2 => {
                        json::set(desired, &["status", "initialization", "controlPlaneInitialized"], true)
                    }
                }
            }
            observed_generation(at, desired);
        }
        Answer::Reconciled => ready(at, desired, Some(true), "Ready", "", None),
        Answer::Gone(_) => {}
    }
}

fn latch_endpoint(desired: &mut Value, endpoint: Option<(&str, u16)>) {
    let set = json::text(desired, "/spec/controlPlaneEndpoint/host").is_some();
    if let Some((host, port)) = endpoint.filter(|_| !set) {
        json::set(desired, &["spec", "controlPlaneEndpoint"], json!({"host": host, "port": port}));
    }
}

fn observed_generation(at: &WriteBack<'_>, desired: &mut Value) {
    if let Some(generation) = json::number(at.object, "/metadata/generation")
        && schema::declares(&at.kind.crd, &at.kind.version, "status.observedGeneration")
    {
        json::set(desired, &["status", "observedGeneration"], generation);
    }
}

/// What the plan itself writes to the spec is observed as well: the status, written after it, says so at once instead of in a
/// write of its own. Should somebody else write in between, the next pass has the number right.
fn count_own_change(at: &WriteBack<'_>, desired: &mut Value) {
    let observed = json::number(desired, "/status/observedGeneration");
    if let Some(generation) = json::number(at.object, "/metadata/generation")
        && observed == Some(generation)
        && desired.get("spec") != at.object.get("spec")
    {
        json::set(desired, &["status", "observedGeneration"], generation.saturating_add(1));
    }
}

fn provisioned_path(at: &WriteBack<'_>) -> &'static [&'static str] {
    const READY: &[&str] = &["status", "ready"];
    // Pools of the newer contract that have `ready` only: upstream's own among them.
    let older = || !schema::declares(&at.kind.crd, &at.kind.version, "status.initialization");
    match (at.kind.role, at.contract) {
        (_, Contract::V1Beta1) => READY,
        (Role::InfrastructureMachinePool, Contract::V1Beta2) if older() => READY,
        (_, Contract::V1Beta2) => &["status", "initialization", "provisioned"],
    }
}

fn latch_provisioned(at: &WriteBack<'_>, desired: &mut Value, provisioned: bool) {
    if provisioned {
        json::set(desired, provisioned_path(at), true);
        // Some kinds of the older contract have the newer one's word as well, so that either core reads them.
        let both = ["status", "initialization", "provisioned"];
        if at.contract == Contract::V1Beta1 && schema::names(&at.kind.crd, &at.kind.version, &both.join(".")) {
            json::set(desired, &both, true);
        }
        ready(at, desired, Some(true), "Ready", "", None);
    } else {
        // The words that core has for an object that has no conditions yet: no news to be copied.
        let message = format!("{} {} is false", at.kind.kind, provisioned_path(at).join("."));
        ready(at, desired, Some(false), "NotReady", &message, Some(Fault::Waiting));
    }
}

fn data_secret(object: &Value, name: &str, data: &capwasm_runtime::BootstrapData) -> Value {
    use base64::Engine as _;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let cluster = json::label(object, capwasm_api::names::labels::CLUSTER_NAME).unwrap_or_default();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": json::namespace(object),
            "labels": {(capwasm_api::names::labels::CLUSTER_NAME): cluster},
            "ownerReferences": [{
                "apiVersion": object.get("apiVersion"),
                "kind": json::kind(object),
                "name": json::name(object),
                "uid": json::uid(object),
                "controller": true,
            }],
        },
        "type": capwasm_api::names::SECRET_TYPE,
        "data": {"value": encode(&data.value), "format": encode(data.format.as_bytes())},
    })
}

/// The condition that sums up what the host knows of a call. A control plane reports `Available` by itself.
fn ready_condition(role: Role) -> &'static str {
    if role == Role::ControlPlane { "Available" } else { "Ready" }
}

fn ready(
    at: &WriteBack<'_>,
    desired: &mut Value,
    status: Option<bool>,
    reason: &str,
    message: &str,
    fault: Option<Fault>,
) {
    if at.kind.role == Role::ControlPlane && fault.is_none_or(|fault| fault == Fault::Waiting) {
        return;
    }
    set_condition(at, desired, ready_condition(at.kind.role), status, reason, message, fault);
}

fn set_condition(
    at: &WriteBack<'_>,
    desired: &mut Value,
    name: &str,
    status: Option<bool>,
    reason: &str,
    message: &str,
    fault: Option<Fault>,
) {
    // A kind of a controller may have no conditions: a template that only reports its capacity, say.
    if at.kind.role == Role::Controller && !schema::declares(&at.kind.crd, &at.kind.version, "status.conditions") {
        return;
    }
    let reason = if reason.is_empty() { "Unspecified" } else { reason };
    let status = match status {
        Some(true) => Status::True,
        Some(false) => Status::False,
        None => Status::Unknown,
    };
    conditions::set(desired, &Condition::new(name, status, reason).message(message), at.now);
    if has_severity(at)
        && let Some(entry) = desired
            .pointer_mut("/status/conditions")
            .and_then(Value::as_array_mut)
            .and_then(|list| list.iter_mut().find(|entry| entry.get("type").and_then(Value::as_str) == Some(name)))
    {
        // v1beta1: a severity where it does not hold, nothing but the status where it does, and no empty texts.
        let mut drop = |name: &str| entry.as_object_mut().map(|entry| entry.remove(name));
        if status == Status::True {
            drop("reason");
        }
        if status == Status::True || message.is_empty() {
            drop("message");
        }
        drop("severity");
        if status == Status::False {
            entry["severity"] = severity(fault).into();
        }
    }
}

/// Whether conditions are those of v1beta1: by contract, or, of a kind that is in no contract, by its schema.
fn has_severity(at: &WriteBack<'_>) -> bool {
    at.contract == Contract::V1Beta1 || schema::names(&at.kind.crd, &at.kind.version, "status.conditions[].severity")
}

/// v1beta1's severity of a fault.
fn severity(fault: Option<Fault>) -> &'static str {
    match fault {
        None | Some(Fault::Waiting) => "Info",
        Some(Fault::Transient) => "Warning",
        Some(Fault::Invalid | Fault::Terminal | Fault::Unsupported) => "Error",
    }
}

fn verdict(problem: &Problem) -> Verdict {
    match problem.fault {
        Fault::Waiting => Verdict::Waiting,
        fault => Verdict::Failed {
            reason: problem.reason.clone(),
            message: problem.message.clone(),
            retry_after: problem.retry_after,
            backoff: fault == Fault::Transient,
        },
    }
}

/// Operations in order, up to the first that was not granted, which is returned.
fn operations(at: &WriteBack<'_>, outcome: &Outcome, into: &mut Vec<Operation>) -> Option<(String, Refused)> {
    use capwasm_runtime::Operation as Wanted;
    let namespace = json::namespace(at.object);
    let place_of = |place: capwasm_runtime::Place| match (place, at.cluster) {
        (capwasm_runtime::Place::Workload, Some(cluster)) => Some(Place::Workload(cluster.clone())),
        (capwasm_runtime::Place::Workload, None) => None,
        (capwasm_runtime::Place::Management, _) => Some(Place::Management),
    };
    let target_of = |target: &ObjectRef| Target {
        api_version: target.api_version.clone(),
        kind: target.kind.clone(),
        namespace: target.namespace.clone().unwrap_or_else(|| namespace.to_owned()),
        name: target.name.clone(),
    };
    for wanted in &outcome.operations {
        let mut status = None;
        let (place, action) = match wanted {
            Wanted::Patch { place, target, merge, .. } => {
                let (first, second) = patches(merge);
                let patch = |(merge, subresource)| Action::Patch {
                    target: target_of(target),
                    merge,
                    resource_version: None,
                    subresource,
                };
                status = second.map(patch);
                (*place, patch(first))
            }
            Wanted::Create { place, object, .. } => (*place, Action::Create(with_namespace(object, *place, namespace))),
            Wanted::Apply { place, object, .. } => (
                *place,
                Action::Apply {
                    object: with_namespace(object, *place, namespace),
                    manager: "capwasm".into(),
                    force: true,
                },
            ),
            Wanted::SetConditionOf { target, condition, .. } => (
                capwasm_runtime::Place::Management,
                Action::SetCondition {
                    target: target_of(target),
                    condition: json!({
                        "type": condition.name,
                        "status": match condition.status { Some(true) => "True", Some(false) => "False", None => "Unknown" },
                        "reason": condition.reason,
                        "message": condition.message,
                    }),
                },
            ),
            Wanted::Delete { place, target, uid, .. } => {
                (*place, Action::Delete { target: target_of(target), uid: uid.clone(), propagation: None })
            }
            Wanted::Refused { key, refused } => return Some((key.clone(), refused.clone())),
        };
        let Some(place) = place_of(place) else {
            return Some((
                wanted.key().to_owned(),
                Refused::invalid(
                    "NoCluster",
                    "the object belongs to no cluster, so there is no workload cluster to write to",
                ),
            ));
        };
        let second = status.map(|action| Operation { key: wanted.key().to_owned(), place: place.clone(), action });
        into.push(Operation { key: wanted.key().to_owned(), place, action });
        into.extend(second);
    }
    None
}

/// A merge patch and the subresource that it is for.
type PartialPatch = (Value, Option<&'static str>);

/// A patch as API servers take it: the status by its subresource, after the rest if there is any. A resource version holds for
/// the first of two, whose write changes it.
fn patches(merge: &Value) -> (PartialPatch, Option<PartialPatch>) {
    let Some(status) = merge.get("status") else { return ((merge.clone(), None), None) };
    let mut rest = merge.clone();
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("status");
    }
    let says_more = |(key, value): (&String, &Value)| match key.as_str() {
        "apiVersion" | "kind" => false,
        "metadata" => value.as_object().is_none_or(|metadata| metadata.keys().any(|key| key != "resourceVersion")),
        _ => true,
    };
    if rest.as_object().is_some_and(|rest| rest.iter().any(says_more)) {
        return ((rest, None), Some((json!({"status": status}), Some("status"))));
    }
    ((merge.clone(), Some("status")), None)
}

/// An object for the management cluster without a namespace stands in the reconciled object's.
fn with_namespace(object: &Value, place: capwasm_runtime::Place, namespace: &str) -> Value {
    let mut object = object.clone();
    if place == capwasm_runtime::Place::Management
        && json::text(&object, "/metadata/namespace").is_none()
        && !namespace.is_empty()
    {
        json::set(&mut object, &["metadata", "namespace"], namespace);
    }
    object
}

/// JSON merge patch (RFC 7396) on a map, leaving out some top-level keys.
fn merge(into: &mut serde_json::Map<String, Value>, patch: &Value, except: &[&str]) {
    let Some(patch) = patch.as_object() else { return };
    for (key, value) in patch {
        if except.contains(&key.as_str()) {
            continue;
        }
        match value {
            Value::Null => {
                into.remove(key);
            }
            Value::Object(_) => {
                let entry = into.entry(key.clone()).or_insert_with(|| json!({}));
                if !entry.is_object() {
                    *entry = json!({});
                }
                if let Some(map) = entry.as_object_mut() {
                    merge(map, value, &[]);
                }
            }
            value => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Merges the leaves that lie under declared paths; returns the paths of the others.
fn merge_own(desired: &mut Value, fields: &Value, own: &[String]) -> Vec<String> {
    let own: Vec<Vec<&str>> = own.iter().map(|declared| keys(declared)).collect();
    let mut dropped = Vec::new();
    let mut walk: Vec<(Vec<&str>, &Value)> = vec![(Vec::new(), fields)];
    while let Some((path, value)) = walk.pop() {
        if let Some((last, parents)) = path.split_last()
            && own.iter().any(|declared| path.starts_with(declared))
        {
            match room(desired, parents) {
                // What is not there needs no parents to be cleared in.
                Some(there) if there || !value.is_null() => {
                    merge(json::map(desired, parents), &json!({(*last): value}), &[]);
                }
                Some(_) => {}
                None => dropped.push(path.join(".")),
            }
            continue;
        }
        match value.as_object() {
            Some(map) => walk.extend(map.iter().map(|(key, value)| ([&path[..], &[key.as_str()]].concat(), value))),
            None => dropped.push(path.join(".")),
        }
    }
    dropped.sort();
    dropped
}

/// Whether there is a map at these keys already; none where one would take the place of something else.
fn room(object: &Value, keys: &[&str]) -> Option<bool> {
    let mut at = Some(object);
    for key in keys {
        at = at.and_then(|at| at.get(key)).filter(|at| !at.is_null());
        if at.is_some_and(|at| !at.is_object()) {
            return None;
        }
    }
    Some(at.is_some())
}

/// The keys of a declared path. The name of a label or an annotation has dots of its own.
fn keys(declared: &str) -> Vec<&str> {
    for map in ["labels", "annotations"] {
        if let Some(name) =
            declared.strip_prefix("metadata.").and_then(|rest| rest.strip_prefix(map)?.strip_prefix('.'))
        {
            return vec!["metadata", map, name];
        }
    }
    declared.split('.').collect()
}

#[cfg(test)]
mod tests;
