//! Load balancers, listeners, pools and monitors come into being: what may be asked for, and what they have then.

use serde_json::{Map, Value, json};

use super::documents::{self, Part, checked};
use super::{Balancing, begin, refused, settle_later, validation};
use crate::answer::Answer;
use crate::cloud::{Cloud, Scope, State, new_id, now_plain};
use crate::neutron::{self, NetworkKind};
use crate::table::{merge, text};

pub(super) fn check_quota(state: &Balancing, project: &str, part: Part) -> Result<(), Answer> {
    if state.quotas.allows(project, part.quota(), state.table(part).count(project)) {
        return Ok(());
    }
    Err(refused(403, &format!("Quota has been met for resources: {}", part.title())))
}

/// What every part has when it is made.
pub(super) fn fresh(scope: &Scope, given: &Map<String, Value>, defaults: Value) -> Value {
    let mut made = json!({
        "id": new_id(), "name": "", "description": "", "provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE",
        "admin_state_up": true, "project_id": scope.project, "created_at": now_plain(), "updated_at": null, "tags": [],
    });
    merge(&mut made, defaults.as_object().cloned().unwrap_or_default());
    merge(&mut made, given.clone());
    made["project_id"] = json!(scope.project);
    made
}

pub(super) fn balancer(
    cloud: &Cloud,
    state: &mut State,
    scope: &Scope,
    given: &Map<String, Value>,
) -> Result<Value, Answer> {
    checked(Part::Balancer, given, "POST")?;
    let field = |name: &str| given.get(name).and_then(Value::as_str);
    let (subnet, network, port) = (field("vip_subnet_id"), field("vip_network_id"), field("vip_port_id"));
    if subnet.is_none() && network.is_none() && port.is_none() {
        return Err(validation("VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."));
    }
    for (name, value) in [("vip_subnet_id", subnet), ("vip_network_id", network), ("vip_port_id", port)] {
        if let Some(value) = value.filter(|value| !cloud.is_id(value)) {
            let message =
                format!("Invalid input for field/attribute {name}. Value: '{value}'. Value should be UUID format");
            return Err(refused(400, &message));
        }
    }
    let missing = |kind: &str, id: &str| refused(400, &format!("{kind} {id} not found."));
    let networking = &state.networking;
    if let Some(subnet) = subnet {
        networking.find(scope, NetworkKind::Subnet, subnet).map_err(|_| missing("Subnet", subnet))?;
    }
    if let Some(network) = network {
        networking.find(scope, NetworkKind::Network, network).map_err(|_| missing("Network", network))?;
    }
    let provider = field("provider").unwrap_or("amphora");
    if !documents::PROVIDERS.iter().any(|(known, _)| *known == provider) {
        return Err(refused(400, &format!("Provider '{provider}' is not enabled.")));
    }
    if let Some(flavor) = field("flavor_id").filter(|id| state.balancing.flavors.get(id).is_none()) {
        return Err(validation(&format!("Flavor {flavor} not found.")));
    }
    let named = |zone: &str| state.balancing.zones.iter().any(|known| text(known, "name") == zone);
    if let Some(zone) = field("availability_zone").filter(|zone| !named(zone)) {
        return Err(validation(&format!("Availability zone {zone} not found.")));
    }
    check_quota(&state.balancing, &scope.project, Part::Balancer)?;
    let mut made = fresh(
        scope,
        given,
        json!({
            "vip_address": null, "vip_port_id": null, "vip_subnet_id": null, "vip_network_id": null, "vip_sg_ids": [],
            "additional_vips": [], "provider": provider, "flavor_id": null, "vip_qos_policy_id": null,
            "availability_zone": null, "vip_vnic_type": "normal",
        }),
    );
    let id = text(&made, "id").to_owned();
    let port = match port {
        Some(port) => {
            let found = networking.find(scope, NetworkKind::Port, port).map_err(|_| missing("Port", port))?;
            text(found, "id").to_owned()
        }
        None => {
            let network = match subnet.and_then(|subnet| networking.subnets.get(subnet)) {
                Some(subnet) => text(subnet, "network_id").to_owned(),
                None => network.unwrap_or_default().to_owned(),
            };
            let mut wanted = json!({});
            if let Some(subnet) = subnet {
                wanted["subnet_id"] = json!(subnet);
            }
            if let Some(address) = field("vip_address") {
                wanted["ip_address"] = json!(address);
            }
            let mut port = json!({
                "network_id": network, "name": format!("octavia-lb-{id}"), "device_id": format!("lb-{id}"),
                "device_owner": "Octavia", "admin_state_up": false,
            });
            if wanted != json!({}) {
                port["fixed_ips"] = json!([wanted]);
            }
            made["_own_port"] = json!(true);
            let port = port.as_object().cloned().unwrap_or_default();
            let created = neutron::create_port(&mut state.networking, scope, &scope.project, &port);
            created
                .map_err(|_| refused(500, &format!("Provider '{provider}' reports error: BadRequestException: 400")))?
        }
    };
    let port = state.networking.ports.get(&port).cloned().unwrap_or_default();
    made["vip_port_id"] = port["id"].clone();
    made["vip_network_id"] = port["network_id"].clone();
    made["vip_subnet_id"] = port["fixed_ips"][0]["subnet_id"].clone();
    made["vip_address"] = port["fixed_ips"][0]["ip_address"].clone();
    state.balancing.balancers.insert(made.clone());
    settle_later(cloud, &id);
    Ok(state.balancing.view(Part::Balancer, &made, &[]))
}

pub(super) fn listener(
    cloud: &Cloud,
    state: &mut State,
    scope: &Scope,
    given: &Map<String, Value>,
) -> Result<Value, Answer> {
    checked(Part::Listener, given, "POST")?;
    let balancer = given.get("loadbalancer_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let found = state.balancing.find(scope, Part::Balancer, &balancer)?;
    if text(found, "provider") == "ovn" && !matches!(given["protocol"].as_str(), Some("TCP" | "UDP" | "SCTP")) {
        return Err(refused(
            501,
            "Provider 'ovn' does not support a requested option: OVN provider only supports TCP, UDP and SCTP listeners",
        ));
    }
    let same = |listener: &Value| {
        text(listener, "_balancer") == balancer
            && listener["protocol"] == given["protocol"]
            && listener["protocol_port"] == given["protocol_port"]
    };
    if state.balancing.listeners.iter().any(same) {
        let message = format!(
            "Another Listener on this Load Balancer is already using protocol {} and protocol_port {}",
            given["protocol"].as_str().unwrap_or_default(),
            given["protocol_port"]
        );
        return Err(refused(409, &message));
    }
    check_quota(&state.balancing, &scope.project, Part::Listener)?;
    begin(cloud, state, &balancer, &[])?;
    let mut made = fresh(scope, given, documents::listener_defaults());
    if let Some(fields) = made.as_object_mut() {
        fields.remove("loadbalancer_id");
    }
    made["_balancer"] = json!(balancer);
    state.balancing.listeners.insert(made.clone());
    Ok(state.balancing.view(Part::Listener, &made, &[]))
}

pub(super) fn pool(
    cloud: &Cloud,
    state: &mut State,
    scope: &Scope,
    given: &Map<String, Value>,
) -> Result<Value, Answer> {
    checked(Part::Pool, given, "POST")?;
    let field = |name: &str| given.get(name).and_then(Value::as_str);
    let listener = field("listener_id").map(str::to_owned);
    let balancer = match (&listener, field("loadbalancer_id")) {
        (Some(listener), _) => {
            let found = state.balancing.find(scope, Part::Listener, listener)?;
            if !text(found, "default_pool_id").is_empty() {
                return Err(refused(409, "This listener already has a default pool"));
            }
            text(found, "_balancer").to_owned()
        }
        (None, Some(balancer)) => balancer.to_owned(),
        (None, None) => return Err(validation("Must provide at least one of: loadbalancer_id, listener_id")),
    };
    let found = state.balancing.find(scope, Part::Balancer, &balancer)?;
    let algorithm = field("lb_algorithm").unwrap_or_default();
    if (text(found, "provider") == "ovn") != (algorithm == "SOURCE_IP_PORT") {
        let (provider, what) = match text(found, "provider") {
            "ovn" => ("ovn", format!("OVN provider does not support {algorithm} algorithm")),
            other => (other, "SOURCE_IP_PORT is not supported".to_owned()),
        };
        return Err(refused(501, &format!("Provider '{provider}' does not support a requested option: {what}")));
    }
    check_quota(&state.balancing, &scope.project, Part::Pool)?;
    let changes: Vec<(Part, &str, &str)> =
        listener.iter().map(|listener| (Part::Listener, listener.as_str(), "PENDING_UPDATE")).collect();
    begin(cloud, state, &balancer, &changes)?;
    let mut made = fresh(scope, given, documents::pool_defaults());
    if let Some(fields) = made.as_object_mut() {
        fields.remove("loadbalancer_id");
        fields.remove("listener_id");
    }
    made["_balancer"] = json!(balancer);
    let id = text(&made, "id").to_owned();
    state.balancing.pools.insert(made.clone());
    if let Some(listener) = listener.and_then(|listener| state.balancing.listeners.get_mut(&listener)) {
        listener["default_pool_id"] = json!(id);
    }
    Ok(state.balancing.view(Part::Pool, &made, &[]))
}

pub(super) fn monitor(
    cloud: &Cloud,
    state: &mut State,
    scope: &Scope,
    given: &Map<String, Value>,
) -> Result<Value, Answer> {
    checked(Part::Monitor, given, "POST")?;
    let pool = given.get("pool_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let found = state.balancing.find(scope, Part::Pool, &pool)?;
    let balancer = text(found, "_balancer").to_owned();
    if state.balancing.monitors.iter().any(|monitor| text(monitor, "_pool") == pool) {
        return Err(refused(409, "This pool already has a health monitor"));
    }
    check_quota(&state.balancing, &scope.project, Part::Monitor)?;
    begin(cloud, state, &balancer, &[(Part::Pool, &pool, "PENDING_UPDATE")])?;
    let mut made = fresh(scope, given, documents::monitor_defaults());
    if let Some(fields) = made.as_object_mut() {
        fields.remove("pool_id");
        fields.remove("description");
    }
    made["_pool"] = json!(pool);
    state.balancing.monitors.insert(made.clone());
    Ok(state.balancing.view(Part::Monitor, &made, &[]))
}
