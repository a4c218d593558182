//! Health of machines and of the control plane, from Nodes, static pods and etcd's members. Pure.

mod aggregate;
mod etcd;
mod node;
mod pod;

use capwasm_api::conditions;
use capwasm_api::names::reason;
use capwasm_sdk::{Outcome, object};

use crate::names::{self, reason as own};
use crate::observe::{Observed, Reach};

/// A verdict: status (none is unknown), reason, message.
pub type Verdict = (Option<bool>, &'static str, String);

/// What is said of the control plane as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// `EtcdClusterHealthy`; none leaves it as it is.
    pub etcd: Option<Verdict>,
    /// `ControlPlaneComponentsHealthy`; none leaves it as it is.
    pub components: Option<Verdict>,
    /// Members and machines belong together.
    pub members_match: bool,
}

impl Findings {
    /// Sets the conditions of etcd and of the control-plane components.
    pub fn publish(&self, out: &mut Outcome) {
        for (name, verdict) in
            [(names::ETCD_CLUSTER_HEALTHY, &self.etcd), (names::COMPONENTS_HEALTHY, &self.components)]
        {
            if let Some((status, reason, message)) = verdict {
                out.condition(name, *status, reason, message.clone());
            }
        }
    }
}

/// Sets the conditions of every machine, and says what is to be said of the control plane.
pub fn judge(observed: &mut Observed) -> Findings {
    if let Some(message) = early(observed) {
        return everywhere(observed, reason::INSPECTION_FAILED, &message, true);
    }
    match observed.workload.reach.clone() {
        Reach::NotInitialized => {
            everywhere(observed, reason::INSPECTION_FAILED, "Waiting for Cluster control plane to be initialized", true)
        }
        Reach::Settling(_) => {
            everywhere(observed, reason::CONNECTION_DOWN, "Remote connection not established yet", false)
        }
        Reach::Down(message) => everywhere(observed, reason::CONNECTION_DOWN, &message, true),
        Reach::Failed(message) => everywhere(observed, reason::INSPECTION_FAILED, &message, true),
        Reach::Up => seen(observed),
    }
}

/// What is missing before anything could be looked at.
fn early(observed: &Observed) -> Option<String> {
    match () {
        () if observed.initialized => None,
        () if !observed.cluster.infrastructure_provisioned => {
            Some("Waiting for Cluster status.initialization.infrastructureProvisioned to be true".to_owned())
        }
        () if observed.cluster.server.is_none() => {
            Some("Waiting for Cluster spec.controlPlaneEndpoint to be set".to_owned())
        }
        () => None,
    }
}

/// Nothing can be seen: unknown, except where what was seen before still stands.
fn everywhere(observed: &mut Observed, why: &'static str, message: &str, overwrite: bool) -> Findings {
    let managed = observed.manages_etcd();
    let now = observed.now;
    for machine in &mut observed.machines {
        for name in names::health_conditions(managed).into_iter().chain([names::NODE_LABELS_AND_TAINTS_SET]) {
            if overwrite || machine.conditions.get(name).is_none() {
                machine.set(now, name, None, why, message);
            }
        }
    }
    let verdict = |name: &str| {
        let known = conditions::get(&observed.plane.object, name).is_some();
        (overwrite || !known).then(|| (None, why, message.to_owned()))
    };
    Findings {
        etcd: verdict(names::ETCD_CLUSTER_HEALTHY).filter(|_| managed),
        components: verdict(names::COMPONENTS_HEALTHY),
        members_match: true,
    }
}

fn seen(observed: &mut Observed) -> Findings {
    let managed = observed.manages_etcd();
    let now = observed.now;
    let mut machines = std::mem::take(&mut observed.machines);
    for machine in &mut machines {
        let (pods, labels) = node::inspect(machine, &observed.workload);
        for (name, component) in names::PODS {
            if !managed && name == names::ETCD_POD_HEALTHY {
                continue;
            }
            let (status, why, message) = match &pods {
                Err(verdict) => verdict.clone(),
                Ok(node) => {
                    let wanted = format!("{component}-{node}");
                    pod::verdict(observed.workload.pods.iter().find(|pod| object::name(pod) == wanted))
                }
            };
            machine.set(now, name, status, why, bounded(&message, LONGEST));
        }
        let (status, why, message) = labels;
        machine.set(now, names::NODE_LABELS_AND_TAINTS_SET, status, why, &message);
        if let Some(members) = observed.workload.members.as_ref().filter(|_| managed) {
            let (status, why, message) = etcd::verdict(machine, members);
            machine.set(now, names::ETCD_MEMBER_HEALTHY, status, why, bounded(&message, LONGEST));
        } else if managed {
            let (status, why, message) = node::waiting(machine);
            machine.set(now, names::ETCD_MEMBER_HEALTHY, status, why, &message);
        }
    }
    observed.machines = machines;

    let strangers = node::without_machine(observed);
    let pods: Vec<&str> =
        names::health_conditions(managed).into_iter().filter(|name| *name != names::ETCD_MEMBER_HEALTHY).collect();
    let components = aggregate::of(&observed.machines, &pods, &strangers);
    let (members_match, mut issues) = etcd::compare(observed);
    issues.extend(strangers);
    let etcd = if managed { aggregate::of(&observed.machines, &[names::ETCD_MEMBER_HEALTHY], &issues) } else { None };
    Findings { etcd, components, members_match: members_match || !managed }
}

/// Most bytes of what is said of one thing on one machine, and of what is said of all of them: the words are the workload
/// cluster's, and a status that is too long is refused as a whole.
const LONGEST: usize = 1024;
const LONGEST_OF_ALL: usize = 16 * 1024;

/// The beginning of a text, at most so many bytes.
fn bounded(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

/// Reasons of the two conditions of the control plane.
const REASONS: (&str, &str, &str) = (own::NOT_HEALTHY, own::HEALTH_UNKNOWN, own::HEALTHY);

#[cfg(test)]
mod tests;
