//! `/capwasm`: failures on request, the journal, what is there, and states that no client could bring about.

use serde_json::{Value, json};

use super::answer::Answer;
use super::cloud::{Cloud, State};
use super::front::Front;
use super::nova;
use super::request::Request;
use super::table::{Table, text};
use capwasm_sim_service::faults::Fault;

pub(super) fn answer(front: &Front, request: &Request) -> Answer {
    let (method, segments) = request.route();
    let problem = |status: u16, message: String| Answer::json(status, &json!({ "message": message }));
    match (method, segments.as_slice()) {
        ("GET", ["faults"]) => Answer::json(200, &json!(front.faults.list())),
        ("POST", ["faults"]) => {
            let given = request.json().unwrap_or_default();
            match serde_json::from_value::<Fault>(given) {
                Ok(fault) => Answer::json(201, &json!({ "id": front.faults.inject(fault) })),
                Err(error) => problem(400, format!("this is no fault: {error}")),
            }
        }
        ("DELETE", ["faults"]) => {
            front.faults.lift_all();
            Answer::empty(204)
        }
        ("DELETE", ["faults", id]) if front.faults.lift(id) => Answer::empty(204),
        ("GET", ["calls"]) => Answer::json(200, &json!(front.journal.calls())),
        ("DELETE", ["calls"]) => {
            front.journal.clear();
            Answer::empty(204)
        }
        ("GET", ["resources"]) => Answer::json(200, &json!(resources(&front.cloud))),
        ("POST", ["servers", id]) => {
            let given = request.json().unwrap_or_default();
            let done = set_server(&front.cloud, id, text(&given, "status"), text(&given, "message"));
            if done { Answer::empty(204) } else { problem(404, format!("there is no server {id}, or no such status")) }
        }
        ("POST", ["loadbalancers", id]) => {
            let given = request.json().unwrap_or_default();
            let done = front.cloud.with(|state| set_balancer(state, id, text(&given, "status")));
            if done { Answer::empty(204) } else { problem(404, format!("there is no load balancer {id}")) }
        }
        _ => problem(404, "page not found".to_owned()),
    }
}

/// Gives a server a state that it came to by itself: `ERROR` with a fault, `SHUTOFF`, `UNKNOWN` and the like, or `GONE` for
/// one that vanished. Its id or its name.
pub(super) fn set_server(cloud: &Cloud, server: &str, status: &str, message: &str) -> bool {
    let known = [
        "ACTIVE",
        "ERROR",
        "SHUTOFF",
        "PAUSED",
        "SUSPENDED",
        "UNKNOWN",
        "SHELVED_OFFLOADED",
        "DELETED",
        "SOFT_DELETED",
    ];
    let done = cloud.with(|state| {
        let named = |found: &&Value| text(found, "id") == server || text(found, "name") == server;
        let Some(id) = state.compute.servers.iter().find(named).map(|found| text(found, "id").to_owned()) else {
            return false;
        };
        if status == "GONE" {
            nova::remove(cloud, state, &id);
            super::nodes::forget(cloud, &id);
            return true;
        }
        let Some(found) = state.compute.servers.get_mut(&id).filter(|_| known.contains(&status)) else { return false };
        found["status"] = json!(status);
        found["_vm_state"] = json!(status.to_ascii_lowercase());
        if status == "ERROR" {
            let message = if message.is_empty() { "simulated failure" } else { message };
            found["_fault"] = json!({ "code": 500, "created": super::cloud::now(), "message": message });
        }
        true
    });
    cloud.changed.notify_one();
    done
}

fn set_balancer(state: &mut State, id: &str, status: &str) -> bool {
    let Some(found) = state.balancing.balancers.get_mut(id) else { return false };
    found["provisioning_status"] = json!(status);
    true
}

/// What projects have made, as `ports/<name or id>`; what was there from the start and what the services made for themselves
/// is left out.
pub(super) fn resources(cloud: &Cloud) -> Vec<String> {
    cloud.look(|state| {
        let networking = &state.networking;
        let tables: [(&str, &Table); 15] = [
            ("servers", &state.compute.servers),
            ("server-groups", &state.compute.groups),
            ("keypairs", &state.compute.keypairs),
            ("images", &state.images.images),
            ("networks", &networking.networks),
            ("subnets", &networking.subnets),
            ("ports", &networking.ports),
            ("routers", &networking.routers),
            ("security-groups", &networking.groups),
            ("floatingips", &networking.floating),
            ("trunks", &networking.trunks),
            ("loadbalancers", &state.balancing.balancers),
            ("listeners", &state.balancing.listeners),
            ("pools", &state.balancing.pools),
            ("volumes", &state.volumes.volumes),
        ];
        let made = |resource: &&Value| {
            resource["_seed"] != true && resource["project_id"] != "" && text(resource, "name") != "default"
        };
        let name = |resource: &Value| match text(resource, "name") {
            "" => text(resource, "id").to_owned(),
            name => name.to_owned(),
        };
        let of = |(kind, table): &(&str, &Table)| -> Vec<String> {
            table.iter().filter(made).map(|resource| format!("{kind}/{}", name(resource))).collect()
        };
        tables.iter().flat_map(of).collect()
    })
}
