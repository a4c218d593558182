//! Ports.

use serde_json::{Map, Value, json};

use super::attributes::{Kind, required};
use super::{Networking, bad_request, fresh, networks, refused, routers, security_groups, trunks};
use crate::answer::Answer;
use crate::cloud::Scope;
use crate::table::{items, merge, text};

const VNIC_TYPES: [&str; 11] = [
    "normal",
    "direct",
    "macvtap",
    "baremetal",
    "direct-physical",
    "virtio-forwarder",
    "smart-nic",
    "vdpa",
    "accelerator-direct",
    "accelerator-direct-physical",
    "remote-managed",
];

/// Makes a port, and returns its id.
pub(crate) fn create(
    state: &mut Networking,
    scope: &Scope,
    project: &str,
    given: &Map<String, Value>,
) -> Result<String, Answer> {
    let network = required(given, "network_id")?.as_str().unwrap_or_default().to_owned();
    check(given)?;
    let found = state.find(scope, Kind::Network, &network)?;
    let secure = match given.get("port_security_enabled") {
        Some(secure) => secure == true,
        None => found["port_security_enabled"] == true,
    };
    let fixed = networks::allocate(state, scope, &network, given.get("fixed_ips"), None)?;
    let groups = match given.get("security_groups").filter(|groups| !groups.is_null()) {
        Some(groups) => groups.clone(),
        None if secure && !project.is_empty() => json!([security_groups::default_of(state, project)]),
        None => json!([]),
    };
    check_groups(state, scope, &groups, secure)?;
    state.check_quota(project, Kind::Port)?;
    let mac = given.get("mac_address").cloned().unwrap_or_else(|| json!(new_mac(state)));
    let mut made = fresh(project);
    let defaults = json!({
        "admin_state_up": true, "status": "DOWN", "device_id": "", "device_owner": "", "propagate_uplink_status": true,
        "qos_policy_id": null, "qos_network_policy_id": null, "binding:vnic_type": "normal", "binding:profile": {},
        "binding:host_id": "", "binding:vif_type": "unbound", "binding:vif_details": {}, "resource_request": null,
        "allowed_address_pairs": [], "extra_dhcp_opts": [], "dns_name": "", "revision_number": 1,
    });
    merge(&mut made, defaults.as_object().cloned().unwrap_or_default());
    merge(&mut made, given.clone());
    made["project_id"] = json!(project);
    made["network_id"] = json!(network);
    made["mac_address"] = mac.clone();
    made["fixed_ips"] = fixed;
    made["security_groups"] = groups;
    made["port_security_enabled"] = json!(secure);
    made["allowed_address_pairs"] = pairs(&made["allowed_address_pairs"], &mac, secure)?;
    let id = text(&made, "id").to_owned();
    state.ports.insert(made);
    Ok(id)
}

fn check(given: &Map<String, Value>) -> Result<(), Answer> {
    if let Some(kind) = given.get("binding:vnic_type").and_then(Value::as_str)
        && !VNIC_TYPES.contains(&kind)
    {
        return Err(bad_request(&format!(
            "Invalid input for binding:vnic_type. Reason: {kind} is not in valid_values."
        )));
    }
    if let Some(mac) = given.get("mac_address").and_then(Value::as_str) {
        let octets: Vec<&str> = mac.split(':').collect();
        let valid =
            octets.len() == 6 && octets.iter().all(|octet| octet.len() == 2 && u8::from_str_radix(octet, 16).is_ok());
        if !valid {
            let message = format!("Invalid input for mac_address. Reason: '{mac}' is not a valid MAC address.");
            return Err(bad_request(&message));
        }
    }
    Ok(())
}

fn check_groups(state: &Networking, scope: &Scope, groups: &Value, secure: bool) -> Result<(), Answer> {
    for group in groups.as_array().into_iter().flatten() {
        if !secure {
            return Err(refused(
                400,
                "PortSecurityAndIPRequiredForSecurityGroups",
                "Port security must be enabled and port must have an IP address in order to use security groups.",
            ));
        }
        state.find(scope, Kind::SecurityGroup, group.as_str().unwrap_or_default())?;
    }
    Ok(())
}

/// Address pairs with the port's own MAC address where none is given.
fn pairs(given: &Value, mac: &Value, secure: bool) -> Result<Value, Answer> {
    let given = given.as_array().cloned().unwrap_or_default();
    if !given.is_empty() && !secure {
        let message = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(refused(409, "AddressPairAndPortSecurityRequired", message));
    }
    let pair = |pair: Value| {
        let own = pair["mac_address"].as_str().map_or_else(|| mac.clone(), |mac| json!(mac));
        json!({ "mac_address": own, "ip_address": pair["ip_address"] })
    };
    Ok(given.into_iter().map(pair).collect())
}

fn new_mac(state: &Networking) -> String {
    loop {
        let [a, b, c]: [u8; 3] = rand::random();
        let mac = format!("fa:16:3e:{a:02x}:{b:02x}:{c:02x}");
        if !state.ports.iter().any(|port| port["mac_address"] == mac.as_str()) {
            return mac;
        }
    }
}

pub(super) fn update(
    state: &mut Networking,
    scope: &Scope,
    id: &str,
    given: &Map<String, Value>,
) -> Result<(), Answer> {
    check(given)?;
    let mut port = state.find(scope, Kind::Port, id)?.clone();
    if let Some(fixed) = given.get("fixed_ips") {
        port["fixed_ips"] = networks::allocate(state, scope, text(&port, "network_id"), Some(fixed), Some(id))?;
    }
    let mut rest = given.clone();
    rest.remove("fixed_ips");
    merge(&mut port, rest);
    let secure = port["port_security_enabled"] == true;
    check_groups(state, scope, &port["security_groups"].clone(), secure)?;
    port["allowed_address_pairs"] = pairs(&port["allowed_address_pairs"], &port["mac_address"], secure)?;
    state.ports.insert(port);
    Ok(())
}

pub(super) fn delete(state: &mut Networking, id: &str) -> Result<(), Answer> {
    let Some(port) = state.ports.get(id) else { return Ok(()) };
    let owner = text(port, "device_owner");
    if matches!(owner, "network:router_interface" | "network:router_gateway" | "network:floatingip") {
        let message = format!("Port {id} cannot be deleted directly via the port API: has device owner {owner}.");
        return Err(refused(409, "ServicePortInUse", &message));
    }
    trunks::check_port(state, id)?;
    release(state, id);
    Ok(())
}

/// Takes a port away, with its floating IPs' associations.
pub(crate) fn release(state: &mut Networking, id: &str) {
    routers::disassociate(state, id);
    state.ports.remove(id);
}

/// Binds a server's port to its host.
pub(crate) fn bind(state: &mut Networking, id: &str, server: &str, zone: &str, host: &str, active: bool) {
    if let Some(port) = state.ports.get_mut(id) {
        port["device_id"] = json!(server);
        port["device_owner"] = json!(format!("compute:{zone}"));
        if active {
            port["status"] = json!("ACTIVE");
            port["binding:host_id"] = json!(host);
            port["binding:vif_type"] = json!("ovs");
        }
    }
    state.touch(Kind::Port, id);
}

/// Unbinds a port whose server is gone.
pub(crate) fn unbind(state: &mut Networking, id: &str) {
    if let Some(port) = state.ports.get_mut(id) {
        port["device_id"] = json!("");
        port["device_owner"] = json!("");
        port["status"] = json!("DOWN");
        port["binding:host_id"] = json!("");
        port["binding:vif_type"] = json!("unbound");
    }
    state.touch(Kind::Port, id);
}

pub(super) fn dns_assignment(port: &Value) -> Value {
    let assignment = |fixed: &Value| {
        let address = text(fixed, "ip_address");
        let host = match text(port, "dns_name") {
            "" => format!("host-{}", address.replace(['.', ':'], "-")),
            name => name.to_owned(),
        };
        json!({ "ip_address": address, "hostname": host, "fqdn": format!("{host}.openstacklocal.") })
    };
    items(port, "fixed_ips").map(assignment).collect()
}
