//! Nova v2.1: microversions, flavors, zones, key pairs, server groups. Servers are in a module of their own.

mod actions;
mod build;
mod python;
mod servers;

use serde_json::{Value, json};

use super::FAILING_ZONE;
use super::answer::{Answer, Outcome, Service};
use super::cloud::{Cloud, Quotas, Scope, State, new_id};
use super::request::Request;
use super::table::{Table, shown, text};
pub(super) use build::{booted, remove};

/// The newest microversion is 2.103.
const NEWEST: u32 = 103;

#[derive(Default)]
pub(super) struct Compute {
    pub flavors: Table,
    pub servers: Table,
    pub groups: Table,
    pub keypairs: Table,
    pub quotas: Quotas,
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::failure(Service::Nova, status, "", message)
}

fn invalid(message: &str) -> Answer {
    refused(400, message)
}

fn denied(policy: &str) -> Answer {
    refused(403, &format!("Policy doesn't allow {policy} to be performed."))
}

/// What every part of Nova needs to answer a call.
struct Call<'a> {
    cloud: &'a Cloud,
    scope: &'a Scope,
    request: &'a Request,
    /// Minor part of the microversion.
    minor: u32,
}

pub(super) fn answer(cloud: &Cloud, scope: &Scope, request: &Request) -> Answer {
    let asked = microversion(request);
    let (spoken, outcome) = match &asked {
        Ok(minor) => {
            let call = Call { cloud, scope, request, minor: *minor };
            (format!("2.{minor}"), cloud.with(|state| route(&call, state)))
        }
        Err(asked) => {
            let message =
                format!("Version {asked} is not supported by the API. Minimum is 2.1 and maximum is 2.{NEWEST}.");
            (asked.clone(), Err(refused(406, &message)))
        }
    };
    let mut answer = outcome.unwrap_or_else(|refusal| refusal);
    if answer.content_type.is_empty() {
        answer.content_type = "application/json";
    }
    answer
        .with("openstack-api-version", format!("compute {spoken}"))
        .with("x-openstack-nova-api-version", spoken)
        .with("vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version")
}

/// Minor part of the microversion that is asked for, or what was asked instead of one.
fn microversion(request: &Request) -> Result<u32, String> {
    let newer = request.header("openstack-api-version").and_then(|value| value.strip_prefix("compute "));
    let Some(asked) = newer.or_else(|| request.header("x-openstack-nova-api-version")) else { return Ok(1) };
    if asked == "latest" {
        return Ok(NEWEST);
    }
    let minor = asked.strip_prefix("2.").and_then(|minor| minor.parse().ok());
    minor.filter(|minor| (1..=NEWEST).contains(minor)).ok_or_else(|| asked.to_owned())
}

fn version_document(cloud: &Cloud) -> Value {
    json!({
        "id": "v2.1", "status": "CURRENT", "version": format!("2.{NEWEST}"), "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z", "links": [{ "rel": "self", "href": format!("{}/compute/v2.1/", cloud.base) }],
    })
}

fn route(call: &Call<'_>, state: &mut State) -> Outcome {
    let (method, segments) = call.request.route();
    let rest = match segments.as_slice() {
        [] => return Ok(Answer::json(200, &json!({ "versions": [version_document(call.cloud)] }))),
        ["v2.1"] => return Ok(Answer::json(200, &json!({ "version": version_document(call.cloud) }))),
        ["v2.1", rest @ ..] => rest,
        _ => return Err(Answer::page(404, "The resource could not be found.")),
    };
    match (method, rest) {
        (_, ["servers", rest @ ..]) => servers::route(call, state, method, rest),
        ("GET", ["flavors"]) => flavors(call, state, false),
        ("GET", ["flavors", "detail"]) => flavors(call, state, true),
        ("GET", ["flavors", id]) => {
            let found = state.compute.flavors.get(id);
            let found = found.ok_or_else(|| refused(404, &format!("Flavor {id} could not be found.")))?;
            Ok(Answer::json(200, &json!({ "flavor": flavor(call, found, true) })))
        }
        ("GET", ["flavors", id, "os-extra_specs"]) => {
            let found = state.compute.flavors.get(id);
            let found = found.ok_or_else(|| refused(404, &format!("Flavor {id} could not be found.")))?;
            Ok(Answer::json(200, &json!({ "extra_specs": found["extra_specs"] })))
        }
        ("POST", ["flavors"]) => {
            if !call.scope.admin {
                return Err(denied("os_compute_api:os-flavor-manage:create"));
            }
            let body = call.request.json().unwrap_or_default();
            let id = add_flavor(state, &body["flavor"]);
            let made = state.compute.flavors.get(&id).cloned().unwrap_or_default();
            Ok(Answer::json(200, &json!({ "flavor": flavor(call, &made, true) })))
        }
        ("GET", ["os-availability-zone"]) => Ok(zones(call, false)),
        ("GET", ["os-availability-zone", "detail"]) if call.scope.admin => Ok(zones(call, true)),
        ("GET", ["os-availability-zone", "detail"]) => Err(denied("os_compute_api:os-availability-zone:detail")),
        (_, ["os-keypairs", rest @ ..]) => keypairs(call, state, method, rest),
        (_, ["os-server-groups", rest @ ..]) => groups(call, state, method, rest),
        ("GET" | "PUT" | "DELETE", ["os-quota-sets", project]) => quotas(call, state, method, project),
        ("GET", ["limits"]) => {
            let used = state.compute.servers.count(&call.scope.project);
            let most = state.compute.quotas.limit(&call.scope.project, "instances");
            let absolute = json!({ "maxTotalInstances": most, "totalInstancesUsed": used });
            Ok(Answer::json(200, &json!({ "limits": { "rate": [], "absolute": absolute } })))
        }
        _ => Err(Answer::page(404, "The resource could not be found.")),
    }
}

/// Links of a resource: to itself, and without the version.
fn links(cloud: &Cloud, kind: &str, id: &str) -> Value {
    json!([
        { "rel": "self", "href": format!("{}/compute/v2.1/{kind}/{id}", cloud.base) },
        { "rel": "bookmark", "href": format!("{}/compute/{kind}/{id}", cloud.base) },
    ])
}

/// Adds a flavor, and returns its id.
pub(super) fn add_flavor(state: &mut State, given: &Value) -> String {
    let id = given["id"].as_str().map_or_else(new_id, str::to_owned);
    let number = |name: &str, other: u64| given[name].as_u64().unwrap_or(other);
    state.compute.flavors.insert(json!({
        "id": id, "name": given["name"], "ram": number("ram", 512), "disk": number("disk", 1), "vcpus": number("vcpus", 1),
        "swap": number("swap", 0), "OS-FLV-EXT-DATA:ephemeral": number("OS-FLV-EXT-DATA:ephemeral", 0),
        "OS-FLV-DISABLED:disabled": false, "os-flavor-access:is_public": true, "rxtx_factor": 1.0, "description": null,
        "extra_specs": {},
    }));
    id
}

fn flavor(call: &Call<'_>, found: &Value, detail: bool) -> Value {
    let links = links(call.cloud, "flavors", text(found, "id"));
    if !detail {
        let mut brief = json!({ "id": found["id"], "name": found["name"], "links": links });
        if call.minor >= 55 {
            brief["description"] = found["description"].clone();
        }
        return brief;
    }
    let mut shown = shown(found, &[]);
    shown["links"] = links;
    if call.minor < 75 && found["swap"] == 0 {
        shown["swap"] = json!("");
    }
    if let Some(fields) = shown.as_object_mut() {
        if call.minor < 55 {
            fields.remove("description");
        }
        if call.minor < 61 {
            fields.remove("extra_specs");
        }
    }
    shown
}

/// The limit that a list is asked for.
fn limit(request: &Request) -> Result<Option<usize>, Answer> {
    let Some(text) = request.value("limit") else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        invalid(&format!("Invalid input for query parameters limit. Value: {text}. '{text}' does not match '^[0-9]*$'"))
    })
}

fn flavors(call: &Call<'_>, state: &State, detail: bool) -> Outcome {
    let mut all: Vec<&Value> = state.compute.flavors.iter().collect();
    if let Some(marker) = call.request.value("marker") {
        let place = all.iter().position(|flavor| text(flavor, "id") == marker);
        all.drain(..place.map_or(0, |place| place + 1));
    }
    let mut body = json!({});
    if let Some(limit) = limit(call.request)?.filter(|limit| *limit > 0 && all.len() >= *limit) {
        all.truncate(limit);
        let last = all.last().map(|flavor| text(flavor, "id")).unwrap_or_default();
        let href = format!("{}{}?limit={limit}&marker={last}", call.cloud.base, call.request.path);
        body["flavors_links"] = json!([{ "rel": "next", "href": href }]);
    }
    body["flavors"] = all.into_iter().map(|found| flavor(call, found, detail)).collect();
    Ok(Answer::json(200, &body))
}

/// Whether a zone is one that servers can ask for.
fn is_zone(cloud: &Cloud, zone: &str) -> bool {
    zone == FAILING_ZONE || cloud.zones.iter().any(|known| known == zone)
}

/// The host of a zone: each has one.
fn host(zone: &str) -> String {
    format!("compute-{zone}")
}

fn zones(call: &Call<'_>, detail: bool) -> Answer {
    let zone = |zone: &String| {
        let state = json!({ "available": true, "active": true, "updated_at": super::cloud::now_exactly() });
        let hosts = if detail { json!({ host(zone): { "nova-compute": state } }) } else { Value::Null };
        json!({ "zoneName": zone, "zoneState": { "available": true }, "hosts": hosts })
    };
    let all: Vec<Value> = call.cloud.zones.iter().map(zone).collect();
    Answer::json(200, &json!({ "availabilityZoneInfo": all }))
}

fn keypairs(call: &Call<'_>, state: &mut State, method: &str, rest: &[&str]) -> Outcome {
    let user = call.scope.user.clone();
    let id = |name: &str| format!("{user}/{name}");
    let missing = |name: &str| refused(404, &format!("Keypair {name} not found for user {user}"));
    match (method, rest) {
        ("GET", []) => {
            let own = |pair: &&Value| text(pair, "user_id") == user;
            let all = state.compute.keypairs.iter().filter(own);
            let fields = ["name", "public_key", "fingerprint", "type"];
            let all: Vec<Value> = all.map(|pair| json!({ "keypair": shown(pair, &fields) })).collect();
            Ok(Answer::json(200, &json!({ "keypairs": all })))
        }
        ("POST", []) => {
            let body = call.request.json().unwrap_or_default();
            let name = text(&body["keypair"], "name");
            if state.compute.keypairs.get(&id(name)).is_some() {
                return Err(refused(409, &format!("Key pair '{name}' already exists.")));
            }
            let bytes: [u8; 16] = rand::random();
            let fingerprint: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let made = json!({
                "id": id(name), "name": name, "public_key": body["keypair"]["public_key"], "type": "ssh",
                "fingerprint": fingerprint.join(":"), "user_id": user,
            });
            state.compute.keypairs.insert(made.clone());
            let fields = ["name", "public_key", "type", "fingerprint", "user_id"];
            Ok(Answer::json(201, &json!({ "keypair": shown(&made, &fields) })))
        }
        ("GET", [name]) => {
            let found = state.compute.keypairs.get(&id(name)).ok_or_else(|| missing(name))?;
            Ok(Answer::json(200, &json!({ "keypair": shown(found, &[]) })))
        }
        ("DELETE", [name]) => {
            state.compute.keypairs.remove(&id(name)).ok_or_else(|| missing(name))?;
            Ok(Answer::empty(if call.minor < 2 { 202 } else { 204 }))
        }
        _ => Err(refused(405, "The method specified is not allowed for this resource.")),
    }
}

fn groups(call: &Call<'_>, state: &mut State, method: &str, rest: &[&str]) -> Outcome {
    let missing = |id: &str| refused(404, &format!("Instance group {id} could not be found."));
    let view = |group: &Value| {
        let mut shown = shown(group, &[]);
        if let Some(fields) = shown.as_object_mut()
            && call.minor < 64
        {
            let policy = fields.remove("policy");
            fields.remove("rules");
            fields.insert("policies".to_owned(), json!([policy]));
            fields.insert("metadata".to_owned(), json!({}));
        }
        shown
    };
    match (method, rest) {
        ("GET", []) => {
            let own = |group: &&Value| text(group, "project_id") == call.scope.project;
            let all: Vec<Value> = state.compute.groups.iter().filter(own).map(view).collect();
            Ok(Answer::json(200, &json!({ "server_groups": all })))
        }
        ("POST", []) => {
            let body = call.request.json().unwrap_or_default();
            let given = &body["server_group"];
            let policy = if call.minor < 64 { &given["policies"][0] } else { &given["policy"] };
            const POLICIES: [&str; 4] = ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"];
            if !policy.as_str().is_some_and(|policy| POLICIES.contains(&policy)) {
                let policy = policy.as_str().unwrap_or("None");
                return Err(invalid(&format!(
                    "Invalid input for field/attribute 0. Value: {policy}. '{policy}' is not one of ['anti-affinity', 'affinity', 'soft-anti-affinity', 'soft-affinity']"
                )));
            }
            let used = state.compute.groups.count(&call.scope.project);
            if !state.compute.quotas.allows(&call.scope.project, "server_groups", used) {
                return Err(refused(403, "Quota exceeded, too many server groups."));
            }
            let made = json!({
                "id": new_id(), "name": given["name"], "policy": policy, "rules": {}, "members": [],
                "project_id": call.scope.project, "user_id": call.scope.user,
            });
            let answer = Answer::json(200, &json!({ "server_group": view(&made) }));
            state.compute.groups.insert(made);
            Ok(answer)
        }
        ("GET" | "DELETE", [id]) => {
            let found = state.compute.groups.get(id).filter(|group| call.scope.owns(group));
            let found = view(found.ok_or_else(|| missing(id))?);
            if method == "GET" {
                return Ok(Answer::json(200, &json!({ "server_group": found })));
            }
            state.compute.groups.remove(id);
            Ok(Answer::empty(204))
        }
        _ => Err(refused(405, "The method specified is not allowed for this resource.")),
    }
}

fn quotas(call: &Call<'_>, state: &mut State, method: &str, project: &str) -> Outcome {
    const NAMES: [&str; 6] = ["instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members"];
    let quotas = &mut state.compute.quotas;
    match method {
        "GET" => {}
        _ if !call.scope.admin => return Err(denied("os_compute_api:os-quota-sets:update")),
        "DELETE" => {
            quotas.clear(project);
            return Ok(Answer::empty(202));
        }
        _ => {
            let body = call.request.json().unwrap_or_default();
            for (name, limit) in body["quota_set"].as_object().into_iter().flatten() {
                quotas.set(project, name, limit.as_i64().unwrap_or(-1));
            }
        }
    }
    let mut limits: Value = NAMES.iter().map(|name| ((*name).to_owned(), json!(quotas.limit(project, name)))).collect();
    if method == "GET" {
        limits["id"] = json!(project);
    }
    Ok(Answer::json(200, &json!({ "quota_set": limits })))
}
