//! Which API servers stand behind the load balancer, and how much each gets.
//!
//! A DockerMachine tells its addresses with a status that may come late. Until then the engine is asked: of a machine with a
//! provider ID it has a container.

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
    No,
    /// Its Machine is being deleted, and drained: it gets nothing new.
    Draining,
    Going,
}

/// Asks the engine for the address of the container of a DockerMachine, by the container's name.
pub type Ask<'a, E> = &'a dyn Fn(&Value, &str) -> Result<Option<String>, E>;

/// Of all control-plane machines with an address. One that leaves gets no new connections, and then none at all; but the
/// last ones keep what they have, so that they can still be drained.
pub fn of<E>(
    machines: &[Value],
    docker_machines: &[Value],
    cluster: &str,
    family: Family,
    ask: Ask<'_, E>,
) -> Result<Vec<Backend>, E> {
    let candidates: Vec<(Leaving, Backend)> = machines
        .iter()
        .filter(|machine| object::label(machine, CONTROL_PLANE_LABEL).is_some())
        .filter_map(|machine| candidate(machine, docker_machines, cluster, family, ask).transpose())
        .collect::<Result<_, E>>()?;
    let best = candidates.iter().map(|(leaving, _)| *leaving).min().unwrap_or(Leaving::No);
    let backends = candidates
        .into_iter()
        .filter(|(leaving, _)| *leaving != Leaving::Going || best == Leaving::Going)
        .map(|(leaving, backend)| {
            if leaving == Leaving::Draining && best == Leaving::No { Backend { weight: 0, ..backend } } else { backend }
        });
    Ok(backends.collect())
}

fn candidate<E>(
    machine: &Value,
    docker_machines: &[Value],
    cluster: &str,
    family: Family,
    ask: Ask<'_, E>,
) -> Result<Option<(Leaving, Backend)>, E> {
    let reference = object::text(machine, "/spec/infrastructureRef/name");
    let docker_machine = docker_machines.iter().find(|candidate| {
        object::name(candidate) == reference && object::namespace(candidate) == object::namespace(machine)
    });
    let (Some(docker_machine), Ok(name)) = (docker_machine, machine_name(cluster, object::name(machine))) else {
        return Ok(None);
    };
    let address = match told(docker_machine) {
        Some(addresses) => internal(addresses, family),
        None if object::text(docker_machine, "/spec/providerID").is_empty() => None,
        None => ask(docker_machine, &name)?,
    };
    let Some(address) = address else { return Ok(None) };
    let backend = Backend { name, address, weight: weight(docker_machine) };
    let leaving = match (object::is_deleting(docker_machine), object::is_deleting(machine)) {
        (true, _) => Leaving::Going,
        (false, true) => Leaving::Draining,
        (false, false) => Leaving::No,
    };
    Ok(Some((leaving, backend)))
}

/// The addresses that a DockerMachine tells; none before it does.
fn told(docker_machine: &Value) -> Option<&[Value]> {
    let addresses = docker_machine.pointer("/status/addresses")?.as_array()?;
    Some(addresses.as_slice()).filter(|addresses| !addresses.is_empty())
}

fn internal(addresses: &[Value], family: Family) -> Option<String> {
    let internal = addresses.iter().filter(|address| object::text(address, "/type") == "InternalIP");
    internal
        .map(|address| object::text(address, "/address"))
        .find(|address| family_of(address) == Some(family))
        .map(str::to_owned)
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
        let silent = |_: &Value, name: &str| -> Result<Option<String>, ()> { panic!("{name} tells its addresses") };
        let found = of(&machines, &docker_machines, "quick", family, &silent).unwrap();
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
    fn the_engine_is_asked_once_there_is_a_container_and_until_its_addresses_are_told() {
        let machine = json!({"metadata": {"name": "quick-a", "labels": {CONTROL_PLANE_LABEL: ""}}, "spec": {"infrastructureRef": {"name": "a-i"}}});
        let of = |spec: Value, status: Value, ask: Ask<'_, &'static str>| {
            let docker_machine = json!({"metadata": {"name": "a-i"}, "spec": spec, "status": status});
            let found = super::of(std::slice::from_ref(&machine), &[docker_machine], "quick", Family::V4, ask);
            found.map(|backends| backends.into_iter().map(|backend| backend.address).collect::<Vec<_>>())
        };
        let named = || json!({"providerID": "docker:////quick-a"});
        let told = json!({"addresses": [{"type": "InternalIP", "address": "1.1.1.1"}]});
        let runs: Ask<'_, &str> = &|object, name| {
            assert_eq!((object::name(object), name), ("a-i", "quick-a"));
            Ok(Some("1.1.1.9".to_owned()))
        };
        assert_eq!(of(json!({}), json!({}), runs), Ok(vec![]), "no container yet");
        assert_eq!(of(named(), json!({}), runs), Ok(vec!["1.1.1.9".to_owned()]));
        assert_eq!(of(named(), json!({"addresses": []}), runs), Ok(vec!["1.1.1.9".to_owned()]));
        assert_eq!(of(named(), told, runs), Ok(vec!["1.1.1.1".to_owned()]), "what is told counts");
        assert_eq!(of(named(), json!({}), &|_, _| Ok(None)), Ok(vec![]), "it does not run");
        assert_eq!(
            of(named(), json!({}), &|_, _| Err("engine")),
            Err("engine"),
            "nobody is left out for want of an answer"
        );
    }

    #[test]
    fn addresses_are_of_the_family_that_the_load_balancer_speaks() {
        let pairs: [Pair; 2] =
            [("a", true, false, &["1.1.1.1", "fd00::1"], false, ""), ("b", true, false, &["1.1.1.2"], false, "")];
        assert_eq!(backends(&pairs, Family::V6), [("quick-a".to_owned(), "fd00::1".to_owned(), 100)]);
    }
}
