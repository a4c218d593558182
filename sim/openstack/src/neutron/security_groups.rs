//! Security groups and their rules.

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::attributes::{Kind, required};
use super::{Networking, bad_request, fresh, refused};
use crate::answer::Answer;
use crate::cloud::Scope;
use crate::table::{merge, text, texts};

/// Names of protocols, and their numbers where both mean the same rule.
const PROTOCOLS: [&str; 27] = [
    "any",
    "ah",
    "dccp",
    "egp",
    "esp",
    "gre",
    "hopopt",
    "icmp",
    "igmp",
    "ip",
    "ipip",
    "ipv6-encap",
    "ipv6-frag",
    "ipv6-icmp",
    "icmpv6",
    "ipv6-nonxt",
    "ipv6-opts",
    "ipv6-route",
    "ospf",
    "pgm",
    "rsvp",
    "sctp",
    "tcp",
    "udp",
    "udplite",
    "vrrp",
    "0",
];

/// The default group of a project, made when it is first looked for.
pub(super) fn default_of(state: &mut Networking, project: &str) -> String {
    let own = |group: &&Value| text(group, "project_id") == project && text(group, "name") == "default";
    if let Some(found) = state.groups.iter().find(own) {
        return text(found, "id").to_owned();
    }
    let id = insert(state, project, json!({ "name": "default", "description": "Default security group" }));
    for ethertype in ["IPv4", "IPv6"] {
        insert_rule(
            state,
            project,
            json!({ "security_group_id": id, "direction": "ingress", "ethertype": ethertype, "remote_group_id": id, "description": null }),
        );
    }
    id
}

fn insert(state: &mut Networking, project: &str, given: Value) -> String {
    let mut made = fresh(project);
    made["stateful"] = json!(true);
    made["shared"] = json!(false);
    made["revision_number"] = json!(1);
    merge(&mut made, given.as_object().cloned().unwrap_or_default());
    made["project_id"] = json!(project);
    let id = text(&made, "id").to_owned();
    state.groups.insert(made);
    for ethertype in ["IPv6", "IPv4"] {
        insert_rule(
            state,
            project,
            json!({ "security_group_id": id, "direction": "egress", "ethertype": ethertype, "description": null }),
        );
    }
    id
}

fn insert_rule(state: &mut Networking, project: &str, given: Value) -> String {
    let mut made = fresh(project);
    if let Some(fields) = made.as_object_mut() {
        fields.remove("name");
        fields.remove("tags");
    }
    for name in [
        "protocol",
        "port_range_min",
        "port_range_max",
        "remote_ip_prefix",
        "remote_address_group_id",
        "remote_group_id",
        "normalized_cidr",
    ] {
        made[name] = Value::Null;
    }
    made["belongs_to_default_sg"] = json!(false);
    made["_number"] = json!(state.rules.iter().count() + 1);
    merge(&mut made, given.as_object().cloned().unwrap_or_default());
    made["project_id"] = json!(project);
    let id = text(&made, "id").to_owned();
    state.rules.insert(made);
    id
}

pub(super) fn create(state: &mut Networking, project: &str, given: &Map<String, Value>) -> Result<String, Answer> {
    default_of(state, project);
    if given.get("name").and_then(Value::as_str) == Some("default") {
        let message = "Default security group already exists.";
        return Err(refused(409, "SecurityGroupDefaultAlreadyExists", message));
    }
    state.check_quota(project, Kind::SecurityGroup)?;
    Ok(insert(state, project, Value::Object(given.clone())))
}

pub(super) fn delete(state: &mut Networking, scope: &Scope, id: &str) -> Result<(), Answer> {
    let is_default = state.groups.get(id).is_some_and(|group| text(group, "name") == "default");
    if is_default && !scope.admin {
        let message = "Insufficient rights for removing default security group.";
        return Err(refused(409, "SecurityGroupCannotRemoveDefault", message));
    }
    if state.ports.iter().any(|port| texts(port, "security_groups").any(|group| group == id)) {
        return Err(refused(409, "SecurityGroupInUse", &format!("Security Group {id} in use.")));
    }
    state.groups.remove(id);
    // Rules that let this group in go with it, as in Neutron's data base.
    for rule in state.rules.ids(|rule| text(rule, "security_group_id") == id || text(rule, "remote_group_id") == id) {
        state.rules.remove(&rule);
    }
    Ok(())
}

pub(super) fn create_rule(state: &mut Networking, scope: &Scope, given: &Map<String, Value>) -> Result<String, Answer> {
    let group = required(given, "security_group_id")?.as_str().unwrap_or_default().to_owned();
    let direction = required(given, "direction")?.as_str().unwrap_or_default();
    if !matches!(direction, "ingress" | "egress") {
        return Err(bad_request(&format!("Invalid input for direction. Reason: {direction} is not in valid_values.")));
    }
    let mut rule = Value::Object(given.clone());
    let ethertype = match given.get("ethertype").filter(|value| !value.is_null()) {
        None => "IPv4",
        Some(value) => match value.as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
            "ipv4" => "IPv4",
            "ipv6" => "IPv6",
            other => {
                let message = format!(
                    "Security group rule for ethertype '{other}' not supported. Allowed values are IPv4, IPv6."
                );
                return Err(refused(400, "SecurityGroupRuleInvalidEtherType", &message));
            }
        },
    };
    rule["ethertype"] = json!(ethertype);
    rule["protocol"] = protocol(given.get("protocol"))?;
    check_ports(&mut rule)?;
    if let Some(prefix) = given.get("remote_ip_prefix").and_then(Value::as_str) {
        if !given.get("remote_group_id").is_none_or(Value::is_null) {
            let message = "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.";
            return Err(refused(400, "SecurityGroupMultipleRemoteEntites", message));
        }
        let net = prefix.parse::<IpNet>().or_else(|_| prefix.parse().map(|address: std::net::IpAddr| address.into()));
        let net =
            net.map_err(|_| refused(400, "InvalidCIDR", &format!("Invalid CIDR {prefix} given as IP prefix.")))?;
        if net.addr().is_ipv4() != (ethertype == "IPv4") {
            let message = format!("Conflicting value ethertype {ethertype} for CIDR {prefix}");
            return Err(refused(400, "SecurityGroupRuleParameterConflict", &message));
        }
        rule["remote_ip_prefix"] = json!(if prefix.contains('/') { prefix.to_owned() } else { net.to_string() });
        rule["normalized_cidr"] = json!(net.trunc().to_string());
    }
    let found = state.find(scope, Kind::SecurityGroup, &group)?;
    let project = text(found, "project_id").to_owned();
    if let Some(remote) = given.get("remote_group_id").and_then(Value::as_str) {
        state.find(scope, Kind::SecurityGroup, remote)?;
    }
    const SAME: [&str; 9] = [
        "security_group_id",
        "direction",
        "ethertype",
        "protocol",
        "port_range_min",
        "port_range_max",
        "normalized_cidr",
        "remote_group_id",
        "remote_address_group_id",
    ];
    if let Some(other) = state.rules.iter().find(|other| SAME.iter().all(|name| other[*name] == rule[*name])) {
        let message = format!("Security group rule already exists. Rule id is {}.", text(other, "id"));
        return Err(refused(409, "SecurityGroupRuleExists", &message));
    }
    state.check_quota(&project, Kind::SecurityGroupRule)?;
    state.touch(Kind::SecurityGroup, &group);
    Ok(insert_rule(state, &project, rule))
}

fn protocol(given: Option<&Value>) -> Result<Value, Answer> {
    let name = match given {
        None | Some(Value::Null) => return Ok(Value::Null),
        Some(Value::Number(number)) => number.to_string(),
        Some(value) => value.as_str().unwrap_or_default().to_ascii_lowercase(),
    };
    if matches!(name.as_str(), "any" | "0") {
        return Ok(Value::Null);
    }
    if PROTOCOLS.contains(&name.as_str()) || name.parse::<u8>().is_ok() {
        return Ok(json!(name));
    }
    let message = format!(
        "Security group rule protocol {name} not supported. Only protocol values (None, 'any', 'ah', 'dccp', 'egp', 'esp', 'gre', 'hopopt', 'icmp', 'igmp', 'ip', 'ipip', 'ipv6-encap', 'ipv6-frag', 'ipv6-icmp', 'icmpv6', 'ipv6-nonxt', 'ipv6-opts', 'ipv6-route', 'ospf', 'pgm', 'rsvp', 'sctp', 'tcp', 'udp', 'udplite', 'vrrp') and integer representations [0 to 255] are supported."
    );
    Err(refused(400, "SecurityGroupRuleInvalidProtocol", &message))
}

fn check_ports(rule: &mut Value) -> Result<(), Answer> {
    let number = |value: &Value| value.as_i64().or_else(|| value.as_str()?.parse().ok());
    let (least, most) = (number(&rule["port_range_min"]), number(&rule["port_range_max"]));
    if least.is_none() && most.is_none() {
        return Ok(());
    }
    for (name, value) in [("port_range_min", least), ("port_range_max", most)] {
        if value.is_some_and(|value| !(0..=65535).contains(&value)) {
            let message = format!("Invalid input for {name}. Reason: Invalid port: {}", value.unwrap_or_default());
            return Err(bad_request(&message));
        }
        rule[name] = json!(value);
    }
    match text(rule, "protocol") {
        "" => {
            let message = "Must also specify protocol if port range is given.";
            Err(refused(400, "SecurityGroupProtocolRequiredWithPorts", message))
        }
        "tcp" | "udp" | "sctp" | "dccp" | "udplite" | "6" | "17" => {
            if least.is_some() && most.is_some() && least <= most {
                return Ok(());
            }
            let message = "For TCP/UDP protocols, port_range_min must be <= port_range_max";
            Err(refused(400, "SecurityGroupInvalidPortRange", message))
        }
        _ => Ok(()),
    }
}
