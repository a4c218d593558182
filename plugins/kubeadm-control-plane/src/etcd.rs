//! etcd's membership: what a change would do to its quorum, which member goes, who leads instead. All pure.

use capwasm_sdk::{EtcdMember, object};

use crate::machine::Machine;
use crate::names;
use crate::observe::Observed;

/// How many votes carry a decision among this many voters.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// A change of the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The member of this id goes.
    Remove(u64),
    /// A member joins.
    Add,
    /// The members stay as they are.
    None,
}

/// Whether etcd still decides after a change: enough of the voters that there are then are well, and nobody is about to
/// become a voter.
pub fn survives(members: &[EtcdMember], change: Change) -> bool {
    let rest: Vec<_> = members.iter().filter(|member| Change::Remove(member.id) != change).collect();
    // One that is starting has no name yet.
    if rest.iter().any(|member| member.learner || member.name.is_empty()) {
        return false;
    }
    let well = rest.iter().filter(|member| is_well(member)).count();
    let (voters, well) = match change {
        // A new member may turn out to be broken, except that a single one could never become two otherwise.
        Change::Add => (rest.len() + 1, if members.len() > 1 { well } else { well + 1 }),
        Change::Remove(_) | Change::None => (rest.len(), well),
    };
    well >= quorum(voters)
}

/// It answers, agrees with the others and raises no alarm.
pub fn is_well(member: &EtcdMember) -> bool {
    member.healthy && member.alarms.is_empty()
}

/// The member that runs on a Machine's Node; none when either is not known.
pub fn member_of<'a>(observed: &'a Observed, machine: &Machine) -> Option<&'a EtcdMember> {
    let node = observed.node_name(machine)?.to_owned();
    observed.workload.known_members()?.iter().find(|member| member.name == node)
}

/// What is to be done about a member that no machine hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stray {
    /// It can be removed.
    Remove {
        /// The member's id, which is hexadecimal where people see it.
        id: u64,
        /// The member's name; see [`label`].
        name: String,
    },
    /// Removing it would cost the quorum.
    Hold {
        /// The member's name; see [`label`].
        name: String,
    },
}

/// A member that belongs to no machine: one that can go, those that are not well first. Nothing is one while a machine has no
/// Node yet: the member may be its.
pub fn stray(observed: &Observed) -> Option<Stray> {
    let members = observed.workload.known_members()?;
    if observed.machines.is_empty() || observed.machines.iter().any(|machine| machine.node.is_none()) {
        return None;
    }
    let mut strays: Vec<&EtcdMember> =
        members.iter().filter(|member| observed.machine_of_node(&member.name).is_none()).collect();
    strays.sort_by_key(|member| is_well(member) && !member.learner);
    let goes = strays.iter().find(|member| survives(members, Change::Remove(member.id)));
    match goes {
        Some(stray) => Some(Stray::Remove { id: stray.id, name: label(stray) }),
        None => strays.first().map(|stray| Stray::Hold { name: label(stray) }),
    }
}

/// Whether etcd decides without a machine whose member is not known by name, taking every member that no other machine hosts
/// for its own.
pub fn survives_without(observed: &Observed, members: &[EtcdMember], machine: &Machine) -> bool {
    let hosted = |member: &&EtcdMember| {
        let hosts = |other: &Machine| observed.node_name(other) == Some(member.name.as_str());
        observed.machines.iter().any(|other| other.uid != machine.uid && hosts(other))
    };
    let well = members.iter().filter(hosted).filter(|member| is_well(member) && !member.learner).count();
    let voters = members.iter().filter(|member| !member.learner).count();
    members.iter().all(|member| hosted(&member)) || well >= quorum(voters)
}

/// Control-plane Nodes that outlived machine and member: nobody else would take them away. One that still answers is left for a
/// person to judge.
pub fn abandoned(observed: &Observed) -> Vec<&str> {
    let Some(members) = observed.workload.known_members() else { return Vec::new() };
    if observed.machines.is_empty() || observed.machines.iter().any(|machine| machine.node.is_none()) {
        return Vec::new();
    }
    let abandoned = observed.workload.nodes.iter().filter(|node| {
        let name = object::name(node);
        object::label(node, names::CONTROL_PLANE_NODE).is_some()
            && observed.machine_of_node(name).is_none()
            && !members.iter().any(|member| member.name == name)
            && !object::is_true(node, "Ready")
    });
    abandoned.map(object::name).collect()
}

/// The name of a member, or its id while it has none.
pub fn label(member: &EtcdMember) -> String {
    if member.name.is_empty() { format!("{:x} (without a name yet)", member.id) } else { member.name.clone() }
}

/// Who should lead instead of a Machine that is to go: the well voter on the newest machine that stays. None when another
/// one leads already.
pub fn successor(observed: &Observed, leaving: &Machine) -> Result<Option<u64>, NoSuccessor> {
    let Some(own) = member_of(observed, leaving).filter(|member| member.leader) else { return Ok(None) };
    let staying = observed
        .machines
        .iter()
        .filter(|machine| machine.uid != leaving.uid && machine.deleting.is_none() && !machine.is_unhealthy());
    staying
        .filter_map(|machine| Some((machine, member_of(observed, machine)?)))
        .filter(|(_, member)| is_well(member) && !member.learner && member.id != own.id)
        .max_by_key(|(machine, _)| (machine.created, machine.name.as_str()))
        .map(|(_, member)| Some(member.id))
        .ok_or(NoSuccessor)
}

/// No other member could lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuccessor;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::observe::{Reach, Workload};
    use crate::testing::{machine, members};

    #[test]
    fn a_quorum_is_more_than_half() {
        for (voters, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)] {
            assert_eq!(quorum(voters), expected, "{voters}");
        }
    }

    /// Members as `name` plus flags: `x` not well, `l` learner, `*` leader, `a` alarm; `?` has no name.
    #[test]
    fn a_change_is_made_only_when_etcd_decides_afterwards() {
        for (what, list, remove, survives_removal, survives_addition) in [
            ("one well", "a*", "a", false, true),
            ("one broken", "a x*", "a", false, false),
            ("two well", "a*,b", "b", true, true),
            ("two, the other one broken", "a*,b x", "a", false, false),
            ("two, this one broken", "a*,b x", "b", true, false),
            ("three well", "a*,b,c", "c", true, true),
            ("three, this one broken", "a*,b,c x", "c", true, false),
            ("three, another one broken", "a*,b,c x", "b", false, false),
            ("three, two broken", "a*,b x,c x", "c", false, false),
            ("four, one broken, this one", "a*,b,c,d x", "d", true, true),
            ("four, one broken, another one", "a*,b,c,d x", "c", true, true),
            ("four, two broken, one of them", "a*,b,c x,d x", "d", true, false),
            ("five, two broken, one of them", "a*,b,c,d x,e x", "e", true, false),
            ("five, one broken, another one", "a*,b,c,d,e x", "d", true, true),
            ("five, two broken, another one", "a*,b,c,d x,e x", "c", false, false),
            ("seven, three broken, one of them", "a*,b,c,d,e x,f x,g x", "g", true, false),
            ("a learner, which goes", "a*,b l", "b", true, false),
            ("a learner, another one goes", "a*,b,c l", "b", false, false),
            ("one that is starting", "a*,b,? x", "b", false, false),
            ("an alarm on another one", "a*,b a,c", "c", false, false),
        ] {
            let members = members(list);
            let id = members.iter().find(|member| member.name == remove).unwrap().id;
            assert_eq!(survives(&members, Change::Remove(id)), survives_removal, "{what}: removal");
            assert_eq!(survives(&members, Change::Add), survives_addition, "{what}: addition");
        }
        assert!(!survives(&[], Change::None));
    }

    fn observed(machines: &[&str], list: &str) -> Observed {
        Observed {
            machines: machines.iter().map(|text| machine(text)).collect(),
            workload: Workload { reach: Reach::Up, members: Some(Ok(members(list))), ..Workload::default() },
            ..Observed::default()
        }
    }

    #[test]
    fn a_member_without_a_machine_goes_when_that_is_safe() {
        let remove = |name: &str, id| Some(Stray::Remove { id, name: name.into() });
        for (what, machines, list, expected) in [
            ("everybody has one", &["a", "b", "c"][..], "a*,b,c", None),
            ("one is left over", &["a", "b"], "a*,b,c", remove("c", 3)),
            ("one is left over, broken", &["a", "b"], "a*,b,c x", remove("c", 3)),
            ("another one is broken", &["a", "b"], "a*,b x,c", Some(Stray::Hold { name: "c".into() })),
            ("it may belong to a machine that joins", &["a", "b", "d j"], "a*,b,c", None),
            ("its machine is going", &["a", "b", "c d"], "a*,b,c", None),
            ("it never started", &["a", "b"], "a*,b,? x", remove("3 (without a name yet)", 3)),
            ("there are no machines", &[], "a*", None),
            ("two are left over, only the learner can go", &["a", "b"], "a*,b,c,d l", remove("d", 4)),
            ("two are left over, the broken one first", &["a", "b", "e"], "a*,b,c,d x,e", remove("d", 4)),
        ] {
            assert_eq!(stray(&observed(machines, list)), expected, "{what}");
        }
    }

    #[test]
    fn a_machine_without_a_node_is_missed_as_if_all_unknown_members_were_its() {
        for (what, machines, list, expected) in [
            ("no member is unknown", &["a", "b", "c j"][..], "a*,b", true),
            ("none is unknown, and one is broken", &["a", "b", "c j"], "a*,b x", true),
            ("one is unknown", &["a", "b", "c j"], "a*,b,c", true),
            ("one is unknown, and another one is broken", &["a", "b", "c j"], "a*,b x,c", false),
            ("it never started", &["a", "b", "c j"], "a*,b,? x", true),
            ("a learner does not vote", &["a", "c j"], "a*,c l", true),
        ] {
            let observed = observed(machines, list);
            let members = observed.workload.known_members().unwrap();
            let machine = observed.machines.last().unwrap();
            assert_eq!(survives_without(&observed, members, machine), expected, "{what}");
        }
    }

    #[test]
    fn a_node_goes_with_its_machine_and_member_unless_it_still_answers() {
        let node = |name: &str, ready: &str| {
            serde_json::json!({
                "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            })
        };
        for (what, machines, list, ready, expected) in [
            ("its machine and member are gone", &["a"][..], "a*", "Unknown", &["z"][..]),
            ("it still answers", &["a"], "a*", "True", &[]),
            ("its member is still there", &["a"], "a*,z", "Unknown", &[]),
            ("it may be the one that joins", &["a", "b j"], "a*", "False", &[]),
            ("it has a machine", &["a", "z"], "a*", "False", &[]),
        ] {
            let mut observed = observed(machines, list);
            observed.workload.nodes = vec![node("a", "True"), node("z", ready)];
            assert_eq!(abandoned(&observed), expected, "{what}");
        }
    }

    #[test]
    fn the_newest_well_member_takes_over_from_a_leader() {
        for (what, machines, list, expected) in [
            ("another one leads", &["a", "b", "c"][..], "a,b*,c", Ok(None)),
            ("it leads", &["a", "b", "c"], "a*,b,c", Ok(Some(3))),
            ("the newest is broken", &["a", "b", "c"], "a*,b,c x", Ok(Some(2))),
            ("the newest is unhealthy", &["a", "b", "c u"], "a*,b,c", Ok(Some(2))),
            ("the newest is going", &["a", "b", "c d"], "a*,b,c", Ok(Some(2))),
            ("the newest is a learner", &["a", "b", "c"], "a*,b,c l", Ok(Some(2))),
            ("nobody could", &["a", "b"], "a*,b x", Err(NoSuccessor)),
            ("it has no member", &["z", "b"], "b*", Ok(None)),
        ] {
            let observed = observed(machines, list);
            assert_eq!(successor(&observed, &observed.machines[0]), expected, "{what}");
        }
    }
}
