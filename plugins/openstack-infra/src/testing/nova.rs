//! Nova: servers from ports, and what becomes of them.

use serde_json::{Value, json};

use super::Answer;
use super::neutron::defaults;
use super::store::{Filters, Store, Then};

impl Store {
    pub(super) fn nova(
        &mut self,
        method: &str,
        segments: &[&str],
        body: &Value,
        filters: &Filters,
        version: Option<&str>,
    ) -> Answer {
        let minor = version.and_then(|version| version.rsplit('.').next()?.parse::<u32>().ok()).unwrap_or(1);
        match (method, segments) {
            ("GET", []) => {
                Answer::new(200, json!({"version": {"id": "v2.1", "version": "2.96", "min_version": "2.1"}}))
            }
            ("GET", ["os-availability-zone"]) => Answer::new(200, json!({"availabilityZoneInfo": self.all("zones")})),
            ("GET", ["os-server-groups"]) => Answer::new(200, json!({"server_groups": self.all("server_groups")})),
            ("GET", [many @ ("flavors" | "servers"), "detail"] | [many @ ("flavors" | "servers")]) => {
                let items = self.read(many, None, filters).unwrap_or_default();
                let items = if segments.len() == 1 {
                    items.iter().map(|item| json!({"id": item["id"], "name": item["name"]})).collect()
                } else {
                    items
                };
                self.listed(items, many, &format!("/v2.1/{}", segments.join("/")), filters)
            }
            ("GET", ["flavors", id]) => match self.get("flavors", id) {
                Some(flavor) => Answer::new(200, json!({"flavor": flavor})),
                None => Answer::nova(404, "itemNotFound", "Flavor could not be found."),
            },
            ("GET", ["servers", id]) => match self.read("servers", Some(id), filters) {
                Some(items) => Answer::new(200, json!({"server": items[0]})),
                None => Answer::nova(404, "itemNotFound", "Instance could not be found."),
            },
            ("POST", ["servers"]) => match self.create_server(body, minor) {
                Ok(id) => Answer::new(202, json!({"server": {"id": id, "adminPass": "x", "links": []}})),
                Err(refused) => refused,
            },
            ("DELETE", ["servers", id]) => match self.get_mut("servers", id) {
                Some(server) => {
                    server["OS-EXT-STS:task_state"] = "deleting".into();
                    self.begin("servers", id, Then::Gone);
                    Answer::new(204, Value::Null)
                }
                None => Answer::nova(404, "itemNotFound", "Instance could not be found."),
            },
            _ => Answer::new(405, Value::Null),
        }
    }

    fn create_server(&mut self, body: &Value, minor: u32) -> Result<String, Answer> {
        let bad = |message: &str| Err(Answer::nova(400, "badRequest", message));
        if self.is_full("servers") {
            return Err(Answer::nova(
                403,
                "forbidden",
                "Quota exceeded for instances: Requested 1, but already used all",
            ));
        }
        let mut server = body["server"].clone();
        if !server["tags"].is_null() && minor < 52 {
            return bad("Additional properties are not allowed ('tags' was unexpected)");
        }
        if server["flavorRef"].as_str().is_none_or(|flavor| self.get("flavors", flavor).is_none()) {
            return bad("Flavor could not be found.");
        }
        if server["imageRef"].as_str().is_some_and(|image| !image.is_empty() && self.get("images", image).is_none()) {
            return bad("Can not find requested image");
        }
        if let Some(group) = body["os:scheduler_hints"]["group"].as_str()
            && self.get("server_groups", group).is_none()
        {
            return bad("Instance group could not be found.");
        }
        let ports: Vec<String> = server["networks"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|network| network["port"].as_str().map(str::to_owned))
            .collect();
        if ports.is_empty() {
            return bad("Ports are needed.");
        }
        for port in &ports {
            match self.get("ports", port) {
                None => return bad(&format!("Port {port} could not be found.")),
                Some(port) if port["device_id"] != "" => {
                    return Err(Answer::nova(
                        409,
                        "conflictingRequest",
                        &format!("Port {} is still in use.", port["id"]),
                    ));
                }
                Some(_) => {}
            }
        }
        let volumes = volumes_of(&server);
        for volume in &volumes {
            if self.get("volumes", volume).is_none_or(|volume| volume["status"] != "available") {
                return bad(&format!("Block Device Mapping is Invalid: volume {volume} is not available"));
            }
        }
        let (zone, hints) = (server["availability_zone"].clone(), &body["os:scheduler_hints"]);
        defaults(
            &mut server,
            &json!({
                "status": "BUILD", "addresses": {}, "OS-EXT-STS:task_state": "spawning", "metadata": {},
                "created": "2023-11-14T22:13:20Z", "OS-EXT-AZ:availability_zone": zone,
                "scheduler_hints": hints,
            }),
        );
        let id = self.add("servers", server);
        for port in &ports {
            if let Some(port) = self.get_mut("ports", port) {
                port["device_id"] = id.clone().into();
                port["device_owner"] = "compute:nova".into();
                port["status"] = "ACTIVE".into();
            }
        }
        for volume in &volumes {
            if let Some(volume) = self.get_mut("volumes", volume) {
                volume["status"] = "in-use".into();
            }
        }
        self.begin("servers", &id, Then::Done);
        Ok(id)
    }

    /// What a wait led to.
    pub(super) fn finish(&mut self, collection: &str, id: &str, then: Then) {
        match (collection, then) {
            ("servers", Then::Done) => {
                let addresses = self.addresses(id);
                let status = self.outcome.unwrap_or("ACTIVE");
                if let Some(server) = self.get_mut("servers", id) {
                    server["status"] = status.into();
                    server["OS-EXT-STS:task_state"] = Value::Null;
                    server["addresses"] = addresses;
                    if status == "ERROR" {
                        server["fault"] = json!({"code": 500, "message": "No valid host was found."});
                    }
                }
            }
            ("servers", Then::Gone) => self.remove_server(id),
            ("volumes", Then::Done) => {
                let status = if self.outcome == Some("ERROR") { "error" } else { "available" };
                if let Some(volume) = self.get_mut("volumes", id) {
                    volume["status"] = status.into();
                }
            }
            ("loadbalancers", Then::Done) => {
                let status = self.outcome.unwrap_or("ACTIVE");
                self.settle_load_balancer(id, status);
            }
            ("loadbalancers", Then::Gone) => self.remove_load_balancer(id),
            (_, Then::Gone) => {
                self.take(collection, id);
            }
            (_, Then::Done) => {}
        }
    }

    /// By the network's name, as servers show them.
    fn addresses(&self, server: &str) -> Value {
        let mut addresses = json!({});
        for port in self.all("ports").iter().filter(|port| port["device_id"] == server) {
            let network = port["network_id"].as_str().and_then(|id| self.get("networks", id));
            let name =
                network.map(|network| network["name"].as_str().unwrap_or_default().to_owned()).unwrap_or_default();
            let mut of_network = addresses[&name].as_array().cloned().unwrap_or_default();
            for fixed in port["fixed_ips"].as_array().into_iter().flatten() {
                let version =
                    if fixed["ip_address"].as_str().is_some_and(|address| address.contains(':')) { 6 } else { 4 };
                of_network.push(json!({"addr": fixed["ip_address"], "version": version, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": port["mac_address"]}));
            }
            for floating in self.all("floatingips").iter().filter(|floating| floating["port_id"] == port["id"]) {
                of_network.push(
                    json!({"addr": floating["floating_ip_address"], "version": 4, "OS-EXT-IPS:type": "floating"}),
                );
            }
            addresses[name] = of_network.into();
        }
        addresses
    }

    fn remove_server(&mut self, id: &str) {
        let Some(server) = self.take("servers", id) else { return };
        let ports: Vec<String> = self
            .all("ports")
            .iter()
            .filter(|port| port["device_id"] == id)
            .filter_map(|port| port["id"].as_str().map(str::to_owned))
            .collect();
        for port in ports {
            if let Some(port) = self.get_mut("ports", &port) {
                port["device_id"] = "".into();
                port["device_owner"] = "".into();
                port["status"] = "DOWN".into();
            }
        }
        for mapping in server["block_device_mapping_v2"].as_array().into_iter().flatten() {
            let Some(volume) = mapping["uuid"].as_str().filter(|_| mapping["source_type"] == "volume") else {
                continue;
            };
            if mapping["delete_on_termination"] == true {
                self.take("volumes", volume);
            } else if let Some(volume) = self.get_mut("volumes", volume) {
                volume["status"] = "available".into();
            }
        }
    }
}

fn volumes_of(server: &Value) -> Vec<String> {
    let mappings = server["block_device_mapping_v2"].as_array().into_iter().flatten();
    let volumes = mappings.filter(|mapping| mapping["source_type"] == "volume");
    volumes.filter_map(|mapping| mapping["uuid"].as_str().map(str::to_owned)).collect()
}
