//! How servers come and go: what may be asked for, `BUILD`, then `ACTIVE` or `ERROR`, and their end.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::python::repr;
use super::{Call, host, invalid, is_zone, links, refused};
use crate::FAILING_ZONE;
use crate::answer::{Answer, Outcome};
use crate::cinder;
use crate::cloud::{Cloud, State, new_id, now, now_exactly, plain_id};
use crate::guests::Boot;
use crate::neutron::{self, NetworkKind};
use crate::nodes;
use crate::table::{items, text};

/// Attributes that a server may be created with, and since which microversion.
const ATTRIBUTES: [(&str, u32); 22] = [
    ("name", 1),
    ("imageRef", 1),
    ("flavorRef", 1),
    ("networks", 1),
    ("metadata", 1),
    ("key_name", 1),
    ("user_data", 1),
    ("config_drive", 1),
    ("availability_zone", 1),
    ("security_groups", 1),
    ("block_device_mapping", 1),
    ("block_device_mapping_v2", 1),
    ("adminPass", 1),
    ("accessIPv4", 1),
    ("accessIPv6", 1),
    ("personality", 1),
    ("min_count", 1),
    ("max_count", 1),
    ("OS-DCF:diskConfig", 1),
    ("description", 19),
    ("tags", 52),
    ("hostname", 90),
];
const MAX_USER_DATA: usize = 65535;

/// `POST /servers`.
pub(super) fn create(call: &Call<'_>, state: &mut State) -> Outcome {
    let body = call.request.json().ok_or_else(|| invalid("Malformed request body"))?;
    let given = body["server"]
        .as_object()
        .ok_or_else(|| invalid("Invalid input for field/attribute . Value: {}. 'server' is a required property"))?;
    check(call, given)?;
    let flavor = given["flavorRef"].as_str().unwrap_or_default();
    let flavor = state.compute.flavors.get(flavor).cloned();
    let flavor =
        flavor.ok_or_else(|| invalid(&format!("Flavor {} could not be found.", text(&body["server"], "flavorRef"))))?;
    let image = given.get("imageRef").and_then(Value::as_str).filter(|image| !image.is_empty());
    if let Some(image) = image {
        let found = state.images.find(call.scope, image).ok_or_else(|| invalid("Can not find requested image"))?;
        if text(found, "status") != "active" {
            return Err(invalid("Image is not active."));
        }
    }
    let key = given.get("key_name").and_then(Value::as_str);
    if let Some(key) = key
        && state.compute.keypairs.get(&format!("{}/{key}", call.scope.user)).is_none()
    {
        return Err(invalid("Invalid key_name provided."));
    }
    let zone = given.get("availability_zone").and_then(Value::as_str);
    let zone = zone.map(|zone| zone.split(':').next().unwrap_or_default());
    if zone.is_some_and(|zone| !is_zone(call.cloud, zone)) {
        return Err(invalid("The requested availability zone is not available"));
    }
    let hints = ["os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"].iter().find_map(|name| body.get(*name));
    let group = hints.and_then(|hints| hints["group"].as_str());
    if let Some(group) = group
        && state.compute.groups.get(group).is_none()
    {
        return Err(invalid(&format!("Instance group {group} could not be found.")));
    }
    let used = state.compute.servers.count(&call.scope.project);
    if !state.compute.quotas.allows(&call.scope.project, "instances", used) {
        let limit = state.compute.quotas.limit(&call.scope.project, "instances");
        let message =
            format!("Quota exceeded for instances: Requested 1, but already used {used} of {limit} instances");
        return Err(refused(403, &message));
    }
    let devices = devices(call, state, &body["server"], image)?;
    let networks = networks(call, state, &body["server"])?;

    let id = new_id();
    let zone = zone.map_or_else(|| spread(call.cloud, state, group), str::to_owned);
    let ports = plug(call, state, &id, &zone, networks)?;
    let volumes = storage(call, state, &id, devices)?;
    let now = now();
    let optional =
        |name: &str, other: Value| given.get(name).filter(|value| !value.is_null()).cloned().unwrap_or(other);
    state.compute.servers.insert(json!({
        "id": id, "name": given["name"], "project_id": call.scope.project, "user_id": call.scope.user, "status": "BUILD",
        "created": now, "updated": now, "metadata": optional("metadata", json!({})), "tags": optional("tags", json!([])),
        "description": optional("description", Value::Null), "_flavor": flavor, "_image": image, "_key_name": key,
        "_config_drive": given.get("config_drive").is_some_and(|drive| drive == true || drive == "true" || drive == "True"),
        "_zone": zone, "_pinned": given.get("availability_zone"), "_hints": hints.cloned().unwrap_or_else(|| json!({})),
        "_group": group, "_user_data": given.get("user_data"), "_ports": ports, "_volumes": volumes, "_host_id": "",
        "_host": null, "_task": "scheduling", "_vm_state": "building", "_power": 0, "_launched": null, "_fault": null,
    }));
    if let Some(group) = group.and_then(|group| state.compute.groups.get_mut(group))
        && let Some(members) = group["members"].as_array_mut()
    {
        members.push(json!(id));
    }
    let built = id.clone();
    call.cloud.later(|delays| delays.server, &id, move |cloud, state| finish(cloud, state, &built));
    let links = links(call.cloud, "servers", &id);
    let location = text(&links[0], "href").to_owned();
    let answer = json!({ "server": {
        "id": id, "links": links, "OS-DCF:diskConfig": "MANUAL", "security_groups": [{ "name": "default" }],
        "adminPass": plain_id().get(..12),
    } });
    Ok(Answer::json(202, &answer).with("location", location))
}

/// Whether what was given has the right shape.
fn check(call: &Call<'_>, given: &Map<String, Value>) -> Result<(), Answer> {
    let known = |name: &str| ATTRIBUTES.iter().any(|(known, since)| *known == name && call.minor >= *since);
    if let Some(name) = given.keys().find(|name| !known(name)) {
        let value = repr(&Value::Object(given.clone()));
        return Err(invalid(&format!(
            "Invalid input for field/attribute server. Value: {value}. Additional properties are not allowed ('{name}' was unexpected)"
        )));
    }
    for name in ["name", "flavorRef"] {
        match given.get(name).and_then(Value::as_str) {
            None => {
                let value = repr(&Value::Object(given.clone()));
                return Err(invalid(&format!(
                    "Invalid input for field/attribute server. Value: {value}. '{name}' is a required property"
                )));
            }
            Some("") => {
                let message = format!("Invalid input for field/attribute {name}. Value: . '' should be non-empty");
                return Err(invalid(&message));
            }
            Some(_) => {}
        }
    }
    if call.minor >= 37 && !given.contains_key("networks") {
        let value = repr(&Value::Object(given.clone()));
        return Err(invalid(&format!(
            "Invalid input for field/attribute server. Value: {value}. 'networks' is a required property"
        )));
    }
    if let Some(image) = given.get("imageRef").and_then(Value::as_str)
        && !image.is_empty()
        && !call.cloud.is_id(image)
    {
        return Err(invalid(&format!(
            "Invalid input for field/attribute imageRef. Value: {image}. '{image}' is not valid under any of the given schemas"
        )));
    }
    if let Some(data) = given.get("user_data").and_then(Value::as_str) {
        let decodes = base64::engine::general_purpose::STANDARD.decode(data).is_ok();
        if !decodes {
            return Err(invalid(&format!(
                "Invalid input for field/attribute user_data. Value: {data}. '{data}' is not a 'base64'"
            )));
        }
        if data.len() > MAX_USER_DATA {
            return Err(invalid("Invalid input for field/attribute user_data. User data is too long"));
        }
    }
    for (key, value) in given.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        if !value.is_string() || value.as_str().is_some_and(|value| value.len() > 255) || key.len() > 255 {
            return Err(invalid(&format!("Invalid input for field/attribute {key}. Value: {value}.")));
        }
    }
    Ok(())
}

/// Where a server comes into being that names no zone: the one with the fewest servers of its group.
fn spread(cloud: &Cloud, state: &State, group: Option<&str>) -> String {
    let members = |zone: &String| {
        let servers = state.compute.servers.iter();
        servers.filter(|server| text(server, "_zone") == zone && server["_group"].as_str() == group).count()
    };
    cloud.zones.iter().min_by_key(|zone| members(zone)).cloned().unwrap_or_else(|| "nova".to_owned())
}

/// What a server is plugged into.
enum Plug {
    Port(String),
    Network(String, Value),
}

fn networks(call: &Call<'_>, state: &State, given: &Value) -> Result<Vec<Plug>, Answer> {
    let network_state = &state.networking;
    let Some(wanted) = given["networks"].as_array().filter(|wanted| !wanted.is_empty()) else {
        if given["networks"] == "none" {
            return Ok(Vec::new());
        }
        let own = |network: &&Value| text(network, "project_id") == call.scope.project;
        let mut own = network_state.networks.iter().filter(own).map(|network| text(network, "id").to_owned());
        return match (own.next(), own.next()) {
            (Some(only), None) => Ok(vec![Plug::Network(only, Value::Null)]),
            (None, _) => Ok(Vec::new()),
            _ => Err(refused(409, "Multiple possible networks found, use a Network ID to be more specific.")),
        };
    };
    let mut plugs = Vec::new();
    for one in wanted {
        plugs.push(match (one["port"].as_str(), one["uuid"].as_str()) {
            (Some(port), _) => {
                let found = network_state.find(call.scope, NetworkKind::Port, port);
                let found = found.map_err(|_| invalid(&format!("Port id {port} could not be found.")))?;
                if !text(found, "device_id").is_empty() {
                    return Err(refused(409, &format!("Port {port} is still in use.")));
                }
                if items(found, "fixed_ips").next().is_none() {
                    return Err(invalid(&format!("Port {port} requires a FixedIP in order to be used.")));
                }
                Plug::Port(port.to_owned())
            }
            (None, Some(network)) => {
                let found = network_state.find(call.scope, NetworkKind::Network, network);
                found.map_err(|_| invalid(&format!("Network {network} could not be found.")))?;
                let fixed = one["fixed_ip"].as_str().map_or(Value::Null, |ip| json!([{ "ip_address": ip }]));
                Plug::Network(network.to_owned(), fixed)
            }
            (None, None) => return Err(invalid("Invalid input for field/attribute networks.")),
        });
    }
    Ok(plugs)
}

/// Plugs a server in; its ports, those first that it brought.
fn plug(call: &Call<'_>, state: &mut State, id: &str, zone: &str, plugs: Vec<Plug>) -> Result<Vec<String>, Answer> {
    let mut ports = Vec::new();
    for plug in plugs {
        let port = match plug {
            Plug::Port(port) => port,
            Plug::Network(network, fixed) => {
                let mut given = json!({ "network_id": network });
                if !fixed.is_null() {
                    given["fixed_ips"] = fixed;
                }
                let given = given.as_object().cloned().unwrap_or_default();
                let made = neutron::create_port(&mut state.networking, call.scope, &call.scope.project, &given);
                let port = made.map_err(|refusal| {
                    refused(
                        if refusal.status == 409 { 403 } else { 400 },
                        "Port could not be created: quota exceeded or no address left.",
                    )
                })?;
                if let Some(port) = state.networking.ports.get_mut(&port) {
                    // Goes with its server.
                    port["_of_nova"] = json!(true);
                }
                port
            }
        };
        neutron::bind(&mut state.networking, &port, id, zone, "", false);
        ports.push(port);
    }
    Ok(ports)
}

/// A block device that is asked for.
struct Device {
    /// A volume that is there.
    volume: Option<String>,
    /// What a new volume is like; null for a local disk.
    wanted: Value,
    delete_on_termination: bool,
}

fn devices(call: &Call<'_>, state: &State, given: &Value, image: Option<&str>) -> Result<Vec<Device>, Answer> {
    let mut devices = Vec::new();
    let mut boots = image.is_some();
    for device in items(given, "block_device_mapping_v2") {
        let (source, destination) = (text(device, "source_type"), text(device, "destination_type"));
        let id = text(device, "uuid");
        boots |= device["boot_index"] == 0 || device["boot_index"] == "0";
        let delete_on_termination = device["delete_on_termination"] == true;
        if !device["tag"].is_null() && call.minor < 32 || !device["volume_type"].is_null() && call.minor < 67 {
            return Err(invalid(
                "Invalid input for field/attribute block_device_mapping_v2. Additional properties are not allowed",
            ));
        }
        let mut wanted = Value::Null;
        let mut volume = None;
        match (source, destination) {
            ("volume", _) => {
                let found = state.volumes.volumes.get(id).filter(|volume| call.scope.owns(volume));
                let found = found
                    .ok_or_else(|| invalid(&format!("Block Device Mapping is Invalid: failed to get volume {id}.")))?;
                if text(found, "status") != "available" {
                    let message = format!(
                        "Invalid volume: Volume {id} is not in the 'available' state: {}.",
                        text(found, "status")
                    );
                    return Err(invalid(&message));
                }
                volume = Some(id.to_owned());
            }
            ("image" | "blank", "volume") => {
                wanted = json!({ "size": device["volume_size"], "name": "", "volume_type": device["volume_type"] });
                if source == "image" {
                    wanted["imageRef"] = json!(id);
                }
            }
            ("image" | "blank", _) => {}
            _ => return Err(invalid("Block Device Mapping is Invalid.")),
        }
        devices.push(Device { volume, wanted, delete_on_termination });
    }
    if !boots {
        return Err(invalid("Invalid imageRef provided."));
    }
    Ok(devices)
}

/// Attaches and makes a server's volumes.
fn storage(call: &Call<'_>, state: &mut State, id: &str, devices: Vec<Device>) -> Result<Vec<Value>, Answer> {
    let mut volumes = Vec::new();
    for device in devices {
        let volume = match (device.volume, device.wanted) {
            (Some(volume), _) => volume,
            (None, Value::Null) => continue,
            (None, wanted) => cinder::create(call.cloud, state, call.scope, &wanted)?,
        };
        let letter = char::from(b'a' + u8::try_from(volumes.len()).unwrap_or(25).min(25));
        let path = format!("/dev/vd{letter}");
        cinder::attach(state, &volume, id, &path);
        volumes.push(json!({ "id": volume, "delete_on_termination": device.delete_on_termination, "device": path }));
    }
    Ok(volumes)
}

/// `POST /servers/{id}/os-volume_attachments`: the attachment.
pub(super) fn attach(call: &Call<'_>, state: &mut State, id: &str, volume: &str) -> Result<Value, Answer> {
    let found = state.volumes.volumes.get(volume).filter(|volume| call.scope.owns(volume));
    let found = found.ok_or_else(|| refused(404, &format!("Volume {volume} could not be found.")))?;
    if text(found, "status") != "available" {
        let message = format!(
            "Invalid volume: volume {volume} status must be 'available'. Currently in '{}'",
            text(found, "status")
        );
        return Err(invalid(&message));
    }
    let mut attached = Value::Null;
    if let Some(volumes) = state.compute.servers.get_mut(id).and_then(|server| server["_volumes"].as_array_mut()) {
        let letter = char::from(b'b' + u8::try_from(volumes.len()).unwrap_or(24).min(24));
        let device = format!("/dev/vd{letter}");
        volumes.push(json!({ "id": volume, "delete_on_termination": false, "device": device }));
        attached = json!({ "id": volume, "volumeId": volume, "serverId": id, "device": device });
    }
    cinder::attach(state, volume, id, text(&attached, "device"));
    Ok(attached)
}

/// `DELETE /servers/{id}/os-volume_attachments/{volume}`.
pub(super) fn detach(state: &mut State, id: &str, volume: &str) -> Result<(), Answer> {
    let volumes = state.compute.servers.get_mut(id).and_then(|server| server["_volumes"].as_array_mut());
    let place = volumes.as_ref().and_then(|volumes| volumes.iter().position(|one| text(one, "id") == volume));
    let (Some(volumes), Some(place)) = (volumes, place) else {
        return Err(refused(404, &format!("Instance {id} is not attached to volume {volume}.")));
    };
    volumes.remove(place);
    cinder::detach(state, volume);
    Ok(())
}

/// Ends `BUILD`: the server is `ACTIVE`, or in `ERROR`.
fn finish(cloud: &Cloud, state: &mut State, id: &str) {
    let Some(server) = state.compute.servers.get_mut(id) else { return };
    if text(server, "status") != "BUILD" || server["_task"] == "deleting" {
        return;
    }
    let zone = text(server, "_zone").to_owned();
    if zone == FAILING_ZONE {
        let message = format!("Build of instance {id} aborted: FakeBuildAbortDriver fails every build");
        fail(state, id, &message);
        return;
    }
    if cloud.breaks() {
        fail(state, id, "No valid host was found.");
        return;
    }
    let host = host(&zone);
    server["status"] = json!("ACTIVE");
    server["_vm_state"] = json!("active");
    server["_task"] = Value::Null;
    server["_power"] = json!(1);
    server["_host"] = json!(host);
    server["_host_id"] = json!(format!("{:0>56}", plain_id()));
    server["_launched"] = json!(now_exactly());
    server["updated"] = json!(now());
    for port in crate::table::texts(server, "_ports").map(str::to_owned).collect::<Vec<_>>() {
        neutron::bind(&mut state.networking, &port, id, &zone, &host, true);
    }
    nodes::boot(cloud, id);
}

/// A server ends in `ERROR`; its ports are free again.
pub(super) fn fail(state: &mut State, id: &str, message: &str) {
    let Some(server) = state.compute.servers.get_mut(id) else { return };
    server["status"] = json!("ERROR");
    server["_vm_state"] = json!("error");
    server["_task"] = Value::Null;
    server["_zone"] = json!("");
    server["_fault"] = json!({ "code": 500, "created": now(), "message": message });
    server["updated"] = json!(now());
    unplug(state, id);
}

fn unplug(state: &mut State, id: &str) {
    let Some(server) = state.compute.servers.get(id) else { return };
    let ports: Vec<String> = crate::table::texts(server, "_ports").map(str::to_owned).collect();
    for port in ports {
        let found = state.networking.ports.get(&port);
        match found.filter(|found| text(found, "device_id") == id).map(|found| found["_of_nova"] == true) {
            Some(true) => neutron::release(&mut state.networking, &port),
            Some(false) => neutron::unbind(&mut state.networking, &port),
            None => {}
        }
    }
}

/// `DELETE /servers/{id}`: at once when it is on no host, else after some time and when its node is gone.
pub(super) fn delete(cloud: &Cloud, state: &mut State, id: &str) {
    let Some(server) = state.compute.servers.get_mut(id) else { return };
    if server["_task"] == "deleting" {
        return;
    }
    server["_task"] = json!("deleting");
    server["updated"] = json!(now());
    if server["_host"].is_null() && text(server, "status") == "ERROR" {
        remove(cloud, state, id);
        return;
    }
    if nodes::end(cloud, id) {
        return;
    }
    let gone = id.to_owned();
    cloud.later(|delays| delays.server, id, move |cloud, state| remove(cloud, state, &gone));
}

/// Takes a server away with what goes with it.
pub(crate) fn remove(cloud: &Cloud, state: &mut State, id: &str) {
    unplug(state, id);
    let Some(server) = state.compute.servers.remove(id) else { return };
    for group in state.compute.groups.iter_mut() {
        if let Some(members) = group["members"].as_array_mut() {
            members.retain(|member| *member != id);
        }
    }
    for volume in items(&server, "_volumes") {
        let volume_id = text(volume, "id");
        cinder::detach(state, volume_id);
        if volume["delete_on_termination"] == true {
            cinder::delete(cloud, state, volume_id);
        }
    }
}

/// What an `ACTIVE` server boots with; `None` when it is not there any more or going.
pub(crate) fn booted(state: &State, id: &str) -> Option<Boot> {
    let server = state.compute.servers.get(id)?;
    if text(server, "status") != "ACTIVE" || server["_task"] == "deleting" {
        return None;
    }
    let user_data = base64::engine::general_purpose::STANDARD.decode(text(server, "_user_data")).unwrap_or_default();
    let image = server["_image"].as_str().and_then(|image| state.images.images.get(image)).cloned();
    let image = image.or_else(|| {
        let volume =
            items(server, "_volumes").next().and_then(|volume| state.volumes.volumes.get(text(volume, "id")))?;
        state.images.images.get(text(&volume["volume_image_metadata"], "image_id")).cloned()
    });
    Some(Boot {
        name: text(server, "name").to_owned(),
        user_data,
        zone: text(server, "_zone").to_owned(),
        image: image.unwrap_or_default(),
        metadata: server["metadata"].clone(),
    })
}
