//! The parts of a load balancer: their names, attributes and defaults.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::{Balancing, ids_of, refused};
use crate::answer::Answer;
use crate::table::text;

pub(super) const PROVIDERS: [(&str, &str); 3] = [
    ("ovn", "a northbound data base that nobody reads"),
    ("amphora", "amphorae that are nowhere"),
    ("octavia", "the same as amphora"),
];

/// What belongs to load balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Balancer,
    Listener,
    Pool,
    Member,
    Monitor,
}

const COMMON: [&str; 11] = [
    "name",
    "description",
    "admin_state_up",
    "tags",
    "project_id",
    "tenant_id",
    "id",
    "provisioning_status",
    "operating_status",
    "created_at",
    "updated_at",
];
const BALANCER: [&str; 13] = [
    "vip_address",
    "vip_port_id",
    "vip_subnet_id",
    "vip_network_id",
    "vip_qos_policy_id",
    "vip_sg_ids",
    "additional_vips",
    "provider",
    "flavor_id",
    "availability_zone",
    "vip_vnic_type",
    "listeners",
    "pools",
];
const LISTENER: [&str; 20] = [
    "protocol",
    "protocol_port",
    "loadbalancer_id",
    "connection_limit",
    "default_pool_id",
    "default_tls_container_ref",
    "sni_container_refs",
    "insert_headers",
    "timeout_client_data",
    "timeout_member_connect",
    "timeout_member_data",
    "timeout_tcp_inspect",
    "allowed_cidrs",
    "client_authentication",
    "client_ca_tls_container_ref",
    "client_crl_container_ref",
    "tls_ciphers",
    "tls_versions",
    "alpn_protocols",
    "l7policies",
];
const POOL: [&str; 10] = [
    "protocol",
    "lb_algorithm",
    "listener_id",
    "loadbalancer_id",
    "session_persistence",
    "tls_enabled",
    "tls_ciphers",
    "tls_versions",
    "alpn_protocols",
    "members",
];
const MEMBER: [&str; 9] = [
    "address",
    "protocol_port",
    "weight",
    "backup",
    "subnet_id",
    "monitor_address",
    "monitor_port",
    "vnic_type",
    "request_sriov",
];
const MONITOR: [&str; 11] = [
    "type",
    "delay",
    "timeout",
    "max_retries",
    "max_retries_down",
    "pool_id",
    "http_method",
    "url_path",
    "expected_codes",
    "http_version",
    "domain_name",
];

impl Part {
    pub const ALL: [Part; 5] = [Part::Balancer, Part::Listener, Part::Member, Part::Pool, Part::Monitor];

    /// The part that a collection in a path is of.
    pub fn of(path: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.plural() == path)
    }

    pub fn singular(self) -> &'static str {
        match self {
            Part::Balancer => "loadbalancer",
            Part::Listener => "listener",
            Part::Pool => "pool",
            Part::Member => "member",
            Part::Monitor => "healthmonitor",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Part::Balancer => "loadbalancers",
            Part::Listener => "listeners",
            Part::Pool => "pools",
            Part::Member => "members",
            Part::Monitor => "healthmonitors",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Part::Balancer => "Load Balancer",
            Part::Listener => "Listener",
            Part::Pool => "Pool",
            Part::Member => "Member",
            Part::Monitor => "Health Monitor",
        }
    }

    pub fn quota(self) -> &'static str {
        match self {
            Part::Balancer => "load_balancer",
            Part::Listener => "listener",
            Part::Pool => "pool",
            Part::Member => "member",
            Part::Monitor => "health_monitor",
        }
    }

    /// Says that there is none of this id.
    pub fn missing(self, id: &str) -> Answer {
        refused(404, &format!("{} {id} not found.", self.title()))
    }

    /// Whether it has an attribute.
    pub fn has(self, name: &str) -> bool {
        let own: &[&str] = match self {
            Part::Balancer => &BALANCER,
            Part::Listener => &LISTENER,
            Part::Pool => &POOL,
            Part::Member => &MEMBER,
            Part::Monitor => &MONITOR,
        };
        own.contains(&name) || COMMON.contains(&name)
    }

    /// Attributes that must be given at creation.
    fn required(self) -> &'static [&'static str] {
        match self {
            Part::Balancer => &[],
            Part::Listener => &["protocol", "protocol_port", "loadbalancer_id"],
            Part::Pool => &["protocol", "lb_algorithm"],
            Part::Member => &["address", "protocol_port"],
            Part::Monitor => &["type", "delay", "timeout", "max_retries", "pool_id"],
        }
    }
}

fn invalid(name: &str, value: &str, reason: &str) -> Answer {
    refused(400, &format!("Invalid input for field/attribute {name}. Value: '{value}'. {reason}"))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether what was given has the right shape.
pub(super) fn checked(part: Part, given: &Map<String, Value>, method: &str) -> Result<(), Answer> {
    if let Some(name) = given.keys().find(|name| !part.has(name)) {
        let argument = if part == Part::Balancer { "load_balancer" } else { part.singular() };
        let message = format!("Unknown attribute for argument {argument}.{}: {name}", part.singular());
        return Err(refused(400, &message));
    }
    if method == "POST"
        && let Some(name) = part.required().iter().find(|name| given.get(**name).is_none_or(Value::is_null))
    {
        return Err(invalid(name, "None", "Mandatory field missing."));
    }
    let one_of = |name: &str, allowed: &[&str]| match given.get(name).filter(|value| !value.is_null()) {
        Some(value) if !value.as_str().is_some_and(|value| allowed.contains(&value)) => {
            Err(invalid(name, &plain(value), &format!("Value should be one of: {}", allowed.join(", "))))
        }
        _ => Ok(()),
    };
    match part {
        Part::Listener => {
            one_of("protocol", &["PROMETHEUS", "TCP", "UDP", "SCTP", "TERMINATED_HTTPS", "HTTP", "HTTPS"])?;
        }
        Part::Pool => {
            one_of("protocol", &["HTTP", "HTTPS", "PROXY", "TCP", "UDP", "SCTP", "PROXYV2"])?;
            one_of("lb_algorithm", &["SOURCE_IP_PORT", "ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP"])?;
        }
        Part::Monitor => {
            one_of("type", &["HTTP", "HTTPS", "PING", "TCP", "TLS-HELLO", "UDP-CONNECT", "SCTP"])?;
        }
        Part::Balancer | Part::Member => {}
    }
    for name in ["protocol_port", "monitor_port"] {
        if let Some(value) = given.get(name).filter(|value| !value.is_null()) {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            match number {
                Some(1..=65535) => {}
                Some(0) => return Err(invalid(name, "0", "Value should be greater or equal to 1")),
                Some(_) => return Err(invalid(name, &plain(value), "Value should be lower or equal to 65535")),
                None => return Err(invalid(name, &plain(value), "Value should be an integer")),
            }
        }
    }
    if let Some(address) = given.get("address").and_then(Value::as_str)
        && address.parse::<IpAddr>().is_err()
    {
        return Err(invalid("address", address, "Value should be IPv4 or IPv6 format"));
    }
    let cidrs = given.get("allowed_cidrs").and_then(Value::as_array).into_iter().flatten();
    if cidrs.filter_map(Value::as_str).any(|cidr| cidr.parse::<IpNet>().is_err()) {
        let all: Vec<String> =
            given["allowed_cidrs"].as_array().into_iter().flatten().map(|cidr| format!("'{}'", plain(cidr))).collect();
        let value = format!("[{}]", all.join(", "));
        return Err(invalid("allowed_cidrs", &value, "Value should be IPv4 or IPv6 CIDR format"));
    }
    Ok(())
}

pub(super) fn listener_defaults() -> Value {
    json!({
        "connection_limit": -1, "default_tls_container_ref": null, "sni_container_refs": [], "default_pool_id": null,
        "l7policies": [], "insert_headers": {}, "timeout_client_data": 50000, "timeout_member_connect": 5000,
        "timeout_member_data": 50000, "timeout_tcp_inspect": 0, "client_ca_tls_container_ref": null,
        "client_authentication": "NONE", "client_crl_container_ref": null, "allowed_cidrs": null, "tls_ciphers": null,
        "tls_versions": null, "alpn_protocols": null, "hsts_max_age": null, "hsts_include_subdomains": false,
        "hsts_preload": false,
    })
}

pub(super) fn pool_defaults() -> Value {
    json!({
        "session_persistence": null, "tls_container_ref": null, "ca_tls_container_ref": null,
        "crl_container_ref": null, "tls_enabled": false, "tls_ciphers": null, "tls_versions": null, "alpn_protocols": null,
    })
}

pub(super) fn member_defaults() -> Value {
    json!({
        "weight": 1, "backup": false, "subnet_id": null, "monitor_address": null, "monitor_port": null,
        "vnic_type": "normal",
    })
}

pub(super) fn monitor_defaults() -> Value {
    json!({
        "max_retries_down": 3, "http_method": null, "url_path": null, "expected_codes": null, "http_version": null,
        "domain_name": null,
    })
}

/// `GET /`: versions 2.0 to 2.30.
pub(super) fn versions(base: &str) -> Value {
    const NEWEST: u32 = 30;
    let version = |minor: u32| {
        let status = if minor == NEWEST { "CURRENT" } else { "SUPPORTED" };
        let links = json!([{ "rel": "self", "href": format!("{base}/load-balancer/v2") }]);
        json!({ "id": format!("v2.{minor}"), "status": status, "updated": "2019-09-11T00:00:00Z", "links": links })
    };
    json!({ "versions": (0..=NEWEST).map(version).collect::<Vec<_>>() })
}

/// `GET /loadbalancers/{id}/status`.
pub(super) fn status_tree(state: &Balancing, balancer: &Value) -> Value {
    let brief = |found: &Value, more: &[&str]| -> Value {
        let names = ["id", "name", "operating_status", "provisioning_status"];
        names.iter().chain(more).map(|name| ((*name).to_owned(), found[*name].clone())).collect()
    };
    let pool = |id: &str| {
        let found = state.pools.get(id)?;
        let view = state.view(Part::Pool, found, &[]);
        let mut tree = brief(found, &[]);
        if let Some(monitor) = state.monitors.get(text(&view, "healthmonitor_id")) {
            tree["health_monitor"] = brief(monitor, &["type"]);
        }
        let members = ids_of(&view, "members").into_iter().filter_map(|member| state.members.get(member));
        tree["members"] = members.map(|member| brief(member, &["address", "protocol_port"])).collect();
        Some(tree)
    };
    let view = state.view(Part::Balancer, balancer, &[]);
    let mut tree = brief(balancer, &[]);
    let listeners = ids_of(&view, "listeners").into_iter().filter_map(|listener| state.listeners.get(listener));
    tree["listeners"] = listeners
        .map(|listener| {
            let mut branch = brief(listener, &[]);
            branch["pools"] = pool(text(listener, "default_pool_id")).into_iter().collect();
            branch
        })
        .collect();
    json!({ "statuses": { "loadbalancer": tree } })
}
