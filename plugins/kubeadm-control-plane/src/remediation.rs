//! Replacing machines that a health check found unhealthy: which one, whether now, and how often. Pure.

use std::time::Duration;

use capwasm_api::conditions;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::decide;
use crate::etcd::{self, Change, NoSuccessor};
use crate::machine::Machine;
use crate::names::{self, reason};
use crate::observe::{Observed, Reach};
use crate::plane::Remediation;
use crate::preflight;

/// The record of a remediation, as annotations carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The machine that was found unhealthy.
    pub machine: String,
    /// When it was deleted, RFC 3339.
    pub timestamp: String,
    /// How often its replacements failed before.
    pub retry_count: i64,
}

impl Record {
    /// Reads an annotation; one that cannot be read counts as none, which begins a new count.
    pub fn read(text: &str) -> Option<Record> {
        let record: Value = serde_json::from_str(text).ok()?;
        Some(Record {
            machine: record.get("machine")?.as_str()?.to_owned(),
            timestamp: record.get("timestamp").and_then(Value::as_str).unwrap_or_default().to_owned(),
            retry_count: record.get("retryCount").and_then(Value::as_i64).unwrap_or_default(),
        })
    }

    /// As an annotation has it, in upstream's order.
    pub fn write(&self) -> String {
        let Record { machine, timestamp, retry_count } = self;
        format!(r#"{{"machine":{},"timestamp":{},"retryCount":{retry_count}}}"#, json!(machine), json!(timestamp))
    }

    /// When the machine was deleted; none when the annotation has no such time.
    pub fn at(&self) -> Option<Timestamp> {
        self.timestamp.parse().ok()
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody needs it, or another one is under way.
    Nothing,
    /// Not now, or never: told on the machine.
    Hold {
        /// Name of the machine.
        machine: String,
        /// Reason of the condition `OwnerRemediated`.
        reason: &'static str,
        /// Message of the condition.
        message: String,
        /// When time alone may change that.
        retry: Option<Duration>,
    },
    /// Delete the machine.
    Delete {
        /// Name of the machine.
        machine: String,
        /// Who leads etcd instead, where the machine's member does.
        successor: Option<u64>,
        /// What goes into the annotation of the control plane.
        record: Record,
    },
}

/// Decides. One machine at a time, the most broken first.
pub fn decide(observed: &Observed) -> Step {
    let managed = observed.manages_etcd();
    let asked = observed.machines.iter().filter(|machine| machine.needs_remediation());
    let Some(machine) = asked.min_by_key(|machine| brokenness(machine, managed)) else { return Step::Nothing };
    if machine.deleting.is_some() {
        return Step::Nothing;
    }
    let resumed = match under_way(observed) {
        // Its record was written, and the deletion itself was lost.
        Some(record) if record.machine == machine.name => Some(record),
        Some(_) => return Step::Nothing,
        None => None,
    };
    let hold = |reason, message: String, retry| Step::Hold { machine: machine.name.clone(), reason, message, retry };
    if let Some(version) = preflight::topology(observed) {
        let message = format!(
            "KubeadmControlPlane can't remediate while waiting for a version upgrade to {version} to be propagated from Cluster.spec.topology"
        );
        return hold(reason::REMEDIATION_DEFERRED, message, None);
    }
    let record = match resumed {
        Some(record) => record,
        None => match limits(machine, &observed.plane.remediation, observed.now) {
            Ok(record) => record,
            Err(Limit { reason, message, retry }) => return hold(reason, message, retry),
        },
    };
    let mut successor = None;
    if observed.initialized {
        if let Some((reason, message)) = unsafe_now(observed, machine) {
            return hold(reason, message.to_owned(), None);
        }
        if managed {
            match etcd::successor(observed, machine) {
                Ok(found) => successor = found,
                Err(NoSuccessor) => {
                    let message = "KubeadmControlPlane can't remediate this Machine because there is no healthy Machine to forward etcd leadership to";
                    return hold(reason::CANNOT_BE_REMEDIATED, message.to_owned(), None);
                }
            }
        }
    }
    Step::Delete { machine: machine.name.clone(), successor, record }
}

/// The remediation whose replacement is not there yet.
pub fn under_way(observed: &Observed) -> Option<Record> {
    let record = Record::read(observed.plane.remediating.as_deref()?)?;
    (!is_replaced(observed, &record) && !is_moot(observed, &record)).then_some(record)
}

/// Whether no replacement will come: there are machines enough, and the one that was found unhealthy is gone or well again.
fn is_moot(observed: &Observed, record: &Record) -> bool {
    let unhealthy = |machine: &Machine| machine.name == record.machine && machine.needs_remediation();
    !observed.has_deleting()
        && observed.machines.len() >= decide::target(observed)
        && !observed.machines.iter().any(unhealthy)
}

/// Whether a machine came after a remediation.
pub fn is_replaced(observed: &Observed, record: &Record) -> bool {
    let Some(at) = record.at() else { return true };
    observed.machines.iter().any(|machine| {
        let marked = capwasm_sdk::object::annotation(&machine.stored, names::REMEDIATION_FOR);
        machine.created > at || marked.and_then(Record::read).as_ref() == Some(record)
    })
}

/// The remediation under way, or the last one that machines remember.
pub fn last(observed: &Observed) -> Option<Record> {
    let remembered = || {
        let marks = observed.machines.iter().filter_map(|machine| {
            Record::read(capwasm_sdk::object::annotation(&machine.stored, names::REMEDIATION_FOR)?)
        });
        marks.max_by_key(Record::at)
    };
    observed.plane.remediating.as_deref().and_then(Record::read).or_else(remembered)
}

/// The least is the most broken: what a person marked, no Node, etcd's member and pod, then the other components; age last.
fn brokenness(machine: &Machine, managed: bool) -> (Vec<bool>, Timestamp, String) {
    let well = |name: &str| machine.holds(name) == Some(true);
    let mut order = vec![
        capwasm_sdk::object::annotation(&machine.stored, names::REMEDIATE_MACHINE).is_none(),
        machine.node.is_some(),
    ];
    if managed {
        order.extend([well(names::ETCD_MEMBER_HEALTHY), well(names::ETCD_POD_HEALTHY)]);
    }
    order.extend([
        well(names::API_SERVER_POD_HEALTHY),
        well(names::CONTROLLER_MANAGER_POD_HEALTHY),
        well(names::SCHEDULER_POD_HEALTHY),
    ]);
    (order, machine.created, machine.name.clone())
}

struct Limit {
    reason: &'static str,
    message: String,
    retry: Option<Duration>,
}

/// The record to keep of a try, unless there were too many, or too lately.
fn limits(machine: &Machine, limits: &Remediation, now: Timestamp) -> Result<Record, Limit> {
    let fresh = Record { machine: machine.name.clone(), timestamp: conditions::timestamp(now), retry_count: 0 };
    let mark = capwasm_sdk::object::annotation(&machine.stored, names::REMEDIATION_FOR).and_then(Record::read);
    let Some((last, at)) = mark.and_then(|last| last.at().map(|at| (last, at))) else { return Ok(fresh) };
    let passed = Duration::try_from(now.duration_since(at)).unwrap_or_default();
    // A replacement that was well for a while fails for a reason of its own.
    if passed >= limits.min_healthy_period {
        return Ok(fresh);
    }
    if let Some(left) = limits.retry_period.checked_sub(passed).filter(|left| !left.is_zero()) {
        return Err(Limit {
            reason: reason::REMEDIATION_DEFERRED,
            message: format!(
                "KubeadmControlPlane can't remediate this machine because the operation already failed in the latest {}s (RetryPeriod)",
                limits.retry_period.as_secs()
            ),
            retry: Some(left),
        });
    }
    if limits.max_retry.is_some_and(|most| last.retry_count >= most) {
        return Err(Limit {
            reason: reason::CANNOT_BE_REMEDIATED,
            message: format!(
                "KubeadmControlPlane can't remediate this machine because the operation already failed {} times (MaxRetry)",
                last.retry_count
            ),
            retry: limits.min_healthy_period.checked_sub(passed),
        });
    }
    Ok(Record { retry_count: last.retry_count.saturating_add(1), ..fresh })
}

/// Why deleting a machine of a running control plane would be wrong now.
fn unsafe_now(observed: &Observed, machine: &Machine) -> Option<(&'static str, &'static str)> {
    if observed.machines.len() <= 1 {
        return Some((
            reason::CANNOT_BE_REMEDIATED,
            "KubeadmControlPlane can't remediate if current replicas are less or equal to 1",
        ));
    }
    let still_provisioning =
        |other: &&Machine| other.uid != machine.uid && other.node.is_none() && !other.is_unhealthy();
    if observed.machines.iter().any(|other| still_provisioning(&other)) {
        return Some((
            reason::REMEDIATION_DEFERRED,
            "KubeadmControlPlane waiting for control plane Machine provisioning to complete before triggering remediation",
        ));
    }
    if observed.has_deleting() {
        return Some((
            reason::REMEDIATION_DEFERRED,
            "KubeadmControlPlane waiting for control plane Machine deletion to complete before triggering remediation",
        ));
    }
    (!leaves_enough(observed, machine)).then_some((
        reason::CANNOT_BE_REMEDIATED,
        "KubeadmControlPlane can't remediate this Machine because this could result in loosing Kubernetes control plane components or in etcd quorum loss",
    ))
}

/// Whether API servers and etcd work without a machine.
fn leaves_enough(observed: &Observed, machine: &Machine) -> bool {
    let managed = observed.manages_etcd();
    let others = observed.machines.iter().filter(|other| other.uid != machine.uid);
    if observed.workload.reach != Reach::Up
        || !others.into_iter().any(|other| preflight::components_well(other, managed))
    {
        return false;
    }
    if !managed {
        return true;
    }
    let Some(members) = observed.workload.known_members() else { return false };
    match etcd::member_of(observed, machine) {
        Some(member) => etcd::survives(members, Change::Remove(member.id)),
        // Its Node is known, and etcd has no member of that name.
        None if observed.node_name(machine).is_some() => true,
        None => etcd::survives_without(observed, members, machine),
    }
}

#[cfg(test)]
mod tests;
