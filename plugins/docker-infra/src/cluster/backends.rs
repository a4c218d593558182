//! Which API servers stand behind the load balancer.

use capwasm_sdk::object;
use serde_json::Value;

use crate::haproxy::Backend;
use crate::kinds::{CONTROL_PLANE_LABEL, machine_name};

/// Of all control-plane machines with an address; of those that are being deleted only when there is no other, so that
/// the last one can still be drained.
pub fn of(machines: &[Value], docker_machines: &[Value], cluster: &str) -> Vec<Backend> {
    let candidates: Vec<(bool, Backend)> = machines
        .iter()
        .filter(|machine| object::label(machine, CONTROL_PLANE_LABEL).is_some())
        .filter_map(|machine| candidate(machine, docker_machines, cluster))
        .collect();
    let leaving = candidates.iter().all(|(leaving, _)| *leaving);
    candidates.into_iter().filter(|(is_leaving, _)| leaving || !is_leaving).map(|(_, backend)| backend).collect()
}

fn candidate(machine: &Value, docker_machines: &[Value], cluster: &str) -> Option<(bool, Backend)> {
    let reference = object::text(machine, "/spec/infrastructureRef/name");
    let docker_machine = docker_machines.iter().find(|candidate| {
        object::name(candidate) == reference && object::namespace(candidate) == object::namespace(machine)
    })?;
    let addresses = docker_machine.pointer("/status/addresses")?.as_array()?;
    let internal = addresses.iter().find(|address| object::text(address, "/type") == "InternalIP")?;
    let backend = Backend {
        name: machine_name(cluster, object::name(machine)).ok()?,
        address: object::text(internal, "/address").to_owned(),
    };
    Some((object::is_deleting(docker_machine), backend))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    fn machine(name: &str, control_plane: bool) -> Value {
        let labels = if control_plane { json!({CONTROL_PLANE_LABEL: ""}) } else { json!({}) };
        json!({"metadata": {"name": name, "labels": labels}, "spec": {"infrastructureRef": {"name": format!("{name}-i")}}})
    }

    fn docker_machine(name: &str, address: Option<&str>, leaving: bool) -> Value {
        let addresses: Vec<Value> = address.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
        let deletion = if leaving { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        json!({"metadata": {"name": format!("{name}-i"), "deletionTimestamp": deletion}, "status": {"addresses": addresses}})
    }

    #[test]
    fn backends_are_the_control_plane_machines_that_stay() {
        let machines = [machine("a", true), machine("b", true), machine("c", true), machine("w", false)];
        let [a, b] = [("a", "1.1.1.1"), ("b", "1.1.1.2")].map(|(name, ip)| (name, ip));
        let table = [
            ("no addresses yet", vec![docker_machine("a", None, false)], vec![]),
            (
                "workers and strangers are left out",
                vec![
                    docker_machine("a", Some(a.1), false),
                    docker_machine("w", Some("9.9.9.9"), false),
                    docker_machine("x", Some("8.8.8.8"), false),
                ],
                vec![a],
            ),
            (
                "leaving ones go first",
                vec![docker_machine("a", Some(a.1), true), docker_machine("b", Some(b.1), false)],
                vec![b],
            ),
            (
                "the last one stays while it leaves",
                vec![docker_machine("a", Some(a.1), true), docker_machine("b", Some(b.1), true)],
                vec![a, b],
            ),
        ];
        for (what, docker_machines, expected) in table {
            let expected: Vec<Backend> = expected
                .into_iter()
                .map(|(name, ip)| Backend { name: format!("quick-{name}"), address: ip.to_owned() })
                .collect();
            assert_eq!(of(&machines, &docker_machines, "quick"), expected, "{what}");
        }
    }
}
