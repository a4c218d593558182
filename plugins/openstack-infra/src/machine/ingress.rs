//! How a control-plane machine gets the API server's traffic where there is no load balancer: the endpoint's floating address
//! leads to one of the machines, and to another one when that is deleted.

use std::net::IpAddr;
use std::time::Duration;

use capwasm_sdk::{Context, Host, Problem, Selection, object};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::identity::IdentityRef;
use crate::kinds::{API_SERVER_INGRESS_READY, CLUSTER_NAME_LABEL, V1BETA1};
use crate::network::{self, FloatingIp, Port};
use crate::server::floating;
use crate::server::spec::ServerStatus;

/// The condition's reason when something is wrong with the floating address.
const ERROR: &str = "FloatingIPError";

/// Between two looks for an address that is not there: the OpenStackCluster makes it, which nothing tells.
const MISSING: Duration = Duration::from_secs(15);

/// How the API servers of a cluster are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// The OpenStackCluster makes the machine a member, and says so in the machine's condition.
    LoadBalancer,
    /// This floating address leads to one machine.
    FloatingIp(String),
    /// Somebody else sees to it.
    Other,
}

/// The way of an OpenStackCluster.
pub fn way(cluster: &Value) -> Way {
    let flag = |field: &str| cluster.pointer(&format!("/spec/{field}")).and_then(Value::as_bool);
    let balancer = cluster.pointer("/spec/apiServerLoadBalancer").filter(|balancer| balancer.is_object());
    if balancer.is_some_and(|balancer| balancer.get("enabled").and_then(Value::as_bool) != Some(false)) {
        return Way::LoadBalancer;
    }
    if flag("disableAPIServerFloatingIP") == Some(true) || flag("disableExternalNetwork") == Some(true) {
        return Way::Other;
    }
    let told = ["/spec/controlPlaneEndpoint/host", "/spec/apiServerFloatingIP"].map(|at| object::text(cluster, at));
    // An endpoint may also be a name, which somebody points to the floating address.
    let address = told.into_iter().find(|address| address.parse::<IpAddr>().is_ok());
    address.map_or(Way::Other, |address| Way::FloatingIp(address.to_owned()))
}

/// Who has the floating address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holder {
    This,
    Another,
    Nobody,
}

fn holder(name: &str, machines: &[Value], address: &str) -> Holder {
    let has = |machine: &Value| {
        let addresses = machine.pointer("/status/addresses").and_then(Value::as_array);
        addresses.into_iter().flatten().any(|known| object::text(known, "/address") == address)
    };
    let holders: Vec<&Value> =
        machines.iter().filter(|machine| !object::is_deleting(machine) && has(machine)).collect();
    if holders.iter().any(|machine| object::name(machine) == name) {
        Holder::This
    } else if holders.is_empty() {
        Holder::Nobody
    } else {
        Holder::Another
    }
}

/// Makes sure that the floating address leads to one of the machines; `machine` is this one and `server` its OpenStackServer.
/// True when it leads to this one.
pub fn ensure(
    cx: &mut Context<'_>,
    machine: &Value,
    server: &Value,
    cluster: &Value,
    address: &str,
) -> Result<bool, Problem> {
    let result = lead(cx, machine, server, cluster, address);
    match &result {
        Ok(_) => cx.out.condition(API_SERVER_INGRESS_READY, Some(true), "Ready", ""),
        Err(problem) => cx.out.condition(API_SERVER_INGRESS_READY, Some(false), ERROR, problem.message.clone()),
    };
    result
}

fn lead(
    cx: &mut Context<'_>,
    machine: &Value,
    server: &Value,
    cluster: &Value,
    address: &str,
) -> Result<bool, Problem> {
    let name = object::label(machine, CLUSTER_NAME_LABEL).unwrap_or_default();
    // Read: they wake this one when the holder goes.
    let of_cluster = Selection::of(V1BETA1, "OpenStackMachine").labelled(format!("{CLUSTER_NAME_LABEL}={name}"));
    let machines = cx.host.lookup_list(&of_cluster)?;
    match holder(object::name(machine), &machines, address) {
        Holder::This => return Ok(true),
        Holder::Another => return Ok(false),
        Holder::Nobody => {}
    }
    let identity = IdentityRef::read(server.get("spec").unwrap_or(&Value::Null))?;
    let host: &dyn Host = cx.host;
    let cloud = Cloud::connect(host, object::namespace(machine), &identity)?;
    let missing = || {
        let problem = Problem::waiting(ERROR, format!("floating IP {address} does not exist yet"));
        problem.retry_after(MISSING)
    };
    let found = floating::by_address(&cloud, address)?.ok_or_else(missing)?;
    let own = management_port(server, object::text(cluster, "/status/network/id"))?;
    match &found.port_id {
        Some(port) if *port == own => return Ok(true),
        Some(port) if !is_of_one_that_goes(&cloud, port, &machines)? => return Ok(false),
        _ => {}
    }
    network::update::<FloatingIp>(&cloud, &found.id, json!({"port_id": own}))?;
    cx.out.event("SuccessfulAssociateFloatingIP", format!("Associated floating IP {address} with port {own}"));
    Ok(true)
}

/// Somebody may have led the address to a port of his own, such as a virtual IP: there it stays.
fn is_of_one_that_goes(cloud: &Cloud<'_>, port: &str, machines: &[Value]) -> Result<bool, Problem> {
    let Some(port) = network::get::<Port>(cloud, port)? else { return Ok(true) };
    let goes =
        |machine: &Value| object::is_deleting(machine) && object::text(machine, "/status/instanceID") == port.device_id;
    Ok(!port.device_id.is_empty() && machines.iter().any(goes))
}

/// The server's port in the cluster's network, or else its first.
fn management_port(server: &Value, network: &str) -> Result<String, Problem> {
    let status = ServerStatus::read(server)?;
    let wanted = status.resolved.unwrap_or_default().ports;
    let place = wanted.iter().position(|port| port.network_id == network).unwrap_or(0);
    let port = status.resources.ports.get(place);
    port.map(|port| port.id.clone()).ok_or_else(|| Problem::waiting(ERROR, "the server's ports are not known yet"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn the_way_follows_from_the_clusters_spec() {
        let address = || Way::FloatingIp("203.0.113.7".to_owned());
        let endpoint = json!({"host": "203.0.113.7", "port": 6443});
        let table = [
            (json!({"apiServerLoadBalancer": {}}), Way::LoadBalancer),
            (json!({"apiServerLoadBalancer": {"enabled": true}, "controlPlaneEndpoint": endpoint}), Way::LoadBalancer),
            (json!({"apiServerLoadBalancer": {"enabled": false}, "controlPlaneEndpoint": endpoint}), address()),
            (json!({"controlPlaneEndpoint": endpoint}), address()),
            (
                json!({"controlPlaneEndpoint": {"host": "api.example.org"}, "apiServerFloatingIP": "203.0.113.7"}),
                address(),
            ),
            (json!({"controlPlaneEndpoint": {"host": "api.example.org"}}), Way::Other),
            (json!({"controlPlaneEndpoint": endpoint, "disableAPIServerFloatingIP": true}), Way::Other),
            (json!({"controlPlaneEndpoint": endpoint, "disableExternalNetwork": true}), Way::Other),
        ];
        for (spec, expected) in table {
            assert_eq!(way(&json!({"spec": spec})), expected, "{spec}");
        }
    }

    #[test]
    fn whoever_is_being_deleted_holds_nothing() {
        let machine = |name: &str, address: &str, deleting: bool| {
            let mut machine = json!({"metadata": {"name": name}, "status": {"addresses": [{"type": "ExternalIP", "address": address}]}});
            if deleting {
                machine["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            machine
        };
        let table = [
            ("nobody", vec![machine("a", "", false), machine("b", "", false)], Holder::Nobody),
            ("this", vec![machine("a", "x", false), machine("b", "", false)], Holder::This),
            ("another", vec![machine("a", "", false), machine("b", "x", false)], Holder::Another),
            ("another that goes", vec![machine("a", "", false), machine("b", "x", true)], Holder::Nobody),
            ("this after another", vec![machine("a", "x", false), machine("b", "x", true)], Holder::This),
        ];
        for (what, machines, expected) in table {
            assert_eq!(holder("a", &machines, "x"), expected, "{what}");
        }
    }
}
