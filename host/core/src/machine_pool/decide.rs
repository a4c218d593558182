//! The decision about a MachinePool.

use std::collections::BTreeMap;
use std::time::Duration;

use capwasm_api::conditions::{self as metav1, Status};
use capwasm_api::names::{annotations, condition, finalizers};
use capwasm_api::{contract, json};
use capwasm_reconcile::{Operation, Plan, Verdict};
use serde_json::{Value, json};

use super::observe::Observed;
use super::{conditions, deletion, machines, nodes};
use crate::draft::Draft;
use crate::members::SUMS;
use crate::{gate, ownership};

/// What is collected on the way to a plan.
pub(super) struct Decision<'a> {
    pub(super) observed: &'a Observed,
    pub(super) draft: Draft,
    pub(super) plan: Plan,
    /// The first thing that is wrong; later phases still run.
    failure: Option<(&'static str, String)>,
}

impl Decision<'_> {
    fn fail(&mut self, reason: &'static str, message: impl Into<String>) {
        self.failure.get_or_insert((reason, message.into()));
    }

    /// Run again after this time, or earlier if something else wants that.
    pub(super) fn wake_after(&mut self, time: Duration) {
        self.plan.wake_after = Some(self.plan.wake_after.map_or(time, |earlier| earlier.min(time)));
    }
}

/// What should be, given what was observed.
pub(super) fn decide(observed: &Observed) -> Plan {
    let mut decision =
        Decision { observed, draft: Draft::new(&observed.object, observed.now), plan: Plan::nothing(), failure: None };
    let paused = gate::paused(&observed.object, observed.cluster.as_deref());
    decision.draft.condition(&paused);
    if paused.status == Status::True {
        return Plan { desired: Some(decision.draft.finish(false)), ..Plan::nothing() };
    }
    let stage = if observed.is_deleting() {
        match deletion::decide(&mut decision) {
            // The last pass writes no status that nobody could read.
            deletion::Stage::Done => {
                let has = decision.draft.has_finalizer(finalizers::MACHINE_POOL);
                let release = has.then(|| finalizers::MACHINE_POOL.to_owned()).into_iter().collect();
                return Plan { release, ..decision.plan };
            }
            waiting => Some(waiting),
        }
    } else {
        let Some(cluster) = observed.cluster.as_deref() else {
            // The read of the Cluster wakes the pool when it appears.
            let message = format!("Cluster {} does not exist", observed.pool.spec.cluster_name);
            let verdict =
                Verdict::Failed { reason: "NoCluster".to_owned(), message, retry_after: None, backoff: false };
            return Plan { verdict, ..Plan::nothing() };
        };
        decision.draft.finalizer(finalizers::MACHINE_POOL);
        ownership::own(&mut decision.draft.desired, &ownership::reference(cluster, false));
        bootstrap(&mut decision);
        infrastructure(&mut decision);
        if let Some(members) = &observed.members {
            machines::align(&mut decision, members);
        }
        follow_nodes(&mut decision);
        None
    };
    let waiting = stage.is_some();
    counters(&mut decision);
    phase(&mut decision);
    conditions::set(&mut decision, stage);
    let Decision { draft, mut plan, failure, .. } = decision;
    plan.verdict = match failure {
        Some((reason, message)) => {
            Verdict::Failed { reason: reason.to_owned(), message, retry_after: None, backoff: false }
        }
        None if waiting => Verdict::Waiting,
        None => Verdict::Done,
    };
    let reconciled = matches!(plan.verdict, Verdict::Done | Verdict::Waiting);
    plan.status_may_wait = draft.is_informational(&SUMS);
    plan.desired = Some(draft.finish(reconciled));
    plan
}

/// Makes the pool the controller of what it refers to.
fn adopt(decision: &mut Decision<'_>, key: &str, object: &Value) {
    if json::is_deleting(object) {
        return;
    }
    let (pool, cluster) = (&decision.observed.object, &decision.observed.pool.spec.cluster_name);
    match ownership::adopt(object, &ownership::reference(pool, true), cluster, &[]) {
        Ok(Some(action)) => decision.plan.operations.push(Operation::management(key, action)),
        Ok(None) => {}
        Err(foreign) => decision.fail("ForeignOwner", foreign.to_string()),
    }
}

/// Unlike a Machine's, a pool's data may be made anew under another name: later members need a token that is valid then.
fn bootstrap(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let created = ["status", "initialization", "bootstrapDataSecretCreated"];
    let Some(external) = &observed.bootstrap else {
        if observed.pool.spec.template.spec.bootstrap.data_secret_name.is_some() {
            decision.draft.set(&created, true);
        }
        return;
    };
    let Some((object, contract)) = external.found() else {
        if let Some(message) = external.unusable_kind() {
            decision.fail("Unserved", message);
        }
        return;
    };
    adopt(decision, "own bootstrap config", object);
    if json::is_deleting(object) || !contract::bootstrap::data_secret_created(object, contract) {
        return;
    }
    match contract::bootstrap::data_secret_name(object) {
        Some(name) => {
            decision.draft.set(&["spec", "template", "spec", "bootstrap", "dataSecretName"], name);
            decision.draft.set(&created, true);
        }
        None => {
            let path = contract::bootstrap::data_secret_created_path(contract);
            let message = format!("{} {path} is true, but status.dataSecretName is empty", json::kind(object));
            decision.fail("NoDataSecretName", message);
        }
    }
}

fn infrastructure(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let before = observed.pool.status.initialization.infrastructure_provisioned == Some(true);
    let Some((object, contract)) = observed.infrastructure.found() else {
        match observed.infrastructure.unusable_kind() {
            Some(message) => decision.fail("Unserved", message),
            None if before => decision.fail("Lost", "the infrastructure object is gone though it was provisioned"),
            None => {}
        }
        return;
    };
    adopt(decision, "own infrastructure", object);
    // Upstream's core reads the older flag of pools of either contract, so providers may report no other.
    let done = contract::infrastructure::provisioned(object, contract)
        || contract::infrastructure::provisioned(object, contract::Contract::V1Beta1);
    if json::is_deleting(object) || !(done || before) {
        return;
    }
    decision.draft.set(&["status", "initialization", "infrastructureProvisioned"], true);
    let ids: Vec<Value> = json::items(object, "/spec/providerIDList").to_vec();
    let replicas = json::number(object, "/status/replicas");
    if let Some(replicas) = replicas {
        decision.draft.set(&["status", "replicas"], replicas);
        if json::annotation(&observed.object, annotations::REPLICAS_MANAGED_BY).is_some_and(|by| by != "false") {
            decision.draft.set(&["spec", "replicas"], replicas);
        }
    }
    // A provider that counts machines that it does not name yet has more to say.
    if !ids.is_empty() || replicas.unwrap_or(0) == 0 {
        decision.draft.set(&["spec", "providerIDList"], if ids.is_empty() { Value::Null } else { ids.into() });
    }
}

/// The identities as the draft has them.
fn provider_ids(desired: &Value) -> Vec<String> {
    json::items(desired, "/spec/providerIDList").iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn follow_nodes(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let Some(all) = observed.seen() else { return };
    let ids = provider_ids(&decision.draft.desired);
    nodes::retire(decision, all, &ids);
    let own = nodes::of(all, &ids);
    decision.draft.set(&["status", "nodeRefs"], nodes::references(&own));
    if observed.members.is_none() {
        for node in own {
            nodes::mark(decision, node);
        }
    }
}

/// Replicas and versions: of the Machines where there are any, else of the Nodes.
fn counters(decision: &mut Decision<'_>) {
    let observed = decision.observed;
    let mut versions: BTreeMap<&str, i64> = BTreeMap::new();
    let (ready, available, up_to_date);
    if observed.members.is_some() {
        let count = |name: &str| observed.machines.iter().filter(|machine| metav1::is_true(machine, name)).count();
        (ready, available, up_to_date) =
            (count(condition::READY), count(condition::AVAILABLE), count(condition::UP_TO_DATE));
        for machine in &observed.machines {
            if let Some(version) = json::text(machine, "/status/nodeInfo/kubeletVersion") {
                *versions.entry(version).or_default() += 1;
            }
        }
    } else {
        // What was counted last stands while the Nodes cannot be seen.
        let Some(all) = observed.seen() else { return };
        let own = nodes::of(all, &provider_ids(&decision.draft.desired));
        let seconds = observed.pool.spec.template.spec.min_ready_seconds.unwrap_or(0);
        let min_ready = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let next;
        (ready, available, next) = nodes::count(&own, min_ready, observed.now);
        up_to_date = own.len();
        if let Some(next) = next {
            decision.wake_after(next);
        }
        for node in &own {
            if let Some(version) = json::text(node, "/status/nodeInfo/kubeletVersion") {
                *versions.entry(version).or_default() += 1;
            }
        }
    }
    decision.draft.set(&["status", "readyReplicas"], ready);
    decision.draft.set(&["status", "availableReplicas"], available);
    decision.draft.set(&["status", "upToDateReplicas"], up_to_date);
    let list: Vec<Value> =
        versions.into_iter().map(|(version, replicas)| json!({"version": version, "replicas": replicas})).collect();
    decision.draft.set(&["status", "versions"], if list.is_empty() { Value::Null } else { list.into() });
}

/// Whether the draft's infrastructure is there.
pub(super) fn provisioned(desired: &Value) -> bool {
    json::flag(desired, "/status/initialization/infrastructureProvisioned") == Some(true)
}

fn phase(decision: &mut Decision<'_>) {
    let (observed, desired) = (decision.observed, &decision.draft.desired);
    let wanted = json::number(desired, "/spec/replicas").unwrap_or(1);
    let ready = json::number(desired, "/status/readyReplicas").unwrap_or(0);
    let outside = json::annotation(desired, annotations::REPLICAS_MANAGED_BY).is_some_and(|by| by != "false");
    let phase = if observed.is_deleting() {
        "Deleting"
    } else if provisioned(desired) {
        match (ready.cmp(&wanted), outside) {
            (std::cmp::Ordering::Equal, _) => "Running",
            (_, true) => "Scaling",
            (std::cmp::Ordering::Less, false) => "ScalingUp",
            (std::cmp::Ordering::Greater, false) => "ScalingDown",
        }
    } else if !json::items(desired, "/status/nodeRefs").is_empty() {
        "Provisioned"
    } else if json::flag(desired, "/status/initialization/bootstrapDataSecretCreated") == Some(true) {
        "Provisioning"
    } else {
        "Pending"
    };
    decision.draft.set(&["status", "phase"], phase);
}

#[cfg(test)]
mod tests;
