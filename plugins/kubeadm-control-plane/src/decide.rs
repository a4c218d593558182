//! What a control plane does next, as a pure function of what was observed: one machine at a time.

use std::collections::BTreeMap;

use capwasm_sdk::Problem;

use crate::observe::Machine;

/// Everything that the decision rests on.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// How many machines there should be.
    pub replicas: u32,
    /// The first API server has answered.
    pub initialized: bool,
    /// etcd runs elsewhere.
    pub external_etcd: bool,
    /// Those there are.
    pub machines: Vec<Machine>,
    /// Where machines may be placed.
    pub failure_domains: Vec<String>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There are as many machines as there should be.
    Nothing,
    /// Something has to happen first; says what.
    Wait(String),
    /// Make one machine, `first` when it makes the cluster.
    Create {
        /// It runs `kubeadm init`.
        first: bool,
        /// Where to.
        failure_domain: Option<String>,
    },
    /// Take one machine away.
    Remove {
        /// Name of the Machine.
        name: String,
        /// Its uid.
        uid: String,
    },
}

/// Decides the next step, or says why no step can be right.
pub fn decide(observed: &Observed) -> Result<Step, Problem> {
    let (wanted, there) = (observed.replicas as usize, observed.machines.len());
    if wanted == 0 {
        return Err(Problem::invalid(
            "InvalidReplicas",
            "spec.replicas must be at least 1; delete the control plane instead",
        ));
    }
    if wanted % 2 == 0 && !observed.external_etcd {
        return Err(Problem::invalid(
            "InvalidReplicas",
            "spec.replicas must be odd where etcd runs on the control plane machines",
        ));
    }
    if there == wanted {
        return Ok(Step::Nothing);
    }
    if there == 0 && observed.initialized {
        return Err(Problem::terminal(
            "ControlPlaneLost",
            "the control plane was initialized and all of its machines are gone; restore it from a backup or delete the cluster",
        ));
    }
    if let Some(reason) = blocked(observed) {
        return Ok(Step::Wait(reason));
    }
    if there < wanted {
        return Ok(Step::Create { first: there == 0, failure_domain: emptiest(observed) });
    }
    let machine = observed.machines.iter().min_by_key(|machine| departure(machine, observed));
    Ok(machine.map_or(Step::Nothing, |machine| Step::Remove { name: machine.name.clone(), uid: machine.uid.clone() }))
}

/// Membership changes only while every member is there.
fn blocked(observed: &Observed) -> Option<String> {
    let names = |pick: fn(&Machine) -> bool| -> String {
        observed
            .machines
            .iter()
            .filter(|machine| pick(machine))
            .map(|machine| machine.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let deleting = names(|machine| machine.deleting);
    let joining = names(|machine| !machine.has_node);
    let lost = names(|machine| machine.lost);
    match () {
        () if !deleting.is_empty() => Some(format!("Machine {deleting} is being deleted")),
        () if !observed.machines.is_empty() && !observed.initialized => {
            Some("the first machine initializes the control plane".into())
        }
        () if !joining.is_empty() => Some(format!("Machine {joining} has not joined yet")),
        () if !lost.is_empty() => Some(format!("nothing is heard of the Node of Machine {lost}")),
        () => None,
    }
}

/// The failure domain with the fewest machines; the first by name of several.
fn emptiest(observed: &Observed) -> Option<String> {
    let crowd = crowd(observed);
    observed.failure_domains.iter().min_by_key(|name| (crowd.get(name.as_str()).copied().unwrap_or(0), *name)).cloned()
}

fn crowd(observed: &Observed) -> BTreeMap<&str, usize> {
    let mut crowd = BTreeMap::new();
    for machine in &observed.machines {
        *crowd.entry(machine.failure_domain.as_str()).or_insert(0) += 1;
    }
    crowd
}

/// Who goes first: what a person marked, what is not up to date, the most crowded failure domain, the oldest.
fn departure<'a>(
    machine: &'a Machine,
    observed: &Observed,
) -> (bool, bool, std::cmp::Reverse<usize>, &'a str, &'a str) {
    let crowd = crowd(observed).get(machine.failure_domain.as_str()).copied().unwrap_or(0);
    (!machine.delete_first, machine.outdated.is_empty(), std::cmp::Reverse(crowd), &machine.created, &machine.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::Fault;

    /// `name@domain` plus flags: `d` deleting, `j` still joining, `l` lost, `m` marked by a person, `o` outdated.
    fn machine(text: &str) -> Machine {
        let (place, flags) = text.split_once(' ').unwrap_or((text, ""));
        let (name, domain) = place.split_once('@').unwrap_or((place, ""));
        Machine {
            name: name.into(),
            uid: format!("u-{name}"),
            created: format!("2026-01-01T00:00:0{}Z", &name[1..]),
            failure_domain: domain.into(),
            deleting: flags.contains('d'),
            has_node: !flags.contains('j'),
            lost: flags.contains('l'),
            delete_first: flags.contains('m'),
            outdated: if flags.contains('o') { vec!["Version".into()] } else { vec![] },
            ..Machine::default()
        }
    }

    fn observed(replicas: u32, initialized: bool, machines: &[&str], domains: &[&str]) -> Observed {
        Observed {
            replicas,
            initialized,
            external_etcd: false,
            machines: machines.iter().map(|text| machine(text)).collect(),
            failure_domains: domains.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn text(result: Result<Step, Problem>) -> String {
        match result {
            Ok(Step::Nothing) => "nothing".into(),
            Ok(Step::Wait(_)) => "wait".into(),
            Ok(Step::Create { first, failure_domain }) => {
                format!("{} {}", if first { "init" } else { "join" }, failure_domain.unwrap_or("-".into()))
            }
            Ok(Step::Remove { name, .. }) => format!("remove {name}"),
            Err(problem) => problem.reason,
        }
    }

    #[test]
    fn machines_come_and_go_one_at_a_time() {
        for (what, replicas, initialized, machines, domains, expected) in [
            ("the first machine", 1, false, &[][..], &[][..], "init -"),
            ("the first machine of three, in a failure domain", 3, false, &[], &["b", "a"], "init a"),
            ("a second before initialization", 3, false, &["m0 j"], &[], "wait"),
            ("a second while the first has no node", 3, true, &["m0 j"], &[], "wait"),
            ("the second", 3, true, &["m0@a"], &["a", "b", "c"], "join b"),
            ("the third while the second joins", 3, true, &["m0@a", "m1@b j"], &["a", "b", "c"], "wait"),
            ("the third", 3, true, &["m0@a", "m1@b"], &["a", "b", "c"], "join c"),
            ("more machines than failure domains", 5, true, &["m0@a", "m1@b", "m2@a"], &["a", "b"], "join b"),
            ("enough", 3, true, &["m0", "m1", "m2"], &[], "nothing"),
            ("enough, one not up to date", 1, true, &["m0 o"], &[], "nothing"),
            (
                "too many: the oldest of the most crowded failure domain",
                3,
                true,
                &["m0@a", "m1@b", "m2@b", "m3@b"],
                &["a", "b"],
                "remove m1",
            ),
            ("too many: what a person marked", 1, true, &["m0 o", "m1 m", "m2"], &[], "remove m1"),
            ("too many: what is not up to date", 1, true, &["m0", "m1", "m2 o"], &[], "remove m2"),
            ("too many, one is already going", 1, true, &["m0", "m1 d", "m2"], &[], "wait"),
            ("too many, nothing heard of one", 1, true, &["m0", "m1 l", "m2"], &[], "wait"),
            ("a replacement only once the old one is gone", 3, true, &["m0", "m1 d"], &[], "wait"),
            ("no machine left of what was initialized", 1, true, &[], &[], "ControlPlaneLost"),
            ("no replicas", 0, true, &["m0"], &[], "InvalidReplicas"),
            ("an even number", 2, true, &["m0"], &[], "InvalidReplicas"),
        ] {
            assert_eq!(text(decide(&observed(replicas, initialized, machines, domains))), expected, "{what}");
        }
        let external = Observed { external_etcd: true, ..observed(2, true, &["m0"], &[]) };
        assert_eq!(text(decide(&external)), "join -", "an even number with etcd elsewhere");
        assert_eq!(decide(&observed(0, true, &["m0"], &[])).unwrap_err().fault, Fault::Invalid);
    }
}
