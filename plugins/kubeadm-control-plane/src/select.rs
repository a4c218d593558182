//! Which machine goes, and where the next one comes. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::machine::Machine;
use crate::observe::Observed;
use crate::preflight::components_well;

/// The machine that goes next, of the first group that has any: outdated ones that a person marked; others that a person
/// marked; outdated ones whose components are not well; outdated ones; any. Of the group, one where no machine should be,
/// or of the failure domain with the most machines; of those, the oldest.
pub fn departure(observed: &Observed) -> Option<&Machine> {
    let managed = observed.manages_etcd();
    let outdated: Vec<&Machine> = observed.outdated().collect();
    let staying = || observed.machines.iter().filter(|machine| machine.deleting.is_none());
    let groups = [
        outdated.iter().copied().filter(|machine| machine.goes_first()).collect::<Vec<_>>(),
        staying().filter(|machine| machine.goes_first()).collect(),
        outdated.iter().copied().filter(|machine| !components_well(machine, managed)).collect(),
        outdated,
        staying().collect(),
    ];
    let group = groups.into_iter().find(|group| !group.is_empty())?;
    let crowd = crowd(observed.machines.iter());
    let domains = &observed.cluster.failure_domains;
    group.into_iter().min_by_key(|machine| {
        let known = domains.is_empty() || domains.contains(&machine.failure_domain);
        let crowd = crowd.get(machine.failure_domain.as_str()).copied().unwrap_or(0);
        (known, Reverse(crowd), machine.created, machine.name.clone())
    })
}

/// The failure domain with the fewest machines that are up to date; of those, with the fewest machines; of those, the first
/// by name.
pub fn arrival(observed: &Observed) -> Option<String> {
    let all = crowd(observed.machines.iter());
    let current = crowd(observed.machines.iter().filter(|machine| machine.outdated.is_empty()));
    let count = |crowd: &BTreeMap<&str, usize>, name: &str| crowd.get(name).copied().unwrap_or(0);
    let domains = observed.cluster.failure_domains.iter();
    domains.min_by_key(|name| (count(&current, name), count(&all, name), name.as_str())).cloned()
}

fn crowd<'a>(machines: impl Iterator<Item = &'a Machine>) -> BTreeMap<&'a str, usize> {
    let mut crowd = BTreeMap::new();
    for machine in machines.filter(|machine| machine.deleting.is_none()) {
        *crowd.entry(machine.failure_domain.as_str()).or_insert(0) += 1;
    }
    crowd
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::plane::Cluster;
    use crate::testing::machine;

    fn observed(machines: &[&str], domains: &[&str]) -> Observed {
        Observed {
            machines: machines.iter().map(|text| machine(text)).collect(),
            cluster: Cluster {
                failure_domains: domains.iter().map(|name| (*name).to_owned()).collect(),
                ..Cluster::default()
            },
            ..Observed::default()
        }
    }

    #[test]
    fn machines_go_in_the_order_of_their_class_then_crowd_then_age() {
        for (what, machines, domains, expected) in [
            ("outdated and marked", &["a", "b m", "c o", "d om"][..], &[][..], "d"),
            ("marked", &["a ox", "b m", "c o"], &[], "b"),
            ("outdated and not well", &["a o", "b", "c ox"], &[], "c"),
            ("outdated", &["a", "b o", "c o"], &[], "b"),
            ("the oldest", &["b", "a", "c"], &[], "a"),
            ("of the most crowded failure domain", &["a@x", "b@y", "c@y", "d@y"], &["x", "y"], "b"),
            ("outdated ones of the most crowded, counting all", &["a@x o", "b@y", "c@y", "d@y o"], &["x", "y"], "d"),
            ("where no machine should be", &["a@x", "b@x", "c@gone"], &["x", "y"], "c"),
            ("those that are going are gone", &["a@x d", "b@x d", "c@y", "d@x"], &["x", "y"], "c"),
        ] {
            assert_eq!(departure(&observed(machines, domains)).unwrap().name, expected, "{what}");
        }
        assert!(departure(&observed(&["a d"], &[])).is_none());
    }

    #[test]
    fn machines_come_where_the_fewest_current_ones_are() {
        for (what, machines, domains, expected) in [
            ("no failure domains", &["a"][..], &[][..], None),
            ("an empty one", &["a@x", "b@y"], &["x", "y", "z"], Some("z")),
            ("by name", &[], &["y", "x"], Some("x")),
            ("outdated ones count only after current ones", &["a@x", "b@y o", "c@y o"], &["x", "y"], Some("y")),
            ("going ones do not count", &["a@x d", "b@y"], &["x", "y"], Some("x")),
        ] {
            assert_eq!(arrival(&observed(machines, domains)).as_deref(), expected, "{what}");
        }
    }
}
