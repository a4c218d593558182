//! Whether the control plane is steady enough for a machine to come or go. Pure.

use crate::etcd::{self, Change};
use crate::machine::{self, Machine};
use crate::observe::{Observed, Reach};

/// What stands against a change; nothing does by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preflight {
    /// The topology asks for this version first.
    pub topology: Option<String>,
    /// The first machine has not made the cluster yet.
    pub uninitialized: bool,
    /// The workload cluster cannot be looked at.
    pub unreachable: bool,
    /// A machine is being deleted.
    pub deleting: Option<String>,
    /// Static pods are not well, or core has not found a machine's Node.
    pub components: Option<String>,
    /// etcd is not well, or could lose its quorum.
    pub etcd: Option<String>,
}

impl Preflight {
    /// Whether nothing stands against the change.
    pub fn passes(&self) -> bool {
        *self == Preflight::default()
    }

    /// For people, a line each.
    pub fn messages(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(version) = &self.topology {
            lines.push(format!("* waiting for a version upgrade to {version} to be propagated"));
        }
        if self.uninitialized {
            lines.push("* waiting for the first machine to initialize the control plane".to_owned());
        }
        if self.unreachable {
            lines.push("* waiting for the workload cluster to be reachable".to_owned());
        }
        if let Some(names) = &self.deleting {
            lines.push(format!("* waiting for a control plane Machine to complete deletion: {names}"));
        }
        if let Some(names) = &self.components {
            lines.push(format!("* waiting for control plane components to become healthy: {names}"));
        }
        if let Some(names) = &self.etcd {
            lines.push(format!("* waiting for etcd cluster to become healthy: {names}"));
        }
        lines
    }
}

/// The change that is to be made next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planned<'a> {
    /// One machine is added.
    Addition,
    /// This machine goes, so that its own health plays no part.
    Removal(&'a str),
}

/// Holds a planned change against the health of the control plane.
pub fn check(observed: &Observed, planned: Planned<'_>) -> Preflight {
    let mut found = Preflight { topology: topology(observed), ..Preflight::default() };
    if observed.machines.is_empty() {
        return found;
    }
    if !observed.initialized {
        found.uninitialized = true;
        return found;
    }
    found.unreachable = observed.workload.reach != Reach::Up;
    let deleting = machine::list(observed.machines.iter().filter(|machine| machine.deleting.is_some()));
    if !deleting.is_empty() {
        found.deleting = Some(deleting);
        return found;
    }
    // The replacement of a broken machine comes although others are broken too, as long as that makes nothing worse.
    if planned == Planned::Addition && observed.plane.remediating.is_some() {
        relaxed(observed, &mut found);
        return found;
    }
    let except = match planned {
        Planned::Removal(name) => name,
        Planned::Addition => "",
    };
    let managed = observed.manages_etcd();
    let checked: Vec<&Machine> = observed.machines.iter().filter(|machine| machine.name != except).collect();
    let broken = |pick: &dyn Fn(&Machine) -> bool| {
        let names = machine::list(checked.iter().copied().filter(|machine| pick(machine)));
        (!names.is_empty()).then_some(names)
    };
    found.components = broken(&|machine| !machine.is_registered() || !components_well(machine, managed));
    if managed {
        let member = |machine: &Machine| machine.holds(crate::names::ETCD_MEMBER_HEALTHY) == Some(true);
        found.etcd = broken(&|machine| !machine.is_registered() || !member(machine));
    }
    found
}

/// Whether a version is on its way from the Cluster's topology.
pub fn topology(observed: &Observed) -> Option<String> {
    observed.cluster.topology_version.clone().filter(|version| *version != observed.plane.version)
}

fn relaxed(observed: &Observed, found: &mut Preflight) {
    let managed = observed.manages_etcd();
    if !observed.machines.iter().any(|machine| components_well(machine, managed)) {
        found.components = Some("no machine has healthy components".to_owned());
    }
    if managed {
        let safe = observed.workload.known_members().is_some_and(|members| etcd::survives(members, Change::Add));
        if !safe {
            found.etcd = Some("another member could cost the quorum".to_owned());
        }
    }
}

/// All static pods of a machine are well.
pub fn components_well(machine: &Machine, managed_etcd: bool) -> bool {
    crate::names::health_conditions(managed_etcd)
        .iter()
        .filter(|name| **name != crate::names::ETCD_MEMBER_HEALTHY)
        .all(|name| machine.holds(name) == Some(true))
}
