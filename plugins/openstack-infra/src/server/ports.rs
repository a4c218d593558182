//! A server's ports: found again by name, made, tagged, and given their trunks.

use capwasm_sdk::{Context, Problem};
use serde_json::{Map, Value, json};

use super::spec::{AddressPair, PortId, ResolvedPort};
use crate::cloud::{Cloud, Failure};
use crate::network::{self, Port};
use crate::port::{self, Trunk};

/// Makes the ports that are not in `known` yet; those come first. What is complete is pushed there, also on the way to a
/// problem.
pub fn ensure(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    wanted: &[ResolvedPort],
    cluster: &str,
    known: &mut Vec<PortId>,
) -> Result<(), Problem> {
    for wanted in wanted.iter().skip(known.len()) {
        let port = match existing(cloud, wanted, cluster)? {
            Some(port) => port,
            None => {
                let port = network::create::<Port>(cloud, body(wanted)).inspect_err(|failure| {
                    cx.out.warning("FailedCreatePort", format!("Failed to create port {}: {failure}", wanted.name));
                })?;
                cx.out.event("SuccessfulCreatePort", format!("Created port {} with id {}", wanted.name, port.id));
                port
            }
        };
        complete(cloud, wanted, &port)?;
        known.push(PortId { id: port.id });
    }
    Ok(())
}

/// The port that an earlier pass made.
fn existing(cloud: &Cloud<'_>, wanted: &ResolvedPort, cluster: &str) -> Result<Option<Port>, Problem> {
    let mut found = ours(cloud, &wanted.name, Some(&wanted.network_id), &wanted.description, cluster)?;
    if found.len() > 1 {
        let message = format!("there are {} ports named {}; delete those that nothing uses", found.len(), wanted.name);
        return Err(Problem::invalid("DuplicatePortNames", message));
    }
    Ok(found.pop())
}

/// Ports of a name that were made for the same machine: another cluster's machine may have the name as well. `cluster` is the
/// Cluster's name, which is all that upstream's description says.
pub fn ours(
    cloud: &Cloud<'_>,
    name: &str,
    network: Option<&str>,
    description: &str,
    cluster: &str,
) -> Result<Vec<Port>, Failure> {
    let upstream = format!("Created by cluster-api-provider-openstack cluster {cluster}");
    let mut found = port::ports_named(cloud, name, network)?;
    found.retain(|port| port.description == description || port.description == upstream);
    Ok(found)
}

fn complete(cloud: &Cloud<'_>, wanted: &ResolvedPort, port: &Port) -> Result<(), Failure> {
    if !wanted.tags.is_empty() && !network::same_tags(&wanted.tags, &port.tags) {
        network::set_tags::<Port>(cloud, &port.id, &wanted.tags)?;
    }
    if wanted.has_trunk() {
        let trunk = match port::trunk_of(cloud, &port.id)? {
            Some(trunk) => trunk,
            None => {
                let fields = json!({"name": wanted.name, "port_id": port.id, "description": wanted.description});
                network::create::<Trunk>(cloud, fields)?
            }
        };
        if !wanted.tags.is_empty() && !network::same_tags(&wanted.tags, &trunk.tags) {
            network::set_tags::<Trunk>(cloud, &trunk.id, &wanted.tags)?;
        }
    }
    Ok(())
}

/// What Neutron makes a port of. What is not said is left to Neutron.
fn body(wanted: &ResolvedPort) -> Value {
    let fields = &wanted.fields;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
    // First: no plugin's own field may replace one of these.
    for value_spec in &fields.value_specs {
        set(&value_spec.key, value_spec.value.clone().into());
    }
    set("name", wanted.name.clone().into());
    set("network_id", wanted.network_id.clone().into());
    set("description", wanted.description.clone().into());
    if !wanted.fixed_ips.is_empty() {
        let addresses: Vec<Value> = wanted.fixed_ips.iter().map(fixed_ip).collect();
        set("fixed_ips", addresses.into());
    }
    if wanted.is_secured() {
        if !wanted.security_groups.is_empty() {
            set("security_groups", json!(wanted.security_groups));
        }
        if !fields.allowed_address_pairs.is_empty() {
            set("allowed_address_pairs", pairs(&fields.allowed_address_pairs));
        }
    }
    let options = [
        ("admin_state_up", fields.admin_state_up.map(Value::from)),
        ("mac_address", fields.mac_address.clone().map(Value::from)),
        ("port_security_enabled", fields.disable_port_security.map(|disable| Value::from(!disable))),
        ("propagate_uplink_status", fields.propagate_uplink_status.map(Value::from)),
        ("binding:host_id", fields.host_id.clone().map(Value::from)),
        ("binding:vnic_type", fields.vnic_type.clone().map(Value::from)),
        ("binding:profile", profile(wanted)),
    ];
    for (name, value) in options {
        if let Some(value) = value {
            set(name, value);
        }
    }
    Value::Object(body)
}

fn fixed_ip(wanted: &super::spec::ResolvedFixedIp) -> Value {
    let mut address = Map::new();
    if let Some(subnet) = &wanted.subnet {
        address.insert("subnet_id".to_owned(), subnet.clone().into());
    }
    if let Some(ip) = &wanted.ip_address {
        address.insert("ip_address".to_owned(), ip.clone().into());
    }
    Value::Object(address)
}

/// None where nothing is wanted: whoever says anything at all needs Neutron's permission for it.
fn profile(wanted: &ResolvedPort) -> Option<Value> {
    let profile = wanted.fields.profile.as_ref()?;
    let mut said = Map::new();
    if profile.ovs_hw_offload == Some(true) {
        said.insert("capabilities".to_owned(), json!(["switchdev"]));
    }
    if profile.trusted_vf == Some(true) {
        said.insert("trusted".to_owned(), true.into());
    }
    (!said.is_empty()).then_some(Value::Object(said))
}

/// `allowed_address_pairs` of Neutron.
fn pairs(wanted: &[AddressPair]) -> Value {
    let pairs = wanted.iter().map(|pair| {
        let mut entry = json!({"ip_address": pair.ip_address});
        if let Some(mac) = &pair.mac_address {
            entry["mac_address"] = mac.clone().into();
        }
        entry
    });
    Value::Array(pairs.collect())
}

/// Replaces the addresses that a port may send from besides its own.
pub fn set_pairs(cloud: &Cloud<'_>, id: &str, wanted: &[AddressPair]) -> Result<(), Failure> {
    network::update::<Port>(cloud, id, json!({"allowed_address_pairs": pairs(wanted)}))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde::Deserialize as _;

    fn port(value: Value) -> ResolvedPort {
        ResolvedPort::deserialize(value).unwrap()
    }

    #[test]
    fn every_option_of_a_port_reaches_neutron_in_its_words() {
        let full = port(json!({
            "name": "m-0", "networkID": "n1", "description": "d", "tags": ["t"], "trunk": true,
            "fixedIPs": [{"subnet": "s1", "ipAddress": "10.0.0.9"}, {"subnet": "s2"}],
            "securityGroups": ["g1"], "adminStateUp": false, "macAddress": "fa:16:3e:00:00:01",
            "allowedAddressPairs": [{"ipAddress": "10.1.0.0/16", "macAddress": "fa:16:3e:00:00:02"}, {"ipAddress": "10.2.0.1"}],
            "hostID": "host1", "vnicType": "direct", "profile": {"ovsHWOffload": true, "trustedVF": true},
            "disablePortSecurity": false, "propagateUplinkStatus": true,
            "valueSpecs": [{"name": "qos", "key": "qos_policy_id", "value": "q1"}, {"name": "evil", "key": "name", "value": "x"}],
        }));
        assert_eq!(
            body(&full),
            json!({
                "name": "m-0", "network_id": "n1", "description": "d",
                "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.9"}, {"subnet_id": "s2"}],
                "security_groups": ["g1"], "admin_state_up": false, "mac_address": "fa:16:3e:00:00:01",
                "allowed_address_pairs": [{"ip_address": "10.1.0.0/16", "mac_address": "fa:16:3e:00:00:02"}, {"ip_address": "10.2.0.1"}],
                "binding:host_id": "host1", "binding:vnic_type": "direct",
                "binding:profile": {"capabilities": ["switchdev"], "trusted": true},
                "port_security_enabled": true, "propagate_uplink_status": true, "qos_policy_id": "q1",
            })
        );
    }

    #[test]
    fn what_is_not_asked_for_is_left_to_neutron() {
        let bare = port(json!({"name": "m-0", "networkID": "n1", "description": "", "profile": {"trustedVF": false}}));
        assert_eq!(body(&bare), json!({"name": "m-0", "network_id": "n1", "description": ""}));
        let open = port(json!({
            "name": "m-0", "networkID": "n1", "description": "", "disablePortSecurity": true,
            "allowedAddressPairs": [{"ipAddress": "10.2.0.1"}], "securityGroups": ["g1"],
        }));
        let open = body(&open);
        assert_eq!(open["port_security_enabled"], false);
        assert_eq!(
            (open.get("security_groups"), open.get("allowed_address_pairs")),
            (None, None),
            "Neutron refuses both"
        );
    }

    #[test]
    fn the_status_says_a_port_as_it_was_read() {
        let written = json!({
            "name": "m-0", "networkID": "n1", "description": "d", "fixedIPs": [{"subnet": "s1"}],
            "allowedAddressPairs": [{"ipAddress": "10.2.0.1"}], "vnicType": "normal",
        });
        assert_eq!(serde_json::to_value(port(written.clone())).unwrap(), written);
    }
}
