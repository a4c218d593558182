//! Networks: names only; all containers share the loopback device.

use serde_json::{Value, json};

use super::journal::Change;
use super::record::NetworkRecord;
use super::{Engine, Refused, State};

/// Networks that are always there.
pub(super) const PREDEFINED: [&str; 3] = ["bridge", "host", "none"];

fn find<'a>(state: &'a State, name: &str) -> Result<&'a NetworkRecord, Refused> {
    let by_id = || state.networks.values().find(|network| !name.is_empty() && network.id.starts_with(name));
    state.networks.get(name).or_else(by_id).ok_or_else(|| Refused::new(404, format!("network {name} not found")))
}

impl Engine {
    /// The name of a network that exists.
    pub(super) fn network_name(&self, name: &str) -> Result<String, Refused> {
        let name = if matches!(name, "" | "default") { "bridge" } else { name };
        find(&self.state.lock(), name).map(|network| network.name.clone())
    }

    /// `GET /networks/{id}`.
    pub(super) fn inspect_network(&self, name: &str) -> Result<Value, Refused> {
        let state = self.state.lock();
        find(&state, name).map(|network| document(&state, network))
    }

    /// `GET /networks`.
    pub(super) fn list_networks(&self, filters: &super::documents::Filters) -> Value {
        let state = self.state.lock();
        let wanted = |network: &&NetworkRecord| {
            filters.contains_part("name", &network.name)
                && filters.contains_part("id", &network.id)
                && filters.labels(&network.config["Labels"])
        };
        Value::Array(state.networks.values().filter(wanted).map(|network| document(&state, network)).collect())
    }

    /// `POST /networks/create`.
    pub(super) async fn create_network(&self, config: Value) -> Result<Value, Refused> {
        let name = config["Name"]
            .as_str()
            .filter(|name| !name.is_empty())
            .ok_or_else(|| Refused::new(400, "network name cannot be empty"))?;
        let network = NetworkRecord::new(name, config.clone());
        {
            let mut state = self.state.lock();
            if state.networks.contains_key(name) {
                return Err(Refused::new(409, format!("network with name {name} already exists")));
            }
            state.networks.insert(name.to_owned(), network.clone());
        }
        let answer = json!({ "Id": network.id, "Warning": "" });
        match self.journal.commit(vec![network.change()]).await {
            Ok(()) => Ok(answer),
            Err(error) => {
                self.state.lock().networks.remove(&network.name);
                Err(error.into())
            }
        }
    }

    /// `DELETE /networks/{id}`.
    pub(super) async fn remove_network(&self, name: &str) -> Result<(), Refused> {
        let network = {
            let mut state = self.state.lock();
            let network = find(&state, name)?.clone();
            if PREDEFINED.contains(&network.name.as_str()) {
                return Err(Refused::new(
                    403,
                    format!("{} is a pre-defined network and cannot be removed", network.name),
                ));
            }
            let used = state.containers.values().any(|container| container.record.lock().network == network.name);
            if used {
                let message = format!(
                    "error while removing network: network {} id {} has active endpoints",
                    network.name, network.id
                );
                return Err(Refused::new(403, message));
            }
            state.networks.remove(&network.name);
            network
        };
        self.journal.keep(vec![Change::Remove(format!("network/{}", network.name))]).await.map_err(Refused::from)
    }
}

fn document(state: &State, network: &NetworkRecord) -> Value {
    let mut containers = json!({});
    for container in state.containers.values() {
        let record = container.record.lock();
        if record.network == network.name && record.running {
            let address6 =
                if network.has_ipv6() { format!("{}/112", record.address.to_ipv6_mapped()) } else { String::new() };
            containers[&record.id] = json!({
                "Name": record.name, "EndpointID": record.endpoint_id, "MacAddress": "", "IPv4Address": format!("{}/16", record.address), "IPv6Address": address6,
            });
        }
    }
    let range = state.addresses.range();
    let mut subnets = vec![json!({ "Subnet": format!("127.{range}.0.0/16"), "Gateway": format!("127.{range}.0.1") })];
    if network.has_ipv6() {
        subnets.push(
            json!({ "Subnet": format!("::ffff:127.{range}.0.0/112"), "Gateway": format!("::ffff:127.{range}.0.1") }),
        );
    }
    let field = |name: &str, default: Value| match &network.config[name] {
        Value::Null => default,
        given => given.clone(),
    };
    json!({
        "Name": network.name, "Id": network.id, "Created": network.created.to_string(), "Scope": "local",
        "Driver": field("Driver", json!(if network.name == "bridge" { "bridge" } else { network.name.as_str() })),
        "EnableIPv6": network.has_ipv6(), "Internal": false, "Attachable": field("Attachable", json!(false)), "Ingress": false, "ConfigOnly": false,
        "ConfigFrom": { "Network": "" },
        "IPAM": { "Driver": "default", "Options": null, "Config": subnets },
        "Containers": containers, "Options": field("Options", json!({})), "Labels": field("Labels", json!({})),
    })
}
