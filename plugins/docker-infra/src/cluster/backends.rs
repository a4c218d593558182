//! Which API servers stand behind the load balancer, and how much each gets.

use capwasm_sdk::object;
use serde_json::Value;

use crate::family::{Family, family_of};
use crate::haproxy::{Backend, LARGEST_WEIGHT, USUAL_WEIGHT};
use crate::kinds::{CONTROL_PLANE_LABEL, machine_name};

/// Annotation of a DockerMachine, upstream's.
const WEIGHT: &str = "dockermachine.infrastructure.cluster.x-k8s.io/weight";

/// How far a machine is on its way out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leaving {
    /// It stays.
    No,
    /// Its Machine is being deleted, and drained: it gets nothing new.
    Draining,
    /// Its container is going.
    Going,
}

/// Of all control-plane machines with an address. One that leaves gets no new connections, and then none at all; but the
/// last ones keep what they have, so that they can still be drained.
pub fn of(machines: &[Value], docker_machines: &[Value], cluster: &str, family: Family) -> Vec<Backend> {
    let candidates: Vec<(Leaving, Backend)> = machines
        .iter()
        .filter(|machine| object::label(machine, CONTROL_PLANE_LABEL).is_some())
        .filter_map(|machine| candidate(machine, docker_machines, cluster, family))
        .collect();
    let best = candidates.iter().map(|(leaving, _)| *leaving).min().unwrap_or(Leaving::No);
    candidates
        .into_iter()
        .filter(|(leaving, _)| *leaving != Leaving::Going || best == Leaving::Going)
        .map(|(leaving, backend)| {
            if leaving == Leaving::Draining && best == Leaving::No { Backend { weight: 0, ..backend } } else { backend }
        })
        .collect()
}

fn candidate(machine: &Value, docker_machines: &[Value], cluster: &str, family: Family) -> Option<(Leaving, Backend)> {
    let reference = object::text(machine, "/spec/infrastructureRef/name");
    let docker_machine = docker_machines.iter().find(|candidate| {
        object::name(candidate) == reference && object::namespace(candidate) == object::namespace(machine)
    })?;
    let addresses = docker_machine.pointer("/status/addresses")?.as_array()?;
    let internal = addresses.iter().find(|address| {
        object::text(address, "/type") == "InternalIP" && family_of(object::text(address, "/address")) == Some(family)
    })?;
    let backend = Backend {
        name: machine_name(cluster, object::name(machine)).ok()?,
        address: object::text(internal, "/address").to_owned(),
        weight: weight(docker_machine),
    };
    let leaving = match (object::is_deleting(docker_machine), object::is_deleting(machine)) {
        (true, _) => Leaving::Going,
        (false, true) => Leaving::Draining,
        (false, false) => Leaving::No,
    };
    Some((leaving, backend))
}

/// What a person wants it to have; the usual where that is no weight.
fn weight(docker_machine: &Value) -> u16 {
    let wanted = object::annotation(docker_machine, WEIGHT).and_then(|weight| weight.trim().parse().ok());
    wanted.filter(|weight| *weight <= LARGEST_WEIGHT).unwrap_or(USUAL_WEIGHT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    /// Machine (whether control plane, whether it is being deleted) and DockerMachine (addresses, whether it is being
    /// deleted, weight) of one name.
    type Pair = (&'static str, bool, bool, &'static [&'static str], bool, &'static str);

    /// What a row is called, the machines, and the backends that they are.
    type Row = (&'static str, Vec<Pair>, Vec<(&'static str, &'static str, u16)>);

    fn deleted(is: bool) -> Value {
        if is { json!("2026-01-01T00:00:00Z") } else { Value::Null }
    }

    fn backends(pairs: &[Pair], family: Family) -> Vec<(String, String, u16)> {
        let machines: Vec<Value> = pairs
            .iter()
            .map(|(name, control_plane, going, ..)| {
                let labels = if *control_plane { json!({CONTROL_PLANE_LABEL: ""}) } else { json!({}) };
                json!({"metadata": {"name": name, "labels": labels, "deletionTimestamp": deleted(*going)}, "spec": {"infrastructureRef": {"name": format!("{name}-i")}}})
            })
            .collect();
        let docker_machines: Vec<Value> = pairs
            .iter()
            .map(|(name, _, _, addresses, going, weight)| {
                let addresses: Vec<Value> =
                    addresses.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
                let annotations = if weight.is_empty() { json!({}) } else { json!({WEIGHT: weight}) };
                json!({"metadata": {"name": format!("{name}-i"), "annotations": annotations, "deletionTimestamp": deleted(*going)}, "status": {"addresses": addresses}})
            })
            .collect();
        let found = of(&machines, &docker_machines, "quick", family);
        found.into_iter().map(|backend| (backend.name, backend.address, backend.weight)).collect()
    }

    #[test]
    fn backends_are_the_control_plane_machines_and_leaving_ones_are_drained_first() {
        const A: &[&str] = &["1.1.1.1"];
        const B: &[&str] = &["1.1.1.2"];
        let table: [Row; 8] = [
            ("no addresses yet", vec![("a", true, false, &[], false, "")], vec![]),
            (
                "workers are left out",
                vec![("a", true, false, A, false, ""), ("w", false, false, B, false, "")],
                vec![("a", "1.1.1.1", 100)],
            ),
            (
                "one that is being deleted gets nothing new",
                vec![("a", true, true, A, false, ""), ("b", true, false, B, false, "")],
                vec![("a", "1.1.1.1", 0), ("b", "1.1.1.2", 100)],
            ),
            (
                "one whose container goes is gone",
                vec![("a", true, true, A, true, ""), ("b", true, false, B, false, "")],
                vec![("b", "1.1.1.2", 100)],
            ),
            (
                "the last ones keep their share while they are drained",
                vec![("a", true, true, A, false, ""), ("b", true, true, B, true, "")],
                vec![("a", "1.1.1.1", 100)],
            ),
            (
                "the very last one stays until its container is gone",
                vec![("a", true, true, A, true, "")],
                vec![("a", "1.1.1.1", 100)],
            ),
            (
                "weights are the annotation's",
                vec![("a", true, false, A, false, "7"), ("b", true, false, B, false, "0")],
                vec![("a", "1.1.1.1", 7), ("b", "1.1.1.2", 0)],
            ),
            (
                "what is no weight is the usual one",
                vec![("a", true, false, A, false, "257"), ("b", true, false, B, false, "x")],
                vec![("a", "1.1.1.1", 100), ("b", "1.1.1.2", 100)],
            ),
        ];
        for (what, pairs, expected) in table {
            let expected: Vec<(String, String, u16)> = expected
                .into_iter()
                .map(|(name, ip, weight)| (format!("quick-{name}"), ip.to_owned(), weight))
                .collect();
            assert_eq!(backends(&pairs, Family::V4), expected, "{what}");
        }
    }

    #[test]
    fn addresses_are_of_the_family_that_the_load_balancer_speaks() {
        let pairs: [Pair; 2] =
            [("a", true, false, &["1.1.1.1", "fd00::1"], false, ""), ("b", true, false, &["1.1.1.2"], false, "")];
        assert_eq!(backends(&pairs, Family::V6), [("quick-a".to_owned(), "fd00::1".to_owned(), 100)]);
    }
}
