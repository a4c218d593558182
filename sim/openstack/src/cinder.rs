//! Cinder v3: volumes and their types.

use serde_json::{Value, json};

use super::answer::{Answer, Outcome, Service};
use super::cloud::{Cloud, Quotas, Scope, State, new_id, now_exactly};
use super::request::Request;
use super::table::{Table, shown, text};

/// Zone of all volumes that name none.
const ZONE: &str = "nova";

#[derive(Default)]
pub(super) struct Volumes {
    pub volumes: Table,
    pub types: Table,
    pub snapshots: Table,
    /// Claims to volumes, by `volume_id`; of those that servers have it is the volume that tells.
    pub attachments: Table,
    pub quotas: Quotas,
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::failure(Service::Cinder, status, "", message)
}

fn missing(id: &str) -> Answer {
    refused(404, &format!("Volume {id} could not be found."))
}

pub(super) fn answer(cloud: &Cloud, scope: &Scope, request: &Request) -> Answer {
    let outcome = cloud.with(|state| route(cloud, state, scope, request));
    let answer = outcome.unwrap_or_else(|refusal| refusal);
    answer.with("openstack-api-version", "volume 3.0").with("vary", "OpenStack-API-Version")
}

fn versions(cloud: &Cloud) -> Value {
    json!({ "versions": [{
        "id": "v3.0", "status": "CURRENT", "version": "3.71", "min_version": "3.0", "updated": "2023-08-31T00:00:00Z",
        "links": [
            { "rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/" },
            { "rel": "self", "href": format!("{}/volume/v3/", cloud.base) },
        ],
        "media-types": [{ "base": "application/json", "type": "application/vnd.openstack.volume+json;version=3" }],
    }] })
}

fn route(cloud: &Cloud, state: &mut State, scope: &Scope, request: &Request) -> Outcome {
    let (method, mut segments) = request.route();
    match segments.as_slice() {
        [] => return Ok(Answer::json(300, &versions(cloud))),
        ["v3"] => return Ok(Answer::json(200, &versions(cloud))),
        _ => {}
    }
    // The project may stand in the path.
    let named = segments.get(1).is_some_and(|part| state.identity.projects.get(part).is_some());
    let place = if named { format!("{}/", segments.remove(1)) } else { String::new() };
    let view = |volume: &Value, detail: bool| view(cloud, &place, volume, detail);
    let ["v3", rest @ ..] = segments.as_slice() else {
        return Err(refused(404, "The resource could not be found."));
    };
    let find = |state: &State, id: &str| {
        let found = state.volumes.volumes.get(id).filter(|volume| scope.owns(volume));
        found.cloned().ok_or_else(|| missing(id))
    };
    match (method, rest) {
        ("GET", ["types"]) => {
            let types: Vec<Value> = state.volumes.types.iter().map(|kind| shown(kind, &[])).collect();
            Ok(Answer::json(200, &json!({ "volume_types": types })))
        }
        ("GET", ["types", id]) => {
            let found = state.volumes.types.get(id);
            let found = found.ok_or_else(|| refused(404, &format!("Volume type {id} could not be found.")))?;
            Ok(Answer::json(200, &json!({ "volume_type": shown(found, &[]) })))
        }
        ("GET", ["os-availability-zone"]) => Ok(Answer::json(
            200,
            &json!({ "availabilityZoneInfo": [{ "zoneName": ZONE, "zoneState": { "available": true } }] }),
        )),
        ("GET", ["volumes"]) => Ok(list(cloud, state, scope, request, &|volume| view(volume, false))),
        ("GET", ["volumes", "detail"]) => Ok(list(cloud, state, scope, request, &|volume| view(volume, true))),
        ("POST", ["volumes"]) => {
            let body = request.json().unwrap_or_default();
            let id = create(cloud, state, scope, &body["volume"])?;
            let made = find(state, &id)?;
            let mut made = view(&made, true);
            if let Some(fields) = made.as_object_mut() {
                fields.remove("os-vol-tenant-attr:tenant_id");
                fields.remove("volume_image_metadata");
            }
            Ok(Answer::json(202, &json!({ "volume": made })))
        }
        ("GET", ["volumes", id]) => Ok(Answer::json(200, &json!({ "volume": view(&find(state, id)?, true) }))),
        ("DELETE", ["volumes", id]) => {
            let found = find(state, id)?;
            if !matches!(text(&found, "status"), "available" | "error" | "error_deleting") {
                return Err(refused(
                    400,
                    "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.",
                ));
            }
            delete(cloud, state, id);
            Ok(Answer::empty(202))
        }
        ("GET", ["snapshots"] | ["snapshots", "detail"]) => {
            Ok(Answer::json(200, &json!({ "snapshots": of_project(&state.volumes.snapshots, scope, request) })))
        }
        ("DELETE", ["snapshots", id]) => {
            let gone = state.volumes.snapshots.remove(id);
            let message = format!("Snapshot {id} could not be found.");
            gone.map(|_| Answer::empty(202)).ok_or_else(|| refused(404, &message))
        }
        ("GET", ["attachments"] | ["attachments", "detail"]) => {
            Ok(Answer::json(200, &json!({ "attachments": of_project(&state.volumes.attachments, scope, request) })))
        }
        ("DELETE", ["attachments", id]) => {
            let gone = state.volumes.attachments.remove(id);
            let gone = gone.ok_or_else(|| refused(404, &format!("Volume attachment {id} could not be found.")))?;
            detach(state, text(&gone, "volume_id"));
            Ok(Answer::json(200, &json!({ "attachments": [] })))
        }
        ("GET" | "PUT", ["os-quota-sets", project]) => {
            if method == "PUT" {
                if !scope.admin {
                    return Err(refused(403, "Policy doesn't allow volume_extension:quotas:update to be performed."));
                }
                let body = request.json().unwrap_or_default();
                for (name, limit) in body["quota_set"].as_object().into_iter().flatten() {
                    state.volumes.quotas.set(project, name, limit.as_i64().unwrap_or(-1));
                }
            }
            let limit = |name: &str| ((*name).to_owned(), json!(state.volumes.quotas.limit(project, name)));
            let limits: Value =
                ["volumes", "per_volume_gigabytes", "snapshots", "gigabytes"].map(limit).into_iter().collect();
            Ok(Answer::json(200, &json!({ "quota_set": limits })))
        }
        _ => Err(refused(404, "The resource could not be found.")),
    }
}

/// What a project has in a table, as the query wants it.
fn of_project(table: &Table, scope: &Scope, request: &Request) -> Vec<Value> {
    let passes = |found: &&Value| {
        let wanted = |name: &str| request.value(name).is_none_or(|value| text(found, name) == value);
        scope.owns(found) && ["name", "status", "volume_id"].into_iter().all(wanted)
    };
    table.iter().filter(passes).map(|found| shown(found, &[])).collect()
}

fn list(cloud: &Cloud, state: &State, scope: &Scope, request: &Request, view: &dyn Fn(&Value) -> Value) -> Answer {
    let passes = |volume: &&Value| {
        ["name", "status", "bootable"].iter().all(|name| request.value(name).is_none_or(|value| volume[*name] == value))
            && request.value("availability_zone").is_none_or(|zone| volume["availability_zone"] == zone)
    };
    let all = scope.admin && request.value("all_tenants").is_some();
    let own = |volume: &&Value| all || text(volume, "project_id") == scope.project;
    let mut found: Vec<&Value> = state.volumes.volumes.iter().rev().filter(own).filter(passes).collect();
    if let Some(marker) = request.value("marker") {
        let place = found.iter().position(|volume| text(volume, "id") == marker);
        found.drain(..place.map_or(0, |place| place + 1));
    }
    let mut body = json!({});
    if let Some(limit) = request.value("limit").and_then(|limit| limit.parse::<usize>().ok())
        && found.len() > limit
    {
        found.truncate(limit);
        let last = found.last().map(|volume| text(volume, "id")).unwrap_or_default();
        let href = format!("{}{}?limit={limit}&marker={last}", cloud.base, request.path);
        body["volumes_links"] = json!([{ "rel": "next", "href": href }]);
    }
    body["volumes"] = found.into_iter().map(view).collect();
    Answer::json(200, &body)
}

/// A volume as it is shown; `place` is the project in the request's path.
fn view(cloud: &Cloud, place: &str, volume: &Value, detail: bool) -> Value {
    let id = text(volume, "id");
    let links = json!([
        { "rel": "self", "href": format!("{}/volume/v3/{place}volumes/{id}", cloud.base) },
        { "rel": "bookmark", "href": format!("{}/volume/{place}volumes/{id}", cloud.base) },
    ]);
    if !detail {
        return json!({ "id": id, "name": volume["name"], "links": links });
    }
    let mut found = shown(volume, &[]);
    found["links"] = links;
    found["os-vol-tenant-attr:tenant_id"] = volume["project_id"].clone();
    if let Some(fields) = found.as_object_mut() {
        fields.remove("project_id");
    }
    found
}

/// Makes a volume, and returns its id.
pub(super) fn create(cloud: &Cloud, state: &mut State, scope: &Scope, given: &Value) -> Result<String, Answer> {
    let size = given["size"].as_u64().or_else(|| given["size"].as_str()?.parse().ok());
    let size = size.ok_or_else(|| {
        refused(
            400,
            "The server could not comply with the request since it is either malformed or otherwise incorrect.",
        )
    })?;
    if size == 0 {
        return Err(refused(400, "Invalid input for field/attribute size. Value: 0. 0 is less than the minimum of 1"));
    }
    let kind = given["volume_type"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("__DEFAULT__");
    let found = state.volumes.types.iter().find(|found| text(found, "name") == kind || text(found, "id") == kind);
    let found = found.ok_or_else(|| refused(404, &format!("Volume type with name {kind} could not be found.")))?;
    let kind = found["name"].clone();
    let image = match given["imageRef"].as_str().or_else(|| given["image_id"].as_str()) {
        Some(id) => {
            let found = state.images.find(scope, id);
            Some(
                found
                    .ok_or_else(|| refused(400, "Invalid image identifier or unable to access requested image."))?
                    .clone(),
            )
        }
        None => None,
    };
    let used = state.volumes.volumes.count(&scope.project);
    if !state.volumes.quotas.allows(&scope.project, "volumes", used) {
        let limit = state.volumes.quotas.limit(&scope.project, "volumes");
        let message =
            format!("VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes'.");
        return Err(refused(413, &message));
    }
    // A zone without a back end falls back to the default one.
    let zone = given["availability_zone"].as_str().filter(|zone| cloud.zones.iter().any(|known| known == zone));
    let id = new_id();
    let mut made = json!({
        "id": id, "project_id": scope.project, "status": "creating", "size": size, "availability_zone": zone.unwrap_or(ZONE),
        "created_at": now_exactly(), "updated_at": null, "name": given["name"], "description": given["description"],
        "volume_type": kind, "snapshot_id": null, "source_volid": null, "user_id": scope.user, "bootable": "false",
        "metadata": if given["metadata"].is_object() { given["metadata"].clone() } else { json!({}) },
        "encrypted": false, "replication_status": null, "consistencygroup_id": null,
        "multiattach": given["multiattach"].as_bool().unwrap_or(false), "attachments": [],
    });
    if let Some(image) = image {
        made["bootable"] = json!("true");
        made["volume_image_metadata"] = json!({
            "image_id": image["id"], "image_name": image["name"], "os_type": image["os_type"],
            "container_format": image["container_format"], "disk_format": image["disk_format"], "size": image["size"].to_string(),
        });
    }
    state.volumes.volumes.insert(made);
    let ready = id.clone();
    cloud.later(
        |delays| delays.volume,
        &id,
        move |cloud, state| {
            if let Some(volume) = state.volumes.volumes.get_mut(&ready)
                && text(volume, "status") == "creating"
            {
                volume["status"] = json!(if cloud.breaks() { "error" } else { "available" });
                volume["updated_at"] = json!(now_exactly());
            }
        },
    );
    Ok(id)
}

/// Deletes a volume, which takes its time.
pub(super) fn delete(cloud: &Cloud, state: &mut State, id: &str) {
    if let Some(volume) = state.volumes.volumes.get_mut(id) {
        volume["status"] = json!("deleting");
        volume["attachments"] = json!([]);
    }
    let gone = id.to_owned();
    cloud.later(|delays| delays.volume, id, move |_, state| drop(state.volumes.volumes.remove(&gone)));
}

pub(super) fn attach(state: &mut State, id: &str, server: &str, device: &str) {
    if let Some(volume) = state.volumes.volumes.get_mut(id) {
        volume["status"] = json!("in-use");
        volume["updated_at"] = json!(now_exactly());
        volume["attachments"] = json!([{
            "id": id, "attachment_id": new_id(), "volume_id": id, "server_id": server, "host_name": null, "device": device,
            "attached_at": now_exactly(),
        }]);
    }
}

pub(super) fn detach(state: &mut State, id: &str) {
    if let Some(volume) = state.volumes.volumes.get_mut(id) {
        volume["status"] = json!("available");
        volume["attachments"] = json!([]);
    }
}
