//! The OpenStackServer that a machine, or a bastion, is made of.

use capwasm_sdk::{Problem, object};
use serde_json::{Map, Value, json};

/// What a machine's spec leaves to the cluster.
pub struct Defaults<'a> {
    /// `identityRef`, where the spec has none.
    pub identity: &'a Value,
    /// See [`tags`].
    pub tags: Vec<String>,
    /// Empty for Nova's choice.
    pub availability_zone: &'a str,
    /// Name of the Secret with the user data.
    pub user_data: Option<&'a str>,
    /// Id of the security group of ports that name none.
    pub security_group: Option<&'a str>,
    pub cluster: &'a Value,
}

/// Fields that a server has from a machine as they are.
const COPIED: [&str; 13] = [
    "additionalBlockDevices",
    "configDrive",
    "flavor",
    "flavorID",
    "floatingIPPoolRef",
    "image",
    "rootVolume",
    "schedulerHintAdditionalProperties",
    "serverGroup",
    "serverMetadata",
    "sshKeyName",
    "trunk",
    "identityRef",
];

/// The `spec` of the OpenStackServer for a `spec` in the shape of an OpenStackMachine's.
///
/// # Errors
/// Invalid: neither the ports nor the cluster name a network.
pub fn server_spec(spec: &Value, defaults: &Defaults<'_>) -> Result<Value, Problem> {
    let mut server = Map::new();
    for field in COPIED {
        if let Some(value) = spec.get(field) {
            server.insert(field.to_owned(), value.clone());
        }
    }
    let has = |value: &Value| !value.is_null();
    if !server.get("identityRef").is_some_and(has) {
        server.insert("identityRef".to_owned(), defaults.identity.clone());
    }
    // The API wants it, be it empty.
    server.entry("sshKeyName").or_insert_with(|| "".into());
    if !defaults.tags.is_empty() {
        server.insert("tags".to_owned(), json!(defaults.tags));
    }
    if !defaults.availability_zone.is_empty() {
        server.insert("availabilityZone".to_owned(), defaults.availability_zone.into());
    }
    if let Some(name) = defaults.user_data {
        server.insert("userDataRef".to_owned(), json!({"name": name}));
    }
    server.insert("ports".to_owned(), ports(spec, defaults)?);
    Ok(Value::Object(server))
}

/// The spec's own tags and the cluster's, each once.
pub fn tags(spec: &Value, cluster: &Value) -> Vec<String> {
    let of = |pointer: &str, object: &Value| -> Vec<String> {
        let tags = object.pointer(pointer).and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    crate::server::resolve::merged(&of("/tags", spec), &of("/spec/tags", cluster))
}

/// The ports that are asked for, or one; on the cluster's network and subnets where they do not say otherwise, with the given
/// security group where they name none, and all with those of the spec.
fn ports(spec: &Value, defaults: &Defaults<'_>) -> Result<Value, Problem> {
    let mut ports = list(spec, "/ports");
    if ports.is_empty() {
        ports.push(json!({}));
    }
    let network = object::text(defaults.cluster, "/status/network/id");
    let subnets = subnets(defaults.cluster);
    let of_spec = list(spec, "/securityGroups");
    for (index, port) in ports.iter_mut().enumerate() {
        let addresses = list(port, "/fixedIPs");
        if port.get("network").is_none_or(Value::is_null) {
            if !network.is_empty() {
                port["network"] = json!({"id": network});
                if addresses.is_empty() && !subnets.is_empty() {
                    port["fixedIPs"] = Value::Array(subnets.clone());
                }
            } else if addresses.is_empty() {
                let message = format!("port {index} names no network, and the OpenStackCluster has none");
                return Err(Problem::invalid("InvalidMachineSpec", message));
            }
        }
        if port.get("disablePortSecurity").and_then(Value::as_bool) != Some(true) {
            let mut groups = list(port, "/securityGroups");
            if let (true, Some(id)) = (groups.is_empty(), defaults.security_group) {
                groups.push(json!({"id": id}));
            }
            groups.extend(of_spec.iter().cloned());
            if !groups.is_empty() {
                port["securityGroups"] = Value::Array(groups);
            }
        }
    }
    Ok(Value::Array(ports))
}

/// Where a machine gets its addresses: the primary subnet, or all that the cluster names, or those of its network.
fn subnets(cluster: &Value) -> Vec<Value> {
    if let Some(primary) = cluster.pointer("/spec/primarySubnet").filter(|primary| !primary.is_null()) {
        return vec![json!({"subnet": primary})];
    }
    let named = list(cluster, "/spec/subnets");
    if !named.is_empty() {
        return named.into_iter().map(|subnet| json!({"subnet": subnet})).collect();
    }
    let found = list(cluster, "/status/network/subnets");
    found.iter().filter_map(|subnet| subnet.get("id")).map(|id| json!({"subnet": {"id": id}})).collect()
}

fn list(object: &Value, pointer: &str) -> Vec<Value> {
    object.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn cluster(spec: Value) -> Value {
        json!({"spec": spec, "status": {"network": {"id": "n1", "subnets": [{"id": "s1"}, {"id": "s2"}]}}})
    }

    fn of(spec: &Value, cluster: &Value) -> Value {
        let identity = json!({"name": "cloud", "cloudName": "openstack", "type": "Secret"});
        let defaults = Defaults {
            identity: &identity,
            tags: tags(spec, cluster),
            availability_zone: "az1",
            user_data: Some("m-bootstrap"),
            security_group: Some("g-worker"),
            cluster,
        };
        server_spec(spec, &defaults).unwrap()
    }

    #[test]
    fn a_bare_machine_gets_all_that_the_cluster_has() {
        let server = of(&json!({"flavor": "m1", "image": {"filter": {"name": "i"}}}), &cluster(json!({"tags": ["c"]})));
        assert_eq!(
            server,
            json!({
                "flavor": "m1", "image": {"filter": {"name": "i"}}, "sshKeyName": "", "tags": ["c"],
                "identityRef": {"name": "cloud", "cloudName": "openstack", "type": "Secret"},
                "availabilityZone": "az1", "userDataRef": {"name": "m-bootstrap"},
                "ports": [{
                    "network": {"id": "n1"},
                    "fixedIPs": [{"subnet": {"id": "s1"}}, {"subnet": {"id": "s2"}}],
                    "securityGroups": [{"id": "g-worker"}],
                }],
            })
        );
    }

    #[test]
    fn what_a_machine_says_itself_stays() {
        let spec = json!({
            "flavorID": "f1", "image": {"id": "i1"}, "trunk": true, "tags": ["m", "c"], "providerID": "openstack:///x",
            "identityRef": {"name": "own", "cloudName": "x"}, "securityGroups": [{"filter": {"name": "extra"}}],
            "ports": [
                {"nameSuffix": "a", "fixedIPs": [{"ipAddress": "10.0.0.9"}], "securityGroups": [{"id": "g9"}]},
                {"network": {"filter": {"name": "storage"}}, "vnicType": "direct"},
                {"disablePortSecurity": true},
            ],
        });
        let server = of(&spec, &cluster(json!({"tags": ["c", "d"]})));
        assert_eq!(server["tags"], json!(["m", "c", "d"]));
        assert_eq!(server["identityRef"]["name"], "own");
        assert_eq!(server.get("providerID"), None);
        assert_eq!(
            server["ports"],
            json!([
                {"nameSuffix": "a", "network": {"id": "n1"}, "fixedIPs": [{"ipAddress": "10.0.0.9"}], "securityGroups": [{"id": "g9"}, {"filter": {"name": "extra"}}]},
                {"network": {"filter": {"name": "storage"}}, "vnicType": "direct", "securityGroups": [{"id": "g-worker"}, {"filter": {"name": "extra"}}]},
                {"disablePortSecurity": true, "network": {"id": "n1"}, "fixedIPs": [{"subnet": {"id": "s1"}}, {"subnet": {"id": "s2"}}]},
            ])
        );
    }

    #[test]
    fn subnets_are_the_primary_one_or_the_named_ones_before_those_of_the_network() {
        let fixed = |cluster: &Value| of(&json!({}), cluster)["ports"][0]["fixedIPs"].clone();
        let named = json!([{"filter": {"name": "a"}}]);
        assert_eq!(fixed(&cluster(json!({"subnets": named}))), json!([{"subnet": {"filter": {"name": "a"}}}]));
        let primary = json!({"subnets": named, "primarySubnet": {"id": "s2"}});
        assert_eq!(fixed(&cluster(primary)), json!([{"subnet": {"id": "s2"}}]));
    }

    #[test]
    fn a_port_without_any_network_is_refused() {
        let cluster = json!({"spec": {}});
        let defaults = Defaults {
            identity: &Value::Null,
            tags: Vec::new(),
            availability_zone: "",
            user_data: None,
            security_group: None,
            cluster: &cluster,
        };
        assert_eq!(server_spec(&json!({}), &defaults).unwrap_err().reason, "InvalidMachineSpec");
        let inferred = json!({"ports": [{"fixedIPs": [{"subnet": {"id": "s9"}}]}]});
        let server = server_spec(&inferred, &defaults).unwrap();
        assert_eq!(server["ports"][0].get("network"), None, "the subnet tells it");
    }
}
