//! Which members are made and which go. Pure.

use super::members::Member;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// The pool's version or template is another now.
    Outdated,
    /// There are more than are wanted.
    Surplus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan<'a> {
    pub create: usize,
    /// Which to let go, by their Machines.
    pub delete: Vec<(&'a Member, Going)>,
}

/// Decides from the members. All that are missing are made at once; nodes go only when enough are left without them. Outdated
/// ones go before surplus ones, in both those first that somebody marked, then those that are no nodes, then the oldest.
/// Without a Machine nothing goes: core is about to make it.
pub fn decide<'a>(replicas: usize, made_from: &str, members: &'a [Member]) -> Plan<'a> {
    let mut live: Vec<&Member> = members.iter().filter(|member| !member.deleting).collect();
    live.sort_by_key(|member| (!member.marked, member.ready, &member.created, &member.name));
    let (current, outdated): (Vec<&Member>, Vec<&Member>) =
        live.iter().partition(|member| member.made_from == made_from);
    let mut spare = live.iter().filter(|member| member.ready).count().saturating_sub(replicas);
    let mut surplus = current.len().saturating_sub(replicas);
    let mut plan = Plan { create: replicas.saturating_sub(current.len()), delete: Vec::new() };
    for member in outdated.into_iter().filter(|member| member.machine.is_some()) {
        if !member.ready || spare > 0 {
            spare -= usize::from(member.ready);
            plan.delete.push((member, Going::Outdated));
        }
    }
    for member in current.into_iter().filter(|member| member.machine.is_some()) {
        // Whoever marked one and asked for fewer knows what goes.
        if surplus > 0 && (!member.ready || member.marked || spare > 0) {
            spare = spare.saturating_sub(usize::from(member.ready));
            surplus -= 1;
            plan.delete.push((member, Going::Surplus));
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    /// A member by letters: `o`utdated, `r`eady, `d`eleting, `m`arked, `x` without a Machine. Its age follows from its place.
    fn members(letters: &[&str]) -> Vec<Member> {
        letters
            .iter()
            .enumerate()
            .map(|(number, letters)| {
                let has = |letter: char| letters.contains(letter);
                Member {
                    name: format!("m{number}"),
                    created: format!("2026-01-0{number}"),
                    made_from: if has('o') { "old" } else { "new" }.to_owned(),
                    ready: has('r'),
                    deleting: has('d'),
                    marked: has('m'),
                    machine: (!has('x')).then(|| (format!("m{number}"), "u".to_owned())),
                    ..Member::default()
                }
            })
            .collect()
    }

    /// What a row is called, replicas, members, how many are made, and which go.
    type Row = (&'static str, usize, &'static [&'static str], usize, &'static [(usize, Going)]);

    #[test]
    fn members_are_made_at_once_and_go_only_when_enough_are_left() {
        use Going::{Outdated, Surplus};
        let table: [Row; 15] = [
            ("nothing yet", 3, &[], 3, &[]),
            ("some are missing", 3, &["r", ""], 1, &[]),
            ("as wanted", 2, &["r", "r"], 0, &[]),
            ("one that goes is replaced", 2, &["r", "rd"], 1, &[]),
            ("scaled down: the oldest goes", 1, &["r", "r"], 0, &[(0, Surplus)]),
            ("scaled down: those that are no nodes go first", 1, &["r", "", "r"], 0, &[(1, Surplus), (0, Surplus)]),
            ("scaled down: the marked one goes first", 1, &["r", "rm"], 0, &[(1, Surplus)]),
            ("scaled down: a marked node goes though another is none yet", 1, &["rm", ""], 0, &[(0, Surplus)]),
            ("marked, but none too many", 2, &["rm", "r"], 0, &[]),
            ("scaled to nothing", 0, &["r", ""], 0, &[(1, Surplus), (0, Surplus)]),
            ("another template: all new ones are made first", 2, &["ro", "ro"], 2, &[]),
            ("one new node: one old may go", 2, &["ro", "ro", "r", ""], 0, &[(0, Outdated)]),
            ("all new ones are nodes", 2, &["ro", "ro", "r", "r"], 0, &[(0, Outdated), (1, Outdated)]),
            ("an outdated one that is no node is no loss", 2, &["o", "ro"], 2, &[(0, Outdated)]),
            ("without a Machine it waits", 0, &["rx", "ox"], 0, &[]),
        ];
        for (what, replicas, letters, create, delete) in table {
            let members = members(letters);
            let plan = decide(replicas, "new", &members);
            let gone: Vec<(usize, Going)> = plan
                .delete
                .iter()
                .map(|(member, why)| (members.iter().position(|known| known == *member).unwrap(), *why))
                .collect();
            assert_eq!((plan.create, gone.as_slice()), (create, delete), "{what}");
        }
    }

    #[test]
    fn replacement_ends_with_new_nodes_only_and_never_has_fewer_nodes_than_wanted() {
        let mut members = members(&["ro", "ro", "ro"]);
        for round in 0..50 {
            let plan = decide(3, "new", &members);
            let gone: Vec<String> = plan.delete.iter().map(|(member, _)| member.name.clone()).collect();
            let create = plan.create;
            if create == 0 && gone.is_empty() && members.iter().all(|member| member.ready) {
                assert!(members.len() == 3 && members.iter().all(|member| member.made_from == "new"));
                return;
            }
            members.retain(|member| !gone.contains(&member.name));
            assert!(members.iter().filter(|member| member.ready).count() >= 3, "round {round}");
            // One becomes a node per round.
            if let Some(next) = members.iter_mut().find(|member| !member.ready) {
                next.ready = true;
            }
            members.extend((0..create).map(|number| Member {
                name: format!("n{round}-{number}"),
                made_from: "new".to_owned(),
                machine: Some((format!("n{round}-{number}"), "u".to_owned())),
                ..Member::default()
            }));
        }
        panic!("it does not end");
    }
}
