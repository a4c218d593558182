//! Neutron: what refers to what has to be there, and may not go before what refers to it.

use serde_json::{Value, json};

use super::store::{Filters, Store};
use super::{Answer, EXTERNAL_NETWORK, PROJECT};

const INTERFACE: &str = "network:router_interface";

impl Store {
    pub(super) fn neutron(&mut self, method: &str, segments: &[&str], body: &Value, filters: &Filters) -> Answer {
        let Some((first, rest)) = segments.split_first() else { return Answer::new(404, Value::Null) };
        if *first == "extensions" {
            let all: Vec<Value> = self.extensions.iter().map(|alias| json!({"alias": alias, "name": alias})).collect();
            return Answer::new(200, json!({"extensions": all}));
        }
        let many = first.replace('-', "_");
        let one = many.strip_suffix('s').unwrap_or(&many).to_owned();
        match (method, rest) {
            ("GET", []) => {
                let items = self.read(&many, None, filters).unwrap_or_default();
                self.listed(items, &many, &format!("/v2.0/{first}"), filters)
            }
            ("GET", [id]) => match self.read(&many, Some(id), filters) {
                Some(items) => Answer::new(200, json!({ one: items[0] })),
                None => missing(&one, id),
            },
            ("POST", []) if body[&many].is_array() => self.create_all(&many, &body[&many]),
            ("POST", []) => match self.create(&many, body[&one].clone()) {
                Ok(id) => Answer::new(201, json!({ one: self.get(&many, &id) })),
                Err(refused) => refused,
            },
            ("PUT", [id]) => match self.update(&many, id, &body[&one]) {
                Ok(()) => Answer::new(200, json!({ one: self.get(&many, id) })),
                Err(refused) => refused,
            },
            ("PUT", [id, "tags"]) => match self.get_mut(&many, id) {
                Some(item) => {
                    item["tags"] = body["tags"].clone();
                    Answer::new(200, body.clone())
                }
                None => missing(&one, id),
            },
            ("DELETE", [id]) => match self.delete(&many, &one, id) {
                Ok(()) => Answer::new(204, Value::Null),
                Err(refused) => refused,
            },
            ("PUT", [id, "add_router_interface"]) => self.add_interface(id, body),
            ("PUT", [id, "remove_router_interface"]) => self.remove_interface(id, body),
            ("PUT", [id, "add_subports"]) => self.sub_ports(id, body, true),
            ("PUT", [id, "remove_subports"]) => self.sub_ports(id, body, false),
            _ => Answer::new(405, Value::Null),
        }
    }

    /// All of them, or none.
    fn create_all(&mut self, many: &str, items: &Value) -> Answer {
        let mut made = Vec::new();
        for item in items.as_array().into_iter().flatten() {
            match self.create(many, item.clone()) {
                Ok(id) => made.push(id),
                Err(refused) => {
                    let one = many.strip_suffix('s').unwrap_or(many);
                    for id in made {
                        let _ = self.delete(many, one, &id);
                    }
                    return refused;
                }
            }
        }
        let made: Vec<Value> = made.iter().filter_map(|id| self.get(many, id).cloned()).collect();
        Answer::new(201, json!({ many: made }))
    }

    fn create(&mut self, many: &str, mut item: Value) -> Result<String, Answer> {
        if self.is_full(many) {
            return Err(Answer::neutron(409, "OverQuota", &format!("Quota exceeded for resources: ['{many}'].")));
        }
        let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
        defaults(&mut item, &json!({"name": "", "description": "", "tags": [], "project_id": PROJECT}));
        match many {
            "networks" => defaults(
                &mut item,
                &json!({"status": "ACTIVE", "router:external": false, "subnets": [], "port_security_enabled": true, "mtu": 1450}),
            ),
            "subnets" => {
                let network = text(&item, "network_id");
                let cidr = text(&item, "cidr");
                if self.all(many).iter().any(|known| known["network_id"] == network && known["cidr"] == cidr) {
                    return Err(Answer::neutron(400, "InvalidInput", "Requested subnet overlaps with another subnet"));
                }
                if self.get("networks", &network).is_none() {
                    return Err(missing("network", &network));
                }
                if cidr.is_empty() {
                    return Err(Answer::neutron(400, "BadRequest", "a cidr is needed"));
                }
                if item["tags"] != json!([]) {
                    return Err(Answer::neutron(400, "HTTPBadRequest", "Attribute 'tags' not allowed in POST"));
                }
                let gateway = address(&cidr, 1);
                defaults(
                    &mut item,
                    &json!({"ip_version": if cidr.contains(':') { 6 } else { 4 }, "gateway_ip": gateway, "dns_nameservers": [], "allocation_pools": []}),
                );
                let id = self.add(many, item);
                if let Some(subnets) =
                    self.get_mut("networks", &network).and_then(|network| network["subnets"].as_array_mut())
                {
                    subnets.push(id.clone().into());
                }
                return Ok(id);
            }
            "ports" => self.prepare_port(&mut item)?,
            "routers" => {
                defaults(&mut item, &json!({"status": "ACTIVE", "external_gateway_info": null}));
                self.fill_gateway(&mut item)?;
            }
            "floatingips" => {
                let network = text(&item, "floating_network_id");
                if self.get("networks", &network).is_none() {
                    return Err(missing("network", &network));
                }
                let number = self.next();
                defaults(
                    &mut item,
                    &json!({"floating_ip_address": format!("172.24.4.{}", 10 + number), "port_id": null, "status": "DOWN"}),
                );
                let wanted = text(&item, "floating_ip_address");
                if self.all(many).iter().any(|known| known["floating_ip_address"] == wanted) {
                    return Err(Answer::neutron(
                        409,
                        "IpAddressAlreadyAllocated",
                        &format!("IP address {wanted} already allocated"),
                    ));
                }
                self.check_association(&item, "")?;
            }
            "security_groups" => {
                let id = self.add(many, item);
                for ethertype in ["IPv4", "IPv6"] {
                    let rule = json!({"security_group_id": id, "direction": "egress", "ethertype": ethertype});
                    self.create("security_group_rules", rule)?;
                }
                return Ok(id);
            }
            "security_group_rules" => return self.create_rule(item),
            "trunks" => {
                let port = text(&item, "port_id");
                if self.get("ports", &port).is_none() {
                    return Err(missing("port", &port));
                }
                if self.all(many).iter().any(|known| known["port_id"] == port) {
                    return Err(Answer::neutron(409, "ParentPortInUse", "Port is already a trunk"));
                }
                defaults(&mut item, &json!({"sub_ports": [], "status": "DOWN"}));
            }
            _ => return Err(Answer::new(404, Value::Null)),
        }
        Ok(self.add(many, item))
    }

    /// A port as Neutron makes it: with addresses, and of groups that there are.
    pub(super) fn prepare_port(&mut self, item: &mut Value) -> Result<(), Answer> {
        let network = item["network_id"].as_str().unwrap_or_default().to_owned();
        if self.get("networks", &network).is_none() {
            return Err(missing("network", &network));
        }
        let groups: Vec<&str> =
            item["security_groups"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if let Some(unknown) = groups.iter().find(|group| self.get("security_groups", group).is_none()) {
            return Err(missing("security_group", unknown));
        }
        if item["port_security_enabled"] == false && !groups.is_empty() {
            return Err(Answer::neutron(
                409,
                "PortSecurityAndIPRequiredForSecurityGroups",
                "Port security must be enabled",
            ));
        }
        let number = self.next();
        defaults(
            item,
            &json!({
                "status": "DOWN", "device_id": "", "device_owner": "", "security_groups": [], "admin_state_up": true,
                "mac_address": format!("fa:16:3e:00:00:{number:02x}"), "allowed_address_pairs": [], "fixed_ips": [],
                "binding:vnic_type": "normal", "port_security_enabled": true,
            }),
        );
        let subnets: Vec<String> = self
            .all("subnets")
            .iter()
            .filter(|subnet| subnet["network_id"] == network)
            .filter_map(|subnet| subnet["id"].as_str().map(str::to_owned))
            .collect();
        let mut fixed = item["fixed_ips"].as_array().cloned().unwrap_or_default();
        if fixed.is_empty() {
            fixed = subnets.first().map(|subnet| json!({"subnet_id": subnet})).into_iter().collect();
        }
        for address_of in &mut fixed {
            let subnet =
                address_of["subnet_id"].as_str().or(subnets.first().map(String::as_str)).unwrap_or_default().to_owned();
            if !subnets.contains(&subnet) {
                return Err(Answer::neutron(
                    400,
                    "InvalidIpForNetwork",
                    &format!("subnet {subnet} is not of network {network}"),
                ));
            }
            let cidr = self
                .get("subnets", &subnet)
                .map(|subnet| subnet["cidr"].as_str().unwrap_or_default().to_owned())
                .unwrap_or_default();
            let wanted = address_of["ip_address"].as_str().map_or_else(|| address(&cidr, 10 + number), str::to_owned);
            let is_taken = self
                .all("ports")
                .iter()
                .flat_map(|port| port["fixed_ips"].as_array().into_iter().flatten())
                .any(|known| known["ip_address"] == wanted && known["subnet_id"] == subnet);
            if is_taken {
                return Err(Answer::neutron(
                    409,
                    "IpAddressAlreadyAllocated",
                    &format!("IP address {wanted} already allocated"),
                ));
            }
            *address_of = json!({"subnet_id": subnet, "ip_address": wanted});
        }
        item["fixed_ips"] = fixed.into();
        Ok(())
    }

    fn create_rule(&mut self, mut item: Value) -> Result<String, Answer> {
        defaults(
            &mut item,
            &json!({
                "ethertype": "IPv4", "protocol": null, "port_range_min": null, "port_range_max": null,
                "remote_group_id": null, "remote_ip_prefix": null,
            }),
        );
        let group = item["security_group_id"].as_str().unwrap_or_default().to_owned();
        for wanted in [Some(group.as_str()), item["remote_group_id"].as_str()].into_iter().flatten() {
            if self.get("security_groups", wanted).is_none() {
                return Err(missing("security_group", wanted));
            }
        }
        let like = |rule: &Value| {
            let fields = [
                "security_group_id",
                "direction",
                "ethertype",
                "protocol",
                "port_range_min",
                "port_range_max",
                "remote_group_id",
                "remote_ip_prefix",
            ];
            fields.map(|name| rule[name].clone())
        };
        if let Some(known) = self.all("security_group_rules").iter().find(|known| like(known) == like(&item)) {
            let message = format!("Security group rule already exists. Rule id is {}.", known["id"]);
            return Err(Answer::neutron(409, "SecurityGroupRuleExists", &message));
        }
        let id = self.add("security_group_rules", item);
        self.refresh_rules(&group);
        Ok(id)
    }

    /// A group shows its rules.
    fn refresh_rules(&mut self, group: &str) {
        let rules: Vec<Value> = self
            .all("security_group_rules")
            .iter()
            .filter(|rule| rule["security_group_id"] == group)
            .cloned()
            .collect();
        if let Some(group) = self.get_mut("security_groups", group) {
            group["security_group_rules"] = rules.into();
        }
    }

    fn fill_gateway(&mut self, item: &mut Value) -> Result<(), Answer> {
        let Some(network) = item["external_gateway_info"]["network_id"].as_str().map(str::to_owned) else {
            return Ok(());
        };
        if self.get("networks", &network).is_none_or(|network| network["router:external"] != true) {
            return Err(Answer::neutron(400, "BadRequest", &format!("Network {network} is not an external network")));
        }
        let number = self.next();
        let mut fixed = item["external_gateway_info"]["external_fixed_ips"].as_array().cloned().unwrap_or_default();
        if fixed.is_empty() {
            fixed.push(json!({"subnet_id": "subnet-external"}));
        }
        for address_of in &mut fixed {
            defaults(
                address_of,
                &json!({"subnet_id": "subnet-external", "ip_address": format!("172.24.4.{}", 10 + number)}),
            );
        }
        item["external_gateway_info"]["external_fixed_ips"] = fixed.into();
        Ok(())
    }

    fn check_association(&self, item: &Value, own: &str) -> Result<(), Answer> {
        let Some(port) = item["port_id"].as_str() else { return Ok(()) };
        if self.get("ports", port).is_none() {
            return Err(missing("port", port));
        }
        if self.all("floatingips").iter().any(|known| known["port_id"] == port && known["id"] != own) {
            return Err(Answer::neutron(409, "FloatingIPPortAlreadyAssociated", "the port has a floating IP already"));
        }
        Ok(())
    }

    fn update(&mut self, many: &str, id: &str, fields: &Value) -> Result<(), Answer> {
        let one = many.strip_suffix('s').unwrap_or(many);
        let Some(known) = self.get(many, id) else { return Err(missing(one, id)) };
        let mut item = known.clone();
        for (name, value) in fields.as_object().into_iter().flatten() {
            item[name] = value.clone();
        }
        match many {
            "floatingips" => self.check_association(&item, id)?,
            "routers" => self.fill_gateway(&mut item)?,
            _ => {}
        }
        if let Some(known) = self.get_mut(many, id) {
            *known = item;
        }
        Ok(())
    }

    fn delete(&mut self, many: &str, one: &str, id: &str) -> Result<(), Answer> {
        if self.get(many, id).is_none() {
            return Err(missing(one, id));
        }
        let in_use = |kind: &str, by: &str| Err(Answer::neutron(409, kind, &format!("{one} {id} is in use by {by}")));
        let mut ports = self.all("ports").iter();
        match many {
            "networks" => {
                if let Some(port) = ports.find(|port| port["network_id"] == id) {
                    return in_use("NetworkInUse", &port["id"].to_string());
                }
                let subnets: Vec<Value> =
                    self.all("subnets").iter().filter(|subnet| subnet["network_id"] == id).cloned().collect();
                for subnet in subnets {
                    self.take("subnets", subnet["id"].as_str().unwrap_or_default());
                }
            }
            "subnets" if ports.any(|port| has_address_of(port, id)) => return in_use("SubnetInUse", "ports"),
            "routers" if ports.any(|port| port["device_id"] == id && port["device_owner"] == INTERFACE) => {
                return in_use("RouterInUse", "interfaces");
            }
            "security_groups" => {
                let holds = |port: &Value| {
                    port["security_groups"].as_array().is_some_and(|groups| groups.iter().any(|group| group == id))
                };
                if ports.any(holds) {
                    return in_use("SecurityGroupInUse", "ports");
                }
                let gone: Vec<Value> = self
                    .all("security_group_rules")
                    .iter()
                    .filter(|rule| rule["security_group_id"] == id || rule["remote_group_id"] == id)
                    .cloned()
                    .collect();
                for rule in gone {
                    self.take("security_group_rules", rule["id"].as_str().unwrap_or_default());
                    self.refresh_rules(rule["security_group_id"].as_str().unwrap_or_default());
                }
            }
            "ports" => {
                if self.get(many, id).is_some_and(|port| port["device_owner"] == INTERFACE) {
                    return in_use("ServicePortInUse", "a router");
                }
                if self.all("trunks").iter().any(|trunk| trunk["port_id"] == id) {
                    return in_use("PortInUseAsTrunkParent", "a trunk");
                }
                self.forget_port(id);
            }
            _ => {}
        }
        let gone = self.take(many, id);
        if many == "security_group_rules" {
            self.refresh_rules(gone.unwrap_or_default()["security_group_id"].as_str().unwrap_or_default());
        }
        Ok(())
    }

    /// Floating IPs let go of a port.
    pub(super) fn forget_port(&mut self, id: &str) {
        let of_port: Vec<String> = self
            .all("floatingips")
            .iter()
            .filter(|known| known["port_id"] == id)
            .filter_map(|known| known["id"].as_str().map(str::to_owned))
            .collect();
        for id in of_port {
            if let Some(floating) = self.get_mut("floatingips", &id) {
                floating["port_id"] = Value::Null;
            }
        }
    }

    fn add_interface(&mut self, router: &str, body: &Value) -> Answer {
        if self.get("routers", router).is_none() {
            return missing("router", router);
        }
        let subnet = body["subnet_id"].as_str().unwrap_or_default().to_owned();
        let Some(found) = self.get("subnets", &subnet).cloned() else { return missing("subnet", &subnet) };
        let gateway = found["gateway_ip"].clone();
        let port = json!({
            "network_id": found["network_id"], "device_id": router, "device_owner": INTERFACE,
            "fixed_ips": [{"subnet_id": subnet, "ip_address": gateway}],
        });
        let is_there = self
            .all("ports")
            .iter()
            .any(|port| port["device_id"] == router && port["fixed_ips"][0]["subnet_id"] == subnet.as_str());
        if is_there {
            return Answer::neutron(400, "BadRequest", "Router already has a port on subnet");
        }
        match self.create("ports", port) {
            Ok(port) => Answer::new(200, json!({"port_id": port, "subnet_id": subnet})),
            Err(refused) => refused,
        }
    }

    fn remove_interface(&mut self, router: &str, body: &Value) -> Answer {
        let is_meant = |port: &&Value| {
            port["device_id"] == router
                && (port["id"] == body["port_id"]
                    || body["port_id"].is_null() && port["fixed_ips"][0]["subnet_id"] == body["subnet_id"])
        };
        let found =
            self.all("ports").iter().find(is_meant).map(|port| port["id"].as_str().unwrap_or_default().to_owned());
        let leads_through = |floating: &Value| {
            let port = floating["port_id"].as_str().and_then(|id| self.get("ports", id));
            port.is_some_and(|port| port["fixed_ips"][0]["subnet_id"] == body["subnet_id"])
        };
        if self.all("floatingips").iter().any(leads_through) {
            return Answer::neutron(409, "RouterInterfaceInUseByFloatingIP", "a floating IP leads through it");
        }
        match found {
            Some(port) => {
                self.take("ports", &port);
                Answer::new(200, json!({"port_id": port}))
            }
            None => Answer::neutron(404, "RouterInterfaceNotFound", "the router has no such interface"),
        }
    }

    fn sub_ports(&mut self, trunk: &str, body: &Value, add: bool) -> Answer {
        let Some(found) = self.get_mut("trunks", trunk) else { return missing("trunk", trunk) };
        let given = body["sub_ports"].as_array().cloned().unwrap_or_default();
        let mut known = found["sub_ports"].as_array().cloned().unwrap_or_default();
        known.retain(|port| !given.iter().any(|other| other["port_id"] == port["port_id"]));
        if add {
            known.extend(given);
        }
        found["sub_ports"] = known.into();
        Answer::new(200, found.clone())
    }

    /// Whether a network leads out.
    pub fn is_external(network: &str) -> bool {
        network == EXTERNAL_NETWORK
    }
}

/// Fills in what is not there.
pub fn defaults(item: &mut Value, fields: &Value) {
    if item.is_null() {
        *item = json!({});
    }
    for (name, value) in fields.as_object().into_iter().flatten() {
        if item.get(name).is_none_or(Value::is_null) {
            item[name] = value.clone();
        }
    }
}

fn has_address_of(port: &Value, subnet: &str) -> bool {
    port["fixed_ips"].as_array().into_iter().flatten().any(|fixed| fixed["subnet_id"] == subnet)
}

fn missing(one: &str, id: &str) -> Answer {
    let name: String = one.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    Answer::neutron(404, &format!("{name}NotFound"), &format!("{name} {id} could not be found"))
}

/// The address of a number in a range that ends between bytes.
fn address(cidr: &str, number: usize) -> String {
    let base = cidr.split('/').next().unwrap_or_default();
    if base.contains(':') {
        return format!("{base}{number:x}");
    }
    let front = base.rsplit_once('.').map_or(base, |(front, _)| front);
    format!("{front}.{number}")
}
