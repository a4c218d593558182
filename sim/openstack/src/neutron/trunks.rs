//! Trunks.

use serde_json::{Map, Value, json};

use super::attributes::{Kind, required};
use super::{Networking, fresh, not_found, refused};
use crate::answer::{Answer, Outcome};
use crate::cloud::Scope;
use crate::request::Request;
use crate::table::{items, merge, text};

pub(super) fn create(
    state: &mut Networking,
    scope: &Scope,
    project: &str,
    given: &Map<String, Value>,
) -> Result<String, Answer> {
    let port = required(given, "port_id")?.as_str().unwrap_or_default().to_owned();
    state.find(scope, Kind::Port, &port)?;
    if trunk_of(state, &port).is_some() || state.trunks.iter().any(|trunk| has_subport(trunk, &port)) {
        let message = format!("Port {port} is currently in use and is not eligible for use as a parent port.");
        return Err(refused(409, "ParentPortInUse", &message));
    }
    state.check_quota(project, Kind::Trunk)?;
    let mut made = fresh(project);
    made["admin_state_up"] = json!(true);
    made["status"] = json!("DOWN");
    made["sub_ports"] = json!([]);
    merge(&mut made, given.clone());
    made["project_id"] = json!(project);
    let id = text(&made, "id").to_owned();
    state.trunks.insert(made);
    Ok(id)
}

fn trunk_of<'a>(state: &'a Networking, port: &str) -> Option<&'a Value> {
    state.trunks.iter().find(|trunk| text(trunk, "port_id") == port)
}

fn has_subport(trunk: &Value, port: &str) -> bool {
    items(trunk, "sub_ports").any(|sub| text(sub, "port_id") == port)
}

/// Whether trunks let a port be deleted.
pub(super) fn check_port(state: &Networking, port: &str) -> Result<(), Answer> {
    if let Some(trunk) = trunk_of(state, port) {
        let message = format!("Port {port} is currently a parent port for trunk {}.", text(trunk, "id"));
        return Err(refused(409, "PortInUseAsTrunkParent", &message));
    }
    if let Some(trunk) = state.trunks.iter().find(|trunk| has_subport(trunk, port)) {
        let message = format!("Port {port} is currently a subport for trunk {}.", text(trunk, "id"));
        return Err(refused(409, "PortInUseAsSubPort", &message));
    }
    Ok(())
}

/// `GET /trunks/{id}/get_subports`, `PUT /trunks/{id}/add_subports` and `remove_subports`.
pub(super) fn act(state: &mut Networking, scope: &Scope, request: &Request, id: &str, action: &str) -> Outcome {
    let mut trunk = state.find(scope, Kind::Trunk, id)?.clone();
    let body = request.json().unwrap_or_default();
    match (request.method.as_str(), action) {
        ("GET", "get_subports") => return Ok(Answer::json(200, &json!({ "sub_ports": trunk["sub_ports"] }))),
        ("PUT", "add_subports") => {
            for sub in items(&body, "sub_ports") {
                let port = text(sub, "port_id");
                state.find(scope, Kind::Port, port)?;
                if trunk_of(state, port).is_some() || state.trunks.iter().any(|trunk| has_subport(trunk, port)) {
                    let message = format!("Port {port} is in use by another trunk.");
                    return Err(refused(409, "TrunkPortInUse", &message));
                }
                if let Some(all) = trunk["sub_ports"].as_array_mut() {
                    all.push(sub.clone());
                }
            }
        }
        ("PUT", "remove_subports") => {
            for sub in items(&body, "sub_ports") {
                let port = text(sub, "port_id");
                if !has_subport(&trunk, port) {
                    let message = format!("SubPort on trunk {id} with parent port {port} could not be found.");
                    return Err(refused(404, "SubPortNotFound", &message));
                }
                if let Some(all) = trunk["sub_ports"].as_array_mut() {
                    all.retain(|own| text(own, "port_id") != port);
                }
            }
        }
        _ => return Err(not_found()),
    }
    state.trunks.insert(trunk);
    state.touch(Kind::Trunk, id);
    let trunk = state.trunks.get(id).cloned().unwrap_or_default();
    Ok(Answer::json(200, &state.view(scope, Kind::Trunk, &trunk, &[])))
}
