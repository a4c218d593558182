//! Routers, their interfaces, and floating IPs.

use serde_json::{Map, Value, json};

use super::attributes::{Kind, required};
use super::{Networking, bad_request, forbidden, fresh, invalid_input, not_found, ports, refused};
use crate::answer::{Answer, Outcome};
use crate::cloud::Scope;
use crate::request::Request;
use crate::table::{items, merge, text};

const INTERFACE: &str = "network:router_interface";
const GATEWAY: &str = "network:router_gateway";
const FLOATING: &str = "network:floatingip";

/// Who owns ports that no project sees.
fn nobody(scope: &Scope) -> Scope {
    Scope { admin: true, project: String::new(), ..scope.clone() }
}

pub(super) fn create(
    state: &mut Networking,
    scope: &Scope,
    project: &str,
    given: &Map<String, Value>,
) -> Result<String, Answer> {
    state.check_quota(project, Kind::Router)?;
    let mut made = fresh(project);
    let defaults = json!({
        "admin_state_up": true, "status": "ACTIVE", "external_gateway_info": null, "availability_zones": [],
        "availability_zone_hints": [], "routes": [], "flavor_id": null, "revision_number": 1,
    });
    merge(&mut made, defaults.as_object().cloned().unwrap_or_default());
    let mut rest = given.clone();
    let gateway = rest.remove("external_gateway_info").unwrap_or_default();
    merge(&mut made, rest);
    made["project_id"] = json!(project);
    let id = text(&made, "id").to_owned();
    state.routers.insert(made);
    if !gateway.is_null()
        && let Err(refusal) = set_gateway(state, scope, &id, &gateway, "create")
    {
        state.routers.remove(&id);
        return Err(refusal);
    }
    Ok(id)
}

pub(super) fn update(
    state: &mut Networking,
    scope: &Scope,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), Answer> {
    let mut rest = given.clone();
    if let Some(gateway) = rest.remove("external_gateway_info") {
        set_gateway(state, scope, id, &gateway, "update")?;
    }
    if let Some(found) = state.routers.get_mut(id) {
        merge(found, rest);
    }
    Ok(())
}

fn set_gateway(state: &mut Networking, scope: &Scope, id: &str, wanted: &Value, act: &str) -> Result<(), Answer> {
    let fixed = wanted.get("external_fixed_ips");
    if fixed.is_some() && !scope.admin {
        return Err(forbidden(act, Kind::Router, Some("external_gateway_info:external_fixed_ips")));
    }
    let network = text(wanted, "network_id").to_owned();
    let old = state.ports.ids(|port| text(port, "device_id") == id && text(port, "device_owner") == GATEWAY);
    if !network.is_empty() {
        let found = state.find(scope, Kind::Network, &network)?;
        if found["router:external"] != true {
            let message = format!("Bad router request: Network {network} is not an external network.");
            return Err(refused(400, "BadRequest", &message));
        }
        let same = old.iter().any(|port| state.ports.get(port).is_some_and(|port| text(port, "network_id") == network));
        if same && fixed.is_none() {
            return Ok(());
        }
    }
    let served = state.floating.iter().any(|floating| text(floating, "router_id") == id);
    if served && network.is_empty() {
        let message = format!(
            "Gateway cannot be updated for router {id}, since a gateway to external network is required by one or more floating IPs."
        );
        return Err(refused(409, "RouterExternalGatewayInUseByFloatingIp", &message));
    }
    for port in old {
        state.ports.remove(&port);
    }
    let mut info = Value::Null;
    if !network.is_empty() {
        let mut port =
            json!({ "network_id": network, "device_id": id, "device_owner": GATEWAY, "port_security_enabled": false });
        if let Some(fixed) = fixed {
            port["fixed_ips"] = fixed.clone();
        }
        let port = service_port(state, scope, &port)?;
        let fixed = state.ports.get(&port).map(|port| port["fixed_ips"].clone()).unwrap_or_default();
        info = json!({ "network_id": network, "external_fixed_ips": fixed, "enable_snat": true });
    }
    if let Some(router) = state.routers.get_mut(id) {
        router["external_gateway_info"] = info;
    }
    Ok(())
}

/// A port of the service's own.
fn service_port(state: &mut Networking, scope: &Scope, given: &Value) -> Result<String, Answer> {
    let given = given.as_object().cloned().unwrap_or_default();
    let id = ports::create(state, &nobody(scope), "", &given)?;
    if let Some(port) = state.ports.get_mut(&id) {
        port["status"] = json!("ACTIVE");
        port["binding:host_id"] = json!("l3-host");
        port["binding:vif_type"] = json!("ovs");
    }
    Ok(id)
}

fn interfaces(state: &Networking, router: &str) -> Vec<String> {
    state.ports.ids(|port| text(port, "device_id") == router && text(port, "device_owner") == INTERFACE)
}

pub(super) fn delete(state: &mut Networking, id: &str) -> Result<(), Answer> {
    let attached = interfaces(state, id);
    if !attached.is_empty() {
        let message = format!("Router {id} has ports still attached: {}", attached.join(", "));
        return Err(refused(409, "RouterInUse", &message));
    }
    for port in state.ports.ids(|port| text(port, "device_id") == id && text(port, "device_owner") == GATEWAY) {
        state.ports.remove(&port);
    }
    state.routers.remove(id);
    Ok(())
}

/// `PUT /routers/{id}/{action}`.
pub(super) fn act(state: &mut Networking, scope: &Scope, request: &Request, id: &str, action: &str) -> Outcome {
    if action == "tags" {
        return super::tags(state, scope, request, Kind::Router, id, &[]);
    }
    if !matches!(action, "add_router_interface" | "remove_router_interface") {
        return Err(not_found());
    }
    let router = state.find(scope, Kind::Router, id)?;
    if !scope.owns(router) {
        return Err(Kind::Router.missing(id));
    }
    let project = text(router, "project_id").to_owned();
    let body = request.json().ok_or_else(|| bad_request("Body contains invalid data"))?;
    let request = |message: &str| refused(400, "BadRequest", &format!("Bad router request: {message}"));
    let (subnet, port) = (body["subnet_id"].as_str(), body["port_id"].as_str());
    if subnet.is_none() && port.is_none() {
        return Err(request("Either subnet_id or port_id must be specified."));
    }
    let port = if action == "add_router_interface" {
        match (subnet, port) {
            (Some(_), Some(_)) => return Err(request("Cannot specify both subnet-id and port-id.")),
            (None, Some(port)) => attach(state, scope, id, port)?,
            _ => join(state, scope, id, &project, subnet.unwrap_or_default())?,
        }
    } else {
        leave(state, id, subnet, port)?
    };
    let (network, subnets) =
        (port["network_id"].clone(), items(&port, "fixed_ips").map(|fixed| fixed["subnet_id"].clone()));
    let subnets: Vec<Value> = subnets.collect();
    state.touch(Kind::Router, id);
    Ok(Answer::json(
        200,
        &json!({
            "id": id, "project_id": project, "port_id": port["id"], "network_id": network,
            "subnet_id": subnets.first(), "subnet_ids": subnets,
        }),
    ))
}

/// Gives a router an interface in a subnet: the port.
fn join(state: &mut Networking, scope: &Scope, id: &str, project: &str, subnet: &str) -> Result<Value, Answer> {
    let found = state.find(scope, Kind::Subnet, subnet)?.clone();
    let request = |message: String| refused(400, "BadRequest", &format!("Bad router request: {message}"));
    let Some(gateway) = found["gateway_ip"].as_str() else {
        return Err(request("Subnet for router interface must have a gateway IP.".to_owned()));
    };
    let has = |port: &String| {
        let port = state.ports.get(port);
        port.is_some_and(|port| items(port, "fixed_ips").any(|fixed| text(fixed, "subnet_id") == subnet))
    };
    if interfaces(state, id).iter().any(has) {
        return Err(request(format!("Router already has a port on subnet {subnet}.")));
    }
    let port = json!({
        "network_id": found["network_id"], "fixed_ips": [{ "subnet_id": subnet, "ip_address": gateway }], "device_id": id,
        "device_owner": INTERFACE, "port_security_enabled": false,
    });
    let port = service_port(state, scope, &port)?;
    if let Some(port) = state.ports.get_mut(&port) {
        port["project_id"] = json!(project);
    }
    Ok(state.ports.get(&port).cloned().unwrap_or_default())
}

/// Gives a router an interface by a port that is there.
fn attach(state: &mut Networking, scope: &Scope, id: &str, port: &str) -> Result<Value, Answer> {
    let found = state.find(scope, Kind::Port, port)?;
    let device = text(found, "device_id");
    if !device.is_empty() {
        let message = format!(
            "Unable to complete operation on port {port} for network {}. Port already has an attached device {device}.",
            text(found, "network_id")
        );
        return Err(refused(409, "PortInUse", &message));
    }
    if let Some(found) = state.ports.get_mut(port) {
        found["device_id"] = json!(id);
        found["device_owner"] = json!(INTERFACE);
        found["status"] = json!("ACTIVE");
    }
    Ok(state.ports.get(port).cloned().unwrap_or_default())
}

/// Takes an interface away: the port that it was.
fn leave(state: &mut Networking, id: &str, subnet: Option<&str>, port: Option<&str>) -> Result<Value, Answer> {
    let fits = |name: &String| {
        let Some(found) = state.ports.get(name) else { return false };
        match (port, subnet) {
            (Some(port), _) => port == name,
            (_, Some(subnet)) => items(found, "fixed_ips").any(|fixed| text(fixed, "subnet_id") == subnet),
            _ => false,
        }
    };
    let Some(found) = interfaces(state, id).into_iter().find(fits) else {
        return Err(match (port, subnet) {
            (Some(port), _) => {
                let message = format!("Router {id} does not have an interface with id {port}");
                refused(404, "RouterInterfaceNotFound", &message)
            }
            (_, subnet) => {
                let message = format!("Router {id} has no interface on subnet {}", subnet.unwrap_or_default());
                refused(404, "RouterInterfaceNotFoundForSubnet", &message)
            }
        });
    };
    let interface = state.ports.get(&found).cloned().unwrap_or_default();
    let subnets: Vec<&str> = items(&interface, "fixed_ips").map(|fixed| text(fixed, "subnet_id")).collect();
    let needed = state.floating.iter().filter(|floating| text(floating, "router_id") == id).any(|floating| {
        let port = state.ports.get(text(floating, "port_id"));
        port.is_some_and(|port| items(port, "fixed_ips").any(|fixed| subnets.contains(&text(fixed, "subnet_id"))))
    });
    if needed {
        let message = format!(
            "Router interface for subnet {} on router {id} cannot be deleted, as it is required by one or more floating IPs.",
            subnets.first().unwrap_or(&"")
        );
        return Err(refused(409, "RouterInterfaceInUseByFloatingIP", &message));
    }
    state.ports.remove(&found);
    Ok(interface)
}

/// Makes a floating IP: what is answered.
pub(super) fn create_floating(
    state: &mut Networking,
    scope: &Scope,
    project: &str,
    given: &Map<String, Value>,
) -> Result<Value, Answer> {
    let network = required(given, "floating_network_id")?.as_str().unwrap_or_default().to_owned();
    let found = state.find(scope, Kind::Network, &network)?;
    if found["router:external"] != true {
        let message = format!("Bad floatingip request: Network {network} is not a valid external network.");
        return Err(refused(400, "BadRequest", &message));
    }
    state.check_quota(project, Kind::FloatingIp)?;
    let mut made = fresh(project);
    if let Some(fields) = made.as_object_mut() {
        fields.remove("name");
    }
    let defaults = json!({
        "router_id": null, "port_id": null, "fixed_ip_address": null, "status": "DOWN", "qos_policy_id": null,
        "dns_domain": "", "dns_name": "", "port_forwardings": [], "floating_network_id": network,
    });
    merge(&mut made, defaults.as_object().cloned().unwrap_or_default());
    for name in ["description", "dns_domain", "dns_name", "qos_policy_id"] {
        if let Some(value) = given.get(name) {
            made[name] = value.clone();
        }
    }
    let id = text(&made, "id").to_owned();
    let mut wanted = json!({});
    for (from, to) in [("subnet_id", "subnet_id"), ("floating_ip_address", "ip_address")] {
        if let Some(value) = given.get(from).filter(|value| !value.is_null()) {
            wanted[to] = value.clone();
        }
    }
    let mut port = json!({
        "network_id": network, "device_id": id, "device_owner": FLOATING, "port_security_enabled": false,
    });
    if wanted != json!({}) {
        port["fixed_ips"] = json!([wanted]);
    }
    let port = service_port(state, scope, &port)?;
    let fixed = state.ports.get(&port).map(|port| port["fixed_ips"][0]["ip_address"].clone());
    made["floating_ip_address"] = json!(fixed);
    made["_port"] = json!(port);
    state.floating.insert(made);
    if given.get("port_id").is_some_and(|port| !port.is_null())
        && let Err(refusal) = associate(state, scope, &id, given)
    {
        delete_floating(state, &id);
        return Err(refusal);
    }
    Ok(answered(state, scope, &id))
}

/// The floating IP as the call that changes it answers it: not yet in its new state.
fn answered(state: &mut Networking, scope: &Scope, id: &str) -> Value {
    let before = state.floating.get(id).cloned().unwrap_or_default();
    let status = if text(&before, "port_id").is_empty() { "DOWN" } else { "ACTIVE" };
    if let Some(found) = state.floating.get_mut(id) {
        found["status"] = json!(status);
    }
    state.view(scope, Kind::FloatingIp, &before, &[])
}

pub(super) fn update_floating(
    state: &mut Networking,
    scope: &Scope,
    id: &str,
    given: &Map<String, Value>,
) -> Result<Value, Answer> {
    if let Some(port) = given.get("port_id") {
        if port.is_null() {
            release(state, id);
        } else {
            associate(state, scope, id, given)?;
        }
    } else if !given.contains_key("description") {
        // Neutron takes an update without a port for a disassociation.
        release(state, id);
    }
    if let (Some(found), Some(description)) = (state.floating.get_mut(id), given.get("description")) {
        found["description"] = description.clone();
    }
    state.touch(Kind::FloatingIp, id);
    Ok(answered(state, scope, id))
}

fn associate(state: &mut Networking, scope: &Scope, id: &str, given: &Map<String, Value>) -> Result<(), Answer> {
    let port = given.get("port_id").and_then(Value::as_str).unwrap_or_default();
    let floating = state.floating.get(id).cloned().unwrap_or_default();
    let (network, address) = (text(&floating, "floating_network_id"), text(&floating, "floating_ip_address"));
    let found = state.find(scope, Kind::Port, port)?;
    let wanted = given.get("fixed_ip_address").and_then(Value::as_str);
    let fits = |fixed: &&Value| match wanted {
        Some(wanted) => text(fixed, "ip_address") == wanted,
        None => !text(fixed, "ip_address").contains(':'),
    };
    let Some(fixed) = items(found, "fixed_ips").find(fits).cloned() else {
        let message = format!("Port {port} does not have fixed ip {}.", wanted.unwrap_or("of IPv4"));
        return Err(invalid_input(&message));
    };
    let (subnet, ip) = (text(&fixed, "subnet_id"), text(&fixed, "ip_address"));
    let taken = state.floating.iter().any(|other| {
        text(other, "id") != id
            && text(other, "port_id") == port
            && text(other, "fixed_ip_address") == ip
            && text(other, "floating_network_id") == network
    });
    if taken {
        let message = format!(
            "Cannot associate floating IP {address} ({id}) with port {port} using fixed IP {ip}, as that fixed IP already has a floating IP on external network {network}."
        );
        return Err(refused(409, "FloatingIPPortAlreadyAssociated", &message));
    }
    let router = state.routers.iter().find(|router| {
        let router_id = text(router, "id");
        text(&router["external_gateway_info"], "network_id") == network
            && interfaces(state, router_id)
                .iter()
                .filter_map(|port| state.ports.get(port))
                .any(|port| items(port, "fixed_ips").any(|fixed| text(fixed, "subnet_id") == subnet))
    });
    let Some(router) = router.map(|router| text(router, "id").to_owned()) else {
        let message = format!(
            "External network {network} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {port} with a Floating IP."
        );
        return Err(refused(404, "ExternalGatewayForFloatingIPNotFound", &message));
    };
    if let Some(found) = state.floating.get_mut(id) {
        found["port_id"] = json!(port);
        found["fixed_ip_address"] = json!(ip);
        found["router_id"] = json!(router);
    }
    Ok(())
}

fn release(state: &mut Networking, id: &str) {
    if let Some(found) = state.floating.get_mut(id) {
        for name in ["port_id", "fixed_ip_address", "router_id"] {
            found[name] = Value::Null;
        }
        found["status"] = json!("DOWN");
    }
}

/// Frees the floating IPs of a port.
pub(super) fn disassociate(state: &mut Networking, port: &str) {
    for id in state.floating.ids(|floating| text(floating, "port_id") == port) {
        release(state, &id);
    }
}

pub(super) fn delete_floating(state: &mut Networking, id: &str) {
    if let Some(found) = state.floating.remove(id) {
        state.ports.remove(text(&found, "_port"));
    }
}

pub(super) fn port_details(state: &Networking, floating: &Value) -> Value {
    let Some(port) = state.ports.get(text(floating, "port_id")) else { return Value::Null };
    let names = ["name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner"];
    names.iter().map(|name| ((*name).to_owned(), port[name].clone())).collect()
}

/// The floating IP of a port's address.
pub(crate) fn floating_address<'a>(state: &'a Networking, port: &str, fixed: &str) -> Option<&'a str> {
    let of = |floating: &&Value| text(floating, "port_id") == port && text(floating, "fixed_ip_address") == fixed;
    state.floating.iter().find(of).map(|floating| text(floating, "floating_ip_address"))
}
