//! What a control plane does next about the number and the age of its machines: at most one comes or goes. Pure.

use capwasm_sdk::Problem;

use crate::observe::Observed;
use crate::preflight::{self, Planned, Preflight};
use crate::select;

/// What a pass does about the number, version and spec of the machines: one thing at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// All machines are there and as they should be.
    Nothing,
    /// Something stands against the next step.
    Wait(Preflight),
    /// Make one machine, in this failure domain.
    Create(Option<String>),
    /// Take the machine of this name away.
    Remove(String),
}

/// Decides the next step, or says why no step can be right.
pub fn decide(observed: &Observed) -> Result<Step, Problem> {
    let there = observed.machines.len();
    if there == 0 && observed.initialized {
        return Err(Problem::terminal(
            "ControlPlaneLost",
            "the control plane was initialized and all of its machines are gone; restore it from a backup or delete the cluster",
        ));
    }
    let rolling = observed.outdated().next().is_some();
    Ok(match there.cmp(&target(observed)) {
        std::cmp::Ordering::Less => {
            checked(preflight::check(observed, Planned::Addition), || Step::Create(select::arrival(observed)))
        }
        std::cmp::Ordering::Equal if !rolling => Step::Nothing,
        _ => match select::departure(observed) {
            Some(machine) => checked(preflight::check(observed, Planned::Removal(&machine.name)), || {
                Step::Remove(machine.name.clone())
            }),
            None => Step::Wait(preflight::check(observed, Planned::Addition)),
        },
    })
}

/// How many machines there should be just now: one more during a rollout that makes the new one first.
pub fn target(observed: &Observed) -> usize {
    let surges = observed.outdated().next().is_some() && !observed.plane.rollout.no_surge;
    // As a guest counts, the largest number there is has no next one.
    (observed.plane.replicas as usize).saturating_add(usize::from(surges))
}

fn checked(preflight: Preflight, step: impl FnOnce() -> Step) -> Step {
    if preflight.passes() { step() } else { Step::Wait(preflight) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::observe::{Reach, Workload};
    use crate::plane::{Cluster, ControlPlane, Rollout};
    use crate::testing::{machine, members};

    fn observed(replicas: u32, machines: &[&str], domains: &[&str]) -> Observed {
        let machines: Vec<_> = machines.iter().map(|text| machine(text)).collect();
        let list: Vec<String> = machines.iter().filter_map(|machine| machine.node.clone()).collect();
        Observed {
            plane: ControlPlane { replicas, ..ControlPlane::default() },
            cluster: Cluster {
                failure_domains: domains.iter().map(|name| (*name).to_owned()).collect(),
                ..Cluster::default()
            },
            initialized: !machines.is_empty(),
            workload: Workload { reach: Reach::Up, members: Some(Ok(members(&list.join(",")))), ..Workload::default() },
            machines,
            ..Observed::default()
        }
    }

    fn text(result: Result<Step, Problem>) -> String {
        match result {
            Ok(Step::Nothing) => "nothing".into(),
            Ok(Step::Wait(why)) => {
                let words = [
                    (why.topology.is_some(), "topology"),
                    (why.uninitialized, "uninitialized"),
                    (why.unreachable, "unreachable"),
                    (why.deleting.is_some(), "deleting"),
                    (why.components.is_some(), "components"),
                    (why.etcd.is_some(), "etcd"),
                ];
                let words: Vec<&str> = words.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
                format!("wait: {}", words.join(" "))
            }
            Ok(Step::Create(domain)) => format!("create {}", domain.unwrap_or("-".into())),
            Ok(Step::Remove(name)) => format!("remove {name}"),
            Err(problem) => problem.reason,
        }
    }

    #[test]
    fn machines_come_and_go_one_at_a_time() {
        for (what, replicas, machines, domains, expected) in [
            ("the first machine", 1, &[][..], &["b", "a"][..], "create a"),
            ("the second while the first has no node", 3, &["a j"], &[], "wait: components etcd"),
            ("the second while core has not recorded the first's node", 3, &["a n"], &[], "wait: components etcd"),
            ("the second while a component of the first starts", 3, &["a x"], &[], "wait: components"),
            ("the second while the first's member is not well", 3, &["a e"], &[], "wait: etcd"),
            ("the second", 3, &["a@x"], &["x", "y", "z"], "create y"),
            ("the third while the second joins", 3, &["a@x", "b@y j"], &["x", "y", "z"], "wait: components etcd"),
            ("the third", 3, &["a@x", "b@y"], &["x", "y", "z"], "create z"),
            ("enough", 3, &["a", "b", "c"], &[], "nothing"),
            ("enough, one of them going", 3, &["a", "b", "c d"], &[], "nothing"),
            ("too many", 3, &["a", "b", "c", "d"], &[], "remove a"),
            ("too many, the one that goes is not well", 1, &["a", "b mxe", "c"], &[], "remove b"),
            ("too many, another one is not well", 1, &["a", "b m", "c x"], &[], "wait: components"),
            ("too many, one is already going", 1, &["a", "b d", "c"], &[], "wait: deleting"),
            ("a replacement only once the old one is gone", 3, &["a", "b d"], &[], "wait: deleting"),
        ] {
            assert_eq!(text(decide(&observed(replicas, machines, domains))), expected, "{what}");
        }
    }

    #[test]
    fn outdated_machines_are_replaced_one_after_the_other() {
        for (what, no_surge, replicas, machines, expected) in [
            ("surge: one more first", false, 3, &["a o", "b o", "c o"][..], "create -"),
            ("surge: then the oldest goes", false, 3, &["a o", "b o", "c o", "d"], "remove a"),
            ("surge: it is going", false, 3, &["a od", "b o", "c o", "d"], "wait: deleting"),
            ("surge: the next one comes", false, 3, &["b o", "c o", "d"], "create -"),
            ("surge: the new one joins", false, 3, &["b o", "c o", "d", "e j"], "wait: components etcd"),
            ("surge: the last one goes", false, 3, &["c o", "d", "e", "f"], "remove c"),
            ("surge: the last one is going", false, 3, &["c od", "d", "e", "f"], "wait: deleting"),
            ("surge: done", false, 3, &["d", "e", "f"], "nothing"),
            ("surge: a single one", false, 1, &["a o"], "create -"),
            ("no surge: the oldest goes first", true, 3, &["a o", "b o", "c o"], "remove a"),
            ("no surge: it is going", true, 3, &["a od", "b o", "c o"], "wait: deleting"),
            ("no surge: then the new one comes", true, 3, &["b o", "c o"], "create -"),
            ("no surge: then the next goes", true, 3, &["b o", "c o", "d"], "remove b"),
            ("scaling down during a rollout", false, 1, &["a o", "b o", "c"], "remove a"),
            ("scaling up during a rollout", false, 5, &["a o", "b o", "c"], "create -"),
            ("an outdated one that is not well goes first", true, 3, &["a o", "b ox", "c o"], "remove b"),
            ("another one is not well", true, 3, &["a o", "b x", "c o"], "wait: components"),
        ] {
            let mut observed = observed(replicas, machines, &[]);
            observed.plane.rollout = Rollout { no_surge, ..Rollout::default() };
            assert_eq!(text(decide(&observed)), expected, "{what}");
        }
    }

    #[test]
    fn what_stands_against_a_change_is_named() {
        let three = |change: &dyn Fn(&mut Observed)| {
            let mut observed = observed(3, &["a", "b"], &[]);
            change(&mut observed);
            text(decide(&observed))
        };
        assert_eq!(three(&|_| {}), "create -");
        assert_eq!(three(&|observed| observed.initialized = false), "wait: uninitialized");
        assert_eq!(three(&|observed| observed.workload.reach = Reach::Settling(None)), "wait: unreachable");
        assert_eq!(three(&|observed| observed.cluster.topology_version = Some("v9.0.0".into())), "wait: topology");
        let lost = Observed { initialized: true, ..observed(1, &[], &[]) };
        assert_eq!(text(decide(&lost)), "ControlPlaneLost");
    }

    #[test]
    fn external_etcd_plays_no_part() {
        let external = |machines| Observed { external_etcd: true, ..observed(2, machines, &[]) };
        assert_eq!(text(decide(&external(&["a e"]))), "create -");
        assert_eq!(text(decide(&external(&["a x"]))), "wait: components");
    }

    /// The replacement of a broken machine comes although another one is broken, unless that could cost the quorum.
    #[test]
    fn checks_are_relaxed_while_a_remediation_waits_for_its_replacement() {
        for (what, machines, list, expected) in [
            ("all is well", &["a", "b"][..], "a*,b", "create -"),
            ("four, one more broken", &["a", "b", "c", "d xe"], "a*,b,c,d x", "create -"),
            ("four, two more broken", &["a", "b", "c xe", "d xe"], "a*,b,c x,d x", "wait: etcd"),
            ("one left", &["a"], "a*", "create -"),
            ("no components left", &["a x"], "a*", "wait: components"),
        ] {
            let mut observed = observed(5, machines, &[]);
            observed.plane.remediating = Some("{}".into());
            observed.workload.members = Some(Ok(members(list)));
            assert_eq!(text(decide(&observed)), expected, "{what}");
        }
    }
}
