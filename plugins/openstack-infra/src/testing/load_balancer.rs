//! Octavia: one change of a load balancer at a time.

use serde_json::{Value, json};

use super::Answer;
use super::neutron::defaults;
use super::store::{Filters, Store, Then};

const ACTIVE: &str = "ACTIVE";

impl Store {
    pub(super) fn octavia(&mut self, method: &str, segments: &[&str], body: &Value, filters: &Filters) -> Answer {
        match (method, segments) {
            ("GET", []) => {
                Answer::new(200, json!({"versions": [{"id": "v2.0"}, {"id": "v2.27", "status": "CURRENT"}]}))
            }
            ("GET", ["lbaas", many]) => {
                let items = self.read(many, None, filters).unwrap_or_default();
                self.listed(items, many, &format!("/v2/lbaas/{many}"), filters)
            }
            ("GET", ["lbaas", "pools", pool, "members"]) => {
                let members: Vec<Value> = self.members(pool);
                Answer::new(200, json!({"members": members}))
            }
            ("GET", ["lbaas", many, id]) => {
                let one = many.strip_suffix('s').unwrap_or(many);
                match self.read(many, Some(id), filters) {
                    Some(items) => Answer::new(200, json!({ one: items[0] })),
                    None => missing(one, id),
                }
            }
            ("POST", ["lbaas", many]) => {
                let one = many.strip_suffix('s').unwrap_or(many);
                match self.create_balancing(many, body[one].clone()) {
                    Ok(id) => Answer::new(201, json!({ one: self.get(many, &id) })),
                    Err(refused) => refused,
                }
            }
            ("PUT", ["lbaas", "pools", pool, "members"]) => self.set_members(pool, body),
            ("PUT", ["lbaas", many, id]) => {
                let one = many.strip_suffix('s').unwrap_or(many);
                if self.get(many, id).is_none() {
                    return missing(one, id);
                }
                let of = self.balancer_of(many, id);
                if let Err(refused) = self.change_balancer(&of) {
                    return refused;
                }
                if let Some(item) = self.get_mut(many, id) {
                    for (name, value) in body[one].as_object().into_iter().flatten() {
                        item[name] = value.clone();
                    }
                }
                Answer::new(200, json!({ one: self.get(many, id) }))
            }
            ("DELETE", ["lbaas", "loadbalancers", id]) => {
                let Some(found) = self.get("loadbalancers", id) else { return missing("loadbalancer", id) };
                let status = found["provisioning_status"].as_str().unwrap_or_default().to_owned();
                if status.starts_with("PENDING") {
                    return immutable(id);
                }
                let has_children = self.all("listeners").iter().any(|listener| listener["loadbalancer_id"] == *id);
                if has_children && !filters.iter().any(|(name, value)| name == "cascade" && value == "true") {
                    return Answer::octavia(400, "Load Balancer has children and cascade is not given");
                }
                if let Some(found) = self.get_mut("loadbalancers", id) {
                    found["provisioning_status"] = "PENDING_DELETE".into();
                }
                self.begin("loadbalancers", id, Then::Gone);
                Answer::new(204, Value::Null)
            }
            ("DELETE", ["lbaas", many, id]) => {
                if self.get(many, id).is_none() {
                    return missing(many, id);
                }
                let of = self.balancer_of(many, id);
                if let Err(refused) = self.change_balancer(&of) {
                    return refused;
                }
                self.take(many, id);
                Answer::new(204, Value::Null)
            }
            _ => Answer::new(405, Value::Null),
        }
    }

    fn create_balancing(&mut self, many: &str, mut item: Value) -> Result<String, Answer> {
        if self.is_full(many) {
            return Err(Answer::octavia(403, "Quota has been met for resources: Load Balancer"));
        }
        let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
        if many == "loadbalancers" {
            return self.create_balancer(item);
        }
        let balancer = match many {
            "listeners" => text(&item, "loadbalancer_id"),
            "pools" if item["listener_id"].is_string() => self.balancer_of("listeners", &text(&item, "listener_id")),
            "pools" => text(&item, "loadbalancer_id"),
            "healthmonitors" => self.balancer_of("pools", &text(&item, "pool_id")),
            _ => return Err(Answer::new(404, Value::Null)),
        };
        let is_taken = match many {
            "listeners" => self.all(many).iter().any(|known| {
                known["loadbalancer_id"] == balancer.as_str() && known["protocol_port"] == item["protocol_port"]
            }),
            "pools" => self
                .get("listeners", &text(&item, "listener_id"))
                .is_some_and(|listener| listener["default_pool_id"].is_string()),
            _ => self.all(many).iter().any(|known| known["pool_id"] == item["pool_id"]),
        };
        self.change_balancer(&balancer)?;
        if is_taken {
            self.settle_load_balancer(&balancer, ACTIVE);
            return Err(Answer::octavia(409, "there is one already"));
        }
        item["loadbalancer_id"] = balancer.into();
        item["provisioning_status"] = ACTIVE.into();
        defaults(&mut item, &json!({"name": "", "tags": [], "allowed_cidrs": null}));
        let listener = text(&item, "listener_id");
        let id = self.add(many, item);
        if many == "pools"
            && let Some(listener) = self.get_mut("listeners", &listener)
        {
            listener["default_pool_id"] = id.clone().into();
        }
        Ok(id)
    }

    fn create_balancer(&mut self, mut item: Value) -> Result<String, Answer> {
        let subnet = item["vip_subnet_id"].as_str().and_then(|id| self.get("subnets", id)).cloned();
        let network = subnet.as_ref().map_or(&item["vip_network_id"], |subnet| &subnet["network_id"]).clone();
        if network.as_str().is_none_or(|network| self.get("networks", network).is_none()) {
            return Err(Answer::octavia(400, "A VIP network or subnet that there is is needed"));
        }
        let id = self.next_id("loadbalancers");
        let mut port = json!({"name": format!("octavia-lb-{id}"), "network_id": network, "device_owner": "Octavia", "device_id": format!("lb-{id}")});
        let fixed = [("subnet_id", &item["vip_subnet_id"]), ("ip_address", &item["vip_address"])];
        let fixed: serde_json::Map<String, Value> = fixed
            .iter()
            .filter(|(_, value)| value.is_string())
            .map(|(name, value)| ((*name).to_owned(), (*value).clone()))
            .collect();
        if !fixed.is_empty() {
            port["fixed_ips"] = json!([fixed]);
        }
        self.prepare_port(&mut port)?;
        let address = port["fixed_ips"][0].clone();
        let port = self.add("ports", port);
        item["vip_port_id"] = port.into();
        item["vip_address"] = address["ip_address"].clone();
        item["vip_subnet_id"] = address["subnet_id"].clone();
        item["vip_network_id"] = network;
        item["id"] = id.into();
        item["provisioning_status"] = "PENDING_CREATE".into();
        defaults(&mut item, &json!({"provider": "amphora", "tags": [], "operating_status": "OFFLINE"}));
        let id = self.add("loadbalancers", item);
        self.begin("loadbalancers", &id, Then::Done);
        Ok(id)
    }

    fn set_members(&mut self, pool: &str, body: &Value) -> Answer {
        if self.get("pools", pool).is_none() {
            return missing("pool", pool);
        }
        let of = self.balancer_of("pools", pool);
        if let Err(refused) = self.change_balancer(&of) {
            return refused;
        }
        let before = self.members(pool);
        for member in &before {
            self.take("members", member["id"].as_str().unwrap_or_default());
        }
        for wanted in body["members"].as_array().into_iter().flatten() {
            let mut wanted = wanted.clone();
            let same = |known: &&Value| {
                known["address"] == wanted["address"] && known["protocol_port"] == wanted["protocol_port"]
            };
            if let Some(known) = before.iter().find(same) {
                wanted["id"] = known["id"].clone();
            }
            wanted["pool_id"] = pool.into();
            wanted["provisioning_status"] = "PENDING_UPDATE".into();
            self.add("members", wanted);
        }
        Answer::new(202, Value::Null)
    }

    fn members(&self, pool: &str) -> Vec<Value> {
        self.all("members").iter().filter(|member| member["pool_id"] == pool).cloned().collect()
    }

    fn balancer_of(&self, many: &str, id: &str) -> String {
        let item = self.get(many, id).cloned().unwrap_or_default();
        let of = if many == "loadbalancers" { &item["id"] } else { &item["loadbalancer_id"] };
        of.as_str().unwrap_or_default().to_owned()
    }

    /// Begins a change of a load balancer, if no other is on its way.
    fn change_balancer(&mut self, id: &str) -> Result<(), Answer> {
        match self.get_mut("loadbalancers", id) {
            None => Err(missing("loadbalancer", id)),
            Some(found) if found["provisioning_status"] != ACTIVE => Err(immutable(id)),
            Some(found) => {
                found["provisioning_status"] = "PENDING_UPDATE".into();
                self.begin("loadbalancers", id, Then::Done);
                Ok(())
            }
        }
    }

    pub(super) fn settle_load_balancer(&mut self, id: &str, status: &str) {
        if let Some(found) = self.get_mut("loadbalancers", id) {
            found["provisioning_status"] = status.into();
        }
        let pools: Vec<Value> = self
            .all("pools")
            .iter()
            .filter(|pool| pool["loadbalancer_id"] == id)
            .map(|pool| pool["id"].clone())
            .collect();
        let members: Vec<String> = self
            .all("members")
            .iter()
            .filter(|member| pools.contains(&member["pool_id"]))
            .filter_map(|member| member["id"].as_str().map(str::to_owned))
            .collect();
        for member in members {
            if let Some(member) = self.get_mut("members", &member) {
                member["provisioning_status"] = status.into();
            }
        }
    }

    /// With all that belongs to it.
    pub(super) fn remove_load_balancer(&mut self, id: &str) {
        let Some(gone) = self.take("loadbalancers", id) else { return };
        let pools: Vec<Value> = self
            .all("pools")
            .iter()
            .filter(|pool| pool["loadbalancer_id"] == id)
            .map(|pool| pool["id"].clone())
            .collect();
        for many in ["listeners", "pools", "healthmonitors", "members"] {
            let of_it: Vec<String> = self
                .all(many)
                .iter()
                .filter(|item| item["loadbalancer_id"] == id || pools.contains(&item["pool_id"]))
                .filter_map(|item| item["id"].as_str().map(str::to_owned))
                .collect();
            for id in of_it {
                self.take(many, &id);
            }
        }
        let port = gone["vip_port_id"].as_str().unwrap_or_default();
        self.forget_port(port);
        self.take("ports", port);
    }
}

fn missing(one: &str, id: &str) -> Answer {
    Answer::octavia(404, &format!("{one} {id} not found."))
}

fn immutable(id: &str) -> Answer {
    Answer::octavia(409, &format!("Load Balancer {id} is immutable and cannot be updated."))
}
