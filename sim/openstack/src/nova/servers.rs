//! Servers as they are shown, listed and taken away.

use regex::Regex;
use serde_json::{Value, json};

use super::{Call, actions, build, invalid, links, refused};
use crate::answer::{Answer, Outcome};
use crate::cloud::{State, now};
use crate::neutron::floating_address;
use crate::table::{items, text, texts};

pub(super) fn route(call: &Call<'_>, state: &mut State, method: &str, rest: &[&str]) -> Outcome {
    match (method, rest) {
        ("GET", []) => list(call, state, false),
        ("GET", ["detail"]) => list(call, state, true),
        ("POST", []) => build::create(call, state),
        ("GET", [id]) => Ok(Answer::json(200, &json!({ "server": view(call, state, find(call, state, id)?) }))),
        ("PUT", [id]) => {
            find(call, state, id)?;
            let body = call.request.json().unwrap_or_default();
            if let Some(server) = state.compute.servers.get_mut(id) {
                for name in ["name", "description"] {
                    if let Some(value) = body["server"].get(name) {
                        server[name] = value.clone();
                    }
                }
                server["updated"] = json!(now());
            }
            Ok(Answer::json(200, &json!({ "server": view(call, state, find(call, state, id)?) })))
        }
        ("DELETE", [id]) => {
            find(call, state, id)?;
            build::delete(call.cloud, state, id);
            Ok(Answer::empty(204))
        }
        ("POST", [id, "action"]) => {
            find(call, state, id)?;
            actions::act(call, state, id)
        }
        ("GET", [id, "os-interface"]) => {
            find(call, state, id)?;
            Ok(Answer::json(200, &json!({ "interfaceAttachments": interfaces(state, id) })))
        }
        ("GET", [id, "metadata"]) => {
            let found = find(call, state, id)?;
            Ok(Answer::json(200, &json!({ "metadata": found["metadata"] })))
        }
        ("POST" | "PUT", [id, "metadata"]) => {
            find(call, state, id)?;
            let body = call.request.json().unwrap_or_default();
            let given = body["metadata"].as_object().cloned();
            let given = given.ok_or_else(|| invalid("Invalid input for field/attribute metadata."))?;
            let server = state.compute.servers.get_mut(id).ok_or_else(|| missing(id))?;
            if method == "PUT" {
                server["metadata"] = json!({});
            }
            crate::table::merge(&mut server["metadata"], given);
            Ok(Answer::json(200, &json!({ "metadata": server["metadata"] })))
        }
        ("GET", [id, "tags"]) if call.minor >= 26 => {
            let found = find(call, state, id)?;
            Ok(Answer::json(200, &json!({ "tags": found["tags"] })))
        }
        ("PUT", [id, "tags"]) if call.minor >= 26 => {
            find(call, state, id)?;
            let body = call.request.json().unwrap_or_default();
            let server = state.compute.servers.get_mut(id).ok_or_else(|| missing(id))?;
            server["tags"] = body["tags"].clone();
            Ok(Answer::json(200, &json!({ "tags": server["tags"] })))
        }
        ("GET", [id, "os-volume_attachments"]) => {
            let found = find(call, state, id)?;
            let attachment = |volume: &Value| json!({ "id": volume["id"], "volumeId": volume["id"], "serverId": id, "device": volume["device"] });
            let all: Vec<Value> = items(found, "_volumes").map(attachment).collect();
            Ok(Answer::json(200, &json!({ "volumeAttachments": all })))
        }
        ("POST", [id, "os-volume_attachments"]) => {
            find(call, state, id)?;
            let body = call.request.json().unwrap_or_default();
            let volume = text(&body["volumeAttachment"], "volumeId");
            Ok(Answer::json(200, &json!({ "volumeAttachment": build::attach(call, state, id, volume)? })))
        }
        ("DELETE", [id, "os-volume_attachments", volume]) => {
            find(call, state, id)?;
            build::detach(state, id, volume)?;
            Ok(Answer::empty(202))
        }
        _ => Err(Answer::page(404, "The resource could not be found.")),
    }
}

fn missing(id: &str) -> Answer {
    refused(404, &format!("Instance {id} could not be found."))
}

fn find<'a>(call: &Call<'_>, state: &'a State, id: &str) -> Result<&'a Value, Answer> {
    state.compute.servers.get(id).filter(|server| call.scope.owns(server)).ok_or_else(|| missing(id))
}

/// Ports of a server, in the order in which it got them.
pub(super) fn ports(state: &State, server: &str) -> Vec<Value> {
    let server_ports: Vec<&str> =
        state.compute.servers.get(server).map(|server| texts(server, "_ports").collect()).unwrap_or_default();
    let ports = server_ports.iter().filter_map(|port| state.networking.ports.get(port));
    ports.filter(|port| text(port, "device_id") == server).cloned().collect()
}

fn interfaces(state: &State, server: &str) -> Vec<Value> {
    let attachment = |port: Value| {
        let fixed = |fixed: &Value| json!({ "subnet_id": fixed["subnet_id"], "ip_address": fixed["ip_address"] });
        let fixed: Vec<Value> = items(&port, "fixed_ips").map(fixed).collect();
        json!({
            "net_id": port["network_id"], "port_id": port["id"], "mac_addr": port["mac_address"],
            "port_state": port["status"], "fixed_ips": fixed,
        })
    };
    ports(state, server).into_iter().map(attachment).collect()
}

/// A server's addresses by the name of the network.
fn addresses(state: &State, server: &Value) -> Value {
    let mut found = json!({});
    if !matches!(text(server, "status"), "ACTIVE" | "SHUTOFF" | "REBOOT" | "HARD_REBOOT") {
        return found;
    }
    for port in ports(state, text(server, "id")) {
        let network = state.networking.networks.get(text(&port, "network_id"));
        let name = network.map(|network| text(network, "name").to_owned()).unwrap_or_default();
        let mut entry = |address: &str, kind: &str| {
            let version = if address.contains(':') { 6 } else { 4 };
            let entry = json!({
                "version": version, "addr": address, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": port["mac_address"],
            });
            match found[&name].as_array_mut() {
                Some(all) => all.push(entry),
                None => found[&name] = json!([entry]),
            }
        };
        for fixed in items(&port, "fixed_ips") {
            let address = text(fixed, "ip_address");
            entry(address, "fixed");
            if let Some(floating) = floating_address(&state.networking, text(&port, "id"), address) {
                entry(floating, "floating");
            }
        }
    }
    found
}

/// A server as it is shown.
fn view(call: &Call<'_>, state: &State, server: &Value) -> Value {
    let (id, minor) = (text(server, "id"), call.minor);
    let flavor = &server["_flavor"];
    let is_active = text(server, "status") == "ACTIVE" || text(server, "status") == "BUILD";
    let image = match server["_image"].as_str() {
        Some(image) => {
            let link = json!([{ "rel": "bookmark", "href": format!("{}/compute/images/{image}", call.cloud.base) }]);
            json!({ "id": image, "links": link })
        }
        None => json!(""),
    };
    let attached = |volume: &Value| {
        let mut shown = json!({ "id": volume["id"] });
        if minor >= 3 {
            shown["delete_on_termination"] = volume["delete_on_termination"].clone();
        }
        shown
    };
    let mut shown = json!({
        "id": id, "name": server["name"], "status": server["status"], "tenant_id": server["project_id"],
        "user_id": server["user_id"], "metadata": server["metadata"], "hostId": server["_host_id"], "image": image,
        "flavor": if minor >= 47 {
            json!({
                "vcpus": flavor["vcpus"], "ram": flavor["ram"], "disk": flavor["disk"],
                "ephemeral": flavor["OS-FLV-EXT-DATA:ephemeral"], "swap": flavor["swap"], "original_name": flavor["name"],
                "extra_specs": {},
            })
        } else {
            let bookmark = format!("{}/compute/flavors/{}", call.cloud.base, text(flavor, "id"));
            json!({ "id": flavor["id"], "links": [{ "rel": "bookmark", "href": bookmark }] })
        },
        "created": server["created"], "updated": server["updated"], "addresses": addresses(state, server),
        "accessIPv4": "", "accessIPv6": "", "links": links(call.cloud, "servers", id), "OS-DCF:diskConfig": "MANUAL",
        "OS-EXT-AZ:availability_zone": server["_zone"],
        "config_drive": if server["_config_drive"] == true { "True" } else { "" },
        "key_name": server["_key_name"], "OS-SRV-USG:launched_at": server["_launched"], "OS-SRV-USG:terminated_at": null,
        "OS-EXT-STS:task_state": server["_task"], "OS-EXT-STS:vm_state": server["_vm_state"],
        "OS-EXT-STS:power_state": server["_power"],
        "os-extended-volumes:volumes_attached": items(server, "_volumes").map(attached).collect::<Vec<_>>(),
    });
    if is_active {
        shown["progress"] = json!(0);
    }
    if !server["_fault"].is_null() && text(server, "status") == "ERROR" {
        shown["fault"] = server["_fault"].clone();
    }
    let groups = security_groups(state, id);
    if !groups.is_empty() {
        shown["security_groups"] = json!(groups);
    }
    let mut since = |minimum: u32, name: &str, value: Value| {
        if minor >= minimum {
            shown[name] = value;
        }
    };
    since(9, "locked", json!(false));
    since(19, "description", server["description"].clone());
    since(26, "tags", server["tags"].clone());
    since(63, "trusted_image_certificates", Value::Null);
    since(71, "server_groups", json!(server["_group"].as_str().into_iter().collect::<Vec<_>>()));
    since(73, "locked_reason", Value::Null);
    since(90, "OS-EXT-SRV-ATTR:hostname", server["name"].clone());
    since(96, "pinned_availability_zone", server["_pinned"].clone());
    since(100, "scheduler_hints", server["_hints"].clone());
    if call.scope.admin {
        let host = server["_host"].clone();
        shown["OS-EXT-SRV-ATTR:host"] = host.clone();
        shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] = host;
        shown["OS-EXT-SRV-ATTR:instance_name"] = json!(format!("instance-{}", id.get(..8).unwrap_or_default()));
        if minor >= 3 {
            shown["OS-EXT-SRV-ATTR:hostname"] = server["name"].clone();
            shown["OS-EXT-SRV-ATTR:user_data"] = server["_user_data"].clone();
            shown["OS-EXT-SRV-ATTR:root_device_name"] = json!("/dev/vda");
            shown["OS-EXT-SRV-ATTR:launch_index"] = json!(0);
        }
    }
    shown
}

/// Names of the security groups of a server's ports.
fn security_groups(state: &State, server: &str) -> Vec<Value> {
    let mut names: Vec<String> = Vec::new();
    for port in ports(state, server) {
        for group in texts(&port, "security_groups") {
            let name = state.networking.groups.get(group).map(|group| text(group, "name").to_owned());
            names.extend(name.filter(|name| !names.contains(name)));
        }
    }
    names.into_iter().map(|name| json!({ "name": name })).collect()
}

fn list(call: &Call<'_>, state: &State, detail: bool) -> Outcome {
    let request = call.request;
    let limit = super::limit(request)?;
    let name = match request.value("name") {
        Some(pattern) => Some(Regex::new(pattern).map_err(|_| invalid("Invalid filter field: name."))?),
        None => None,
    };
    let everywhere = call.scope.admin && request.value("all_tenants").is_some_and(|all| all != "0" && all != "False");
    let wanted_tags = |name: &str| -> Vec<String> {
        request.values(name).iter().flat_map(|value| value.split(',')).map(str::to_owned).collect()
    };
    let (all_tags, any_tags) = (wanted_tags("tags"), wanted_tags("tags-any"));
    let has = |server: &Value, tag: &String| texts(server, "tags").any(|own| own == tag);
    let mut found: Vec<&Value> = state
        .compute
        .servers
        .iter()
        .rev()
        .filter(|server| everywhere || text(server, "project_id") == call.scope.project)
        .filter(|server| name.as_ref().is_none_or(|name| name.is_match(text(server, "name"))))
        .filter(|server| {
            request.value("status").is_none_or(|status| text(server, "status").eq_ignore_ascii_case(status))
        })
        .filter(|server| request.value("uuid").is_none_or(|id| text(server, "id") == id))
        .filter(|server| all_tags.iter().all(|tag| has(server, tag)))
        .filter(|server| any_tags.is_empty() || any_tags.iter().any(|tag| has(server, tag)))
        .collect();
    if let Some(marker) = request.value("marker") {
        let place = found.iter().position(|server| text(server, "id") == marker);
        let place = place.ok_or_else(|| invalid(&format!("marker [{marker}] not found")))?;
        found.drain(..=place);
    }
    let mut body = json!({});
    if let Some(limit) = limit.filter(|limit| *limit > 0 && found.len() > *limit) {
        found.truncate(limit);
        let last = found.last().map(|server| text(server, "id")).unwrap_or_default();
        let kept = request.query.iter().filter(|(name, _)| name != "marker");
        let query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).append_pair("marker", last).finish();
        let href = format!("{}{}?{query}", call.cloud.base, request.path);
        body["servers_links"] = json!([{ "rel": "next", "href": href }]);
    }
    let shown = |server: &&Value| {
        if detail {
            return view(call, state, server);
        }
        let id = text(server, "id");
        json!({ "id": id, "name": server["name"], "links": links(call.cloud, "servers", id) })
    };
    body["servers"] = found.iter().map(shown).collect();
    Ok(Answer::json(200, &body))
}
