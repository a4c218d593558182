//! Everything that one pass reads before it decides.

use std::time::Duration;

use capwasm_api::conditions;
use capwasm_api::names::CORE_API_VERSION;
use capwasm_kubeadm::certificates::Settings;
use capwasm_sdk::{Context, EtcdMember, Host, ObjectRef, Optional, Problem, Refusal, Refused, Selection, object};
use jiff::Timestamp;
use serde_json::Value;

use crate::machine::{self, Machine};
use crate::plane::{Cluster, ControlPlane};
use crate::{clone, names, rollout};

/// How long what was last seen of a workload cluster stands while it cannot be reached.
pub const GRACE: Duration = Duration::from_secs(300);

/// What is looked at of a KubeadmConfig, of an infrastructure machine, of a Node and of a static pod.
const CONFIG: [&str; 3] = ["kind", "metadata", "spec"];
const INFRASTRUCTURE: [&str; 3] = ["kind", "metadata", "spec/providerID"];
const NODE: [&str; 7] = [
    "metadata/name",
    "metadata/labels",
    "metadata/creationTimestamp",
    "spec/providerID",
    "spec/taints",
    "status/conditions/type",
    "status/conditions/status",
];
const POD: [&str; 6] = [
    "metadata/name",
    "status/phase",
    "status/conditions/type",
    "status/conditions/status",
    "status/containerStatuses/state",
    "status/containerStatuses/lastState",
];

/// The observation that decisions rest on.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The KubeadmControlPlane.
    pub plane: ControlPlane,
    /// The Cluster that owns it.
    pub cluster: Cluster,
    /// Whether etcd runs outside of the cluster.
    pub external_etcd: bool,
    /// The time of the call.
    pub now: Timestamp,
    /// The first API server has answered.
    pub initialized: bool,
    /// Its Machines, oldest first; also those that it made and that nobody controls any more, which count.
    pub machines: Vec<Machine>,
    /// Machines of the cluster's control plane that nobody controls.
    pub orphans: Vec<Machine>,
    /// Nodes, pods and etcd members of the workload cluster.
    pub workload: Workload,
    /// The infrastructure template; none when there is none.
    pub template: Option<Value>,
}

/// The workload cluster, as far as it can be seen.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Whether it can be seen.
    pub reach: Reach,
    /// Nodes of the control plane, and those of its machines.
    pub nodes: Vec<Value>,
    /// Static pods of the control plane.
    pub pods: Vec<Value>,
    /// Members of a managed etcd, or why they are not known; none where nobody asked.
    pub members: Option<Result<Vec<EtcdMember>, String>>,
}

impl Workload {
    /// The members, where they are known.
    pub fn known_members(&self) -> Option<&[EtcdMember]> {
        self.members.as_ref()?.as_ref().ok().map(Vec::as_slice)
    }
}

/// Whether the workload cluster can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// There is no API server yet.
    #[default]
    NotInitialized,
    /// Its API server answers.
    Up,
    /// It did not answer just now; what was last seen stands, for this time where it is known.
    Settling(Option<Duration>),
    /// It has not answered for too long.
    Down(String),
    /// It answers with something else than what was asked for.
    Failed(String),
}

impl Observed {
    /// This provider looks after etcd.
    pub fn manages_etcd(&self) -> bool {
        !self.external_etcd
    }

    /// Machines that need to be replaced, and are not going already.
    pub fn outdated(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|machine| !machine.outdated.is_empty() && machine.deleting.is_none())
    }

    /// Whether a Machine is being deleted.
    pub fn has_deleting(&self) -> bool {
        self.machines.iter().any(|machine| machine.deleting.is_some())
    }

    /// The Machine whose Node has this name.
    pub fn machine_of_node(&self, node: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.node.as_deref() == Some(node))
    }

    /// Name of a Machine's Node, also when core has not matched them yet.
    pub fn node_name<'a>(&'a self, machine: &'a Machine) -> Option<&'a str> {
        machine.node.as_deref().or_else(|| machine.matching(&self.workload.nodes))
    }
}

/// Reads everything that decisions rest on.
pub fn observe(
    cx: &mut Context<'_>,
    plane: ControlPlane,
    cluster: Cluster,
    settings: Settings,
) -> Result<Observed, Problem> {
    let now = timestamp(cx.host.now_ms());
    let (mut machines, orphans) = machines(cx.host, &cluster.name, &plane)?;
    let template = template(cx.host, &plane)?;
    let hash = template.as_ref().map(clone::template_hash);
    for machine in &mut machines {
        if let Some(target) = machine.config_target() {
            machine.config = one(cx.host, &target, &CONFIG)?;
        }
        machine.infrastructure = one(cx.host, &machine.infrastructure_target(), &INFRASTRUCTURE)?;
        if let (true, Some(infrastructure)) = (machine.provider_id.is_empty(), &machine.infrastructure) {
            object::text(infrastructure, "/spec/providerID").clone_into(&mut machine.provider_id);
        }
        machine.outdated = rollout::reasons(&plane, machine, hash.as_deref(), now);
    }
    let initialized = plane.initialized || (may_be_initialized(&machines) && is_initialized(cx)?);
    let mut observed = Observed {
        external_etcd: settings.external_etcd,
        plane,
        cluster,
        now,
        initialized,
        machines,
        orphans,
        workload: Workload::default(),
        template,
    };
    if initialized && !observed.machines.is_empty() {
        observed.workload = workload(cx.host, &mut observed);
    }
    Ok(observed)
}

/// What is looked at of an object, if it is there.
fn one(host: &dyn Host, target: &ObjectRef, wanted: &[&str]) -> Result<Option<Value>, Refused> {
    host.lookup_text(target).optional()?.map(|text| object::parse_fields(&text, wanted)).transpose()
}

/// Milliseconds since 1970 as a timestamp.
pub fn timestamp(now_ms: u64) -> Timestamp {
    i64::try_from(now_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default()
}

/// The Machines of a control plane, and those of the cluster's control plane that nobody controls, each oldest first. Those that
/// it made itself are in both: what lost its owner is still there. Found by label, and by name where that was lost.
pub fn machines(host: &dyn Host, cluster: &str, plane: &ControlPlane) -> Result<(Vec<Machine>, Vec<Machine>), Refused> {
    let selection = Selection::of(CORE_API_VERSION, "Machine").labelled(machine::selector(cluster));
    let mut found = Vec::new();
    for text in host.lookup_list_texts(&selection)? {
        found.push(Machine::read(object::parse_fields(&text, &machine::FIELDS)?));
    }
    for name in clone::unseen_names(plane, cluster, &found) {
        let target = ObjectRef::new(CORE_API_VERSION, "Machine", name);
        let named = one(host, &target, &machine::FIELDS)?;
        found.extend(named.filter(|named| object::text(named, "/spec/clusterName") == cluster).map(Machine::read));
    }
    let (mut own, mut orphans) = (Vec::new(), Vec::new());
    for machine in found {
        match machine::controller(&machine.stored) {
            Some(controller) if controller == plane.uid => own.push(machine),
            Some(_) => {}
            None => {
                if clone::made(plane, cluster, &machine) {
                    own.push(machine.clone());
                }
                orphans.push(machine);
            }
        }
    }
    for machines in [&mut own, &mut orphans] {
        machines.sort_by(|a: &Machine, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    }
    Ok((own, orphans))
}

fn template(host: &dyn Host, plane: &ControlPlane) -> Result<Option<Value>, Refused> {
    let reference = crate::plane::TemplateRef::of(plane);
    if reference.kind.is_empty() || reference.name.is_empty() {
        return Ok(None);
    }
    host.lookup(&reference.target()).optional()
}

/// A sole machine that is going, or should go, is not waited for: what it makes in its last moments goes with it, and its
/// replacement has to make the cluster anew.
fn may_be_initialized(machines: &[Machine]) -> bool {
    match machines {
        [] => false,
        [sole] => sole.deleting.is_none() && !sole.needs_remediation(),
        _ => true,
    }
}

/// Whether the workload cluster's API answers with what `kubeadm init` leaves behind.
fn is_initialized(cx: &mut Context<'_>) -> Result<bool, Problem> {
    let configuration = ObjectRef::new("v1", "ConfigMap", "kubeadm-config").in_namespace("kube-system");
    match cx.host.workload(&configuration) {
        Ok(_) => Ok(true),
        Err(refused) => match refused.refusal {
            // The API answers before kubeadm has uploaded its configuration, and nothing announces that.
            Refusal::NotFound => {
                cx.out.wake_after(Duration::from_secs(2));
                Ok(false)
            }
            // Woken when it can be reached.
            Refusal::Unavailable => Ok(false),
            _ => Err(refused.into()),
        },
    }
}

fn workload(host: &dyn Host, observed: &mut Observed) -> Workload {
    match read_workload(host, observed) {
        Ok(workload) => workload,
        Err(refused) => Workload {
            reach: match refused.refusal {
                Refusal::Unavailable => unreachable_for(observed),
                _ => Reach::Failed(refused.message),
            },
            ..Workload::default()
        },
    }
}

fn read_workload(host: &dyn Host, observed: &mut Observed) -> Result<Workload, Refused> {
    let all =
        |texts: Vec<String>, wanted: &[&str]| texts.iter().map(|text| object::parse_fields(text, wanted)).collect();
    let nodes: Result<Vec<Value>, Refused> =
        all(host.workload_list_texts(&Selection::of("v1", "Node").labelled(names::CONTROL_PLANE_NODE))?, &NODE);
    let mut nodes = nodes?;
    for machine in observed.machines.iter_mut().filter(|machine| machine.node.is_none()) {
        // Before core has matched them, so that its first news of the Node can tell all of its health.
        machine.node = machine.matching(&nodes).map(str::to_owned);
    }
    for machine in &observed.machines {
        let Some(name) = &machine.node else { continue };
        if !nodes.iter().any(|node| object::name(node) == name) {
            nodes.extend(host.workload(&ObjectRef::new("v1", "Node", name)).optional()?);
        }
    }
    let pods = Selection::of("v1", "Pod").in_namespace("kube-system").labelled("tier=control-plane");
    let pods = all(host.workload_list_texts(&pods)?, &POD)?;
    let asks = observed.manages_etcd() && observed.machines.iter().any(|machine| machine.node.is_some());
    let members = asks.then(|| host.etcd_members().map_err(|refused| refused.message));
    Ok(Workload { reach: Reach::Up, nodes, pods, members })
}

/// The Cluster's probe says since when the connection is down.
fn unreachable_for(observed: &Observed) -> Reach {
    let Some(down) = observed.cluster.down_since else { return Reach::Settling(None) };
    let since = observed.plane.initialized_since().map_or(down, |initialized| initialized.max(down));
    let passed = Duration::try_from(observed.now.duration_since(since)).unwrap_or_default();
    match GRACE.checked_sub(passed) {
        Some(left) if !left.is_zero() => Reach::Settling(Some(left)),
        _ => Reach::Down(format!("Remote connection is down since {}", conditions::timestamp(down))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn what_was_last_seen_stands_for_five_minutes_after_the_connection_went_down() {
        let at = |text: &str| -> Option<Timestamp> { (!text.is_empty()).then(|| text.parse().unwrap()) };
        let now = "2026-01-01T01:00:00Z";
        for (what, down, expected) in [
            ("the probe has not failed yet", "", Reach::Settling(None)),
            ("down for a minute", "2026-01-01T00:59:00Z", Reach::Settling(Some(Duration::from_secs(240)))),
            (
                "down for ten",
                "2026-01-01T00:50:00Z",
                Reach::Down("Remote connection is down since 2026-01-01T00:50:00Z".into()),
            ),
        ] {
            let cluster = Cluster { down_since: at(down), ..Cluster::default() };
            let observed = Observed { cluster, now: at(now).unwrap(), ..Observed::default() };
            assert_eq!(unreachable_for(&observed), expected, "{what}");
        }
    }
}
