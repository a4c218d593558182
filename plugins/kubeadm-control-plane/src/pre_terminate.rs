//! The last moment of a Machine that is being deleted: its member leaves etcd, then nothing holds the Machine. Pure.

use capwasm_object::version::Version;

use crate::etcd::{self, Change};
use crate::machine::Machine;
use crate::observe::{Observed, Reach};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing is being deleted, or something else comes first.
    Nothing,
    /// The member cannot leave now; says why.
    Hold {
        /// Name of the machine.
        machine: String,
        /// What stands against it, in words for the condition.
        why: String,
    },
    /// The machine may go: its hook is removed, once its member has left etcd.
    Release {
        /// Name of the machine.
        machine: String,
        /// Who leads etcd instead, where the machine's member does.
        successor: Option<u64>,
        /// The member that leaves first.
        member: Option<u64>,
    },
}

/// Decides. One machine at a time, the one that was deleted first.
pub fn decide(observed: &Observed) -> Step {
    let deleting: Vec<&Machine> = observed.machines.iter().filter(|machine| machine.deleting.is_some()).collect();
    // One that was released goes before the next is.
    if deleting.iter().any(|machine| !machine.has_hook()) {
        return Step::Nothing;
    }
    let first = deleting.iter().min_by_key(|machine| (machine.deleting, machine.name.as_str()));
    let Some(machine) = first else { return Step::Nothing };
    // From 1.31 on, a kubelet talks to the API server beside it, which ends with the member: others may need it.
    let last = Version::parse(&observed.plane.version).is_none_or(|version| version.is_at_least(1, 31));
    if (last && machine.has_other_hooks()) || !machine.waits_for_hooks() {
        return Step::Nothing;
    }
    let release = |successor, member| Step::Release { machine: machine.name.clone(), successor, member };
    if !observed.manages_etcd() || observed.cluster.deleting || observed.machines.len() == 1 || !observed.initialized {
        return release(None, None);
    }
    let hold = |why: &str| Step::Hold { machine: machine.name.clone(), why: why.to_owned() };
    if observed.workload.reach != Reach::Up {
        return hold("the workload cluster cannot be reached");
    }
    let members = match &observed.workload.members {
        Some(Ok(members)) => members,
        Some(Err(why)) => return hold(&format!("etcd cannot be asked for its members: {why}")),
        // No machine has a Node yet, so that none has a member.
        None => return release(None, None),
    };
    let Some(member) = etcd::member_of(observed, machine) else {
        let gone = observed.node_name(machine).is_some();
        return if gone || etcd::survives_without(observed, members, machine) {
            release(None, None)
        } else {
            hold("its Node is not known, and etcd would lose its quorum should one of the unknown members be its own")
        };
    };
    if !etcd::survives(members, Change::Remove(member.id)) {
        return hold("etcd would lose its quorum without this Machine's member");
    }
    match etcd::successor(observed, machine) {
        Ok(successor) => release(successor, Some(member.id)),
        // etcd chooses a leader by itself among members whose machines are going as well.
        Err(etcd::NoSuccessor) => release(None, Some(member.id)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::observe::Workload;
    use crate::plane::ControlPlane;
    use crate::testing::{machine, members};

    fn observed(machines: &[&str], list: &str) -> Observed {
        Observed {
            plane: ControlPlane { version: "v1.36.0".into(), ..ControlPlane::default() },
            machines: machines.iter().map(|text| machine(text)).collect(),
            initialized: true,
            workload: Workload { reach: Reach::Up, members: Some(Ok(members(list))), ..Workload::default() },
            ..Observed::default()
        }
    }

    fn text(step: Step) -> String {
        match step {
            Step::Nothing => "nothing".into(),
            Step::Hold { machine, .. } => format!("hold {machine}"),
            Step::Release { machine, successor, member } => {
                let leads = successor.map_or(String::new(), |id| format!("{id} leads, "));
                let leaves = member.map_or("no member leaves".into(), |id| format!("{id} leaves"));
                format!("release {machine}: {leads}{leaves}")
            }
        }
    }

    #[test]
    fn a_member_leaves_when_nothing_else_holds_its_machine() {
        for (what, machines, list, expected) in [
            ("nobody is going", &["a h", "b h"][..], "a*,b", "nothing"),
            ("drain goes on", &["a h", "b h", "c dh"], "a*,b,c", "nothing"),
            ("another hook", &["a h", "b h", "c wp"], "a*,b,c", "nothing"),
            ("its turn", &["a h", "b h", "c w"], "a*,b,c", "release c: 3 leaves"),
            ("its turn, and it leads", &["a h", "b h", "c w"], "a,b,c*", "release c: 2 leads, 3 leaves"),
            ("one was released already", &["a h", "b w", "c d"], "a*,b", "nothing"),
            ("the first of two", &["a h", "b w", "c w"], "a*,b,c", "release b: 2 leaves"),
            ("its member is gone already", &["a h", "b h", "c w"], "a*,b", "release c: no member leaves"),
            ("it never got a Node", &["a h", "b h", "c wj"], "a*,b x", "release c: no member leaves"),
            ("it has no Node, a member may be its", &["a h", "b h", "c wj"], "a*,b,c", "release c: no member leaves"),
            ("the same, and another one is broken", &["a h", "b h", "c wj"], "a*,b x,c", "hold c"),
            ("it is broken, the others are not", &["a h", "b h", "c w"], "a*,b,c x", "release c: 3 leaves"),
            ("another one is broken", &["a h", "b h", "c w"], "a*,b x,c", "hold c"),
            ("the quorum is lost", &["a h", "b h", "c w"], "a x,b x,c x", "hold c"),
            ("all of them are going", &["a w", "b w"], "a*,b", "release a: 1 leaves"),
            ("the last one", &["a w"], "a*", "release a: no member leaves"),
        ] {
            assert_eq!(text(decide(&observed(machines, list))), expected, "{what}");
        }
    }

    #[test]
    fn etcd_is_left_alone_where_it_is_not_ours_or_goes_as_a_whole() {
        let case = |change: &dyn Fn(&mut Observed)| {
            let mut observed = observed(&["a h", "b h", "c w"], "a*,b x,c");
            change(&mut observed);
            text(decide(&observed))
        };
        let released = "release c: no member leaves";
        assert_eq!(case(&|observed| observed.external_etcd = true), released);
        assert_eq!(case(&|observed| observed.cluster.deleting = true), released);
        assert_eq!(case(&|observed| observed.workload.members = Some(Err("no answer".into()))), "hold c");
        assert_eq!(case(&|observed| observed.workload.reach = Reach::Settling(None)), "hold c");
    }

    #[test]
    fn before_1_31_others_hooks_are_not_waited_for() {
        let mut observed = observed(&["a h", "b h", "c wp"], "a*,b,c");
        observed.plane.version = "v1.30.4".into();
        assert_eq!(text(decide(&observed)), "release c: 3 leaves");
    }
}
