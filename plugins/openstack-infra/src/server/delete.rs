//! The end of a server: the server, what it did not take along, its ports and trunks, and its floating address.

use capwasm_sdk::{Context, Problem};
use serde_json::{Value, json};

use super::{Subject, connect, failed, floating, ports, state, volumes};
use crate::cloud::{Cloud, Gone};
use crate::compute::{self, Server};
use crate::kinds::INSTANCE_READY;
use crate::network::{self, Port};
use crate::port::{self, Deletion};
use crate::{late, names};

/// Deletes server, volumes, ports and floating IP, in this order; true when nothing is left.
pub fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let subject = Subject::read(object)?;
    let cloud = connect(cx, object)?;
    if !server_is_gone(cx, &cloud, &subject)? {
        return Ok(false);
    }
    if !volumes::delete(cx, &cloud, subject.name, &volumes::wanted(&subject.spec))? {
        return Ok(false);
    }
    if !ports_are_gone(cx, &cloud, &subject)? || !floating::release(cx, &subject)? {
        return Ok(false);
    }
    // The request for a server or port may have outlived who sent it.
    let may_come = subject.status.resolved.is_some() && subject.status.instance_id.is_none();
    Ok(!may_come || late::is_over(cx, object))
}

/// Deletes the ports with their trunks, and what those carry.
fn ports_are_gone(cx: &mut Context<'_>, cloud: &Cloud<'_>, subject: &Subject<'_>) -> Result<bool, Problem> {
    let known: Vec<String> = subject.status.resources.sub_ports.iter().map(|port| port.id.clone()).collect();
    let mut carried = Vec::new();
    for (port, has_trunk) in all_ports(cloud, subject)? {
        match port::delete_port(cloud, &port, has_trunk, &known)? {
            Deletion::Gone(Gone::Now) => {
                cx.out.event("SuccessfulDeletePort", format!("Deleted port with id {port}"));
            }
            Deletion::Gone(Gone::Already) => {}
            Deletion::Carries(ports) => carried.extend(ports),
        }
    }
    if !carried.is_empty() {
        carried.extend(known);
        carried.sort();
        carried.dedup();
        let ports: Vec<Value> = carried.into_iter().map(|id| json!({"id": id})).collect();
        cx.out.status(json!({"resources": {"subPorts": ports}}));
        cx.out.wake_when_applied();
        return Ok(false);
    }
    for port in &known {
        network::delete::<Port>(cloud, port)?;
    }
    Ok(true)
}

fn server_is_gone(cx: &mut Context<'_>, cloud: &Cloud<'_>, subject: &Subject<'_>) -> Result<bool, Problem> {
    let Some(server) = left(cloud, subject)? else { return Ok(true) };
    if !server.is_being_deleted() {
        compute::delete_server(cloud, &server.id).map_err(|failure| {
            cx.out.warning("FailedDeleteServer", format!("Failed to delete server {}: {failure}", subject.name));
            failed(cx, state::DELETE_FAILED, "Deleting instance failed", failure.into())
        })?;
        cx.out.event("DeletingServer", format!("Nova was asked to delete server {}", subject.name));
    }
    cx.out.condition(INSTANCE_READY, Some(false), "Deleting", "");
    cx.out.wake_after(state::patience(late::deleting_for(cx, subject.object)));
    Ok(false)
}

/// What there is to delete. Another's server of our name is none of ours.
fn left(cloud: &Cloud<'_>, subject: &Subject<'_>) -> Result<Option<Server>, Problem> {
    let found = match &subject.status.instance_id {
        Some(id) => compute::server(cloud, id)?,
        None => match subject.existing(cloud) {
            Err(problem) if problem.reason == "ServerNameTaken" => None,
            other => other?,
        },
    };
    Ok(found.filter(|server| !server.is_gone()))
}

/// Ids of all ports, and whether a trunk was made on each: those of the status, and by name those that were made and not
/// written down.
fn all_ports(cloud: &Cloud<'_>, subject: &Subject<'_>) -> Result<Vec<(String, bool)>, Problem> {
    let known = &subject.status.resources.ports;
    let mut all = Vec::new();
    match &subject.status.resolved {
        Some(resolved) => {
            for (index, wanted) in resolved.ports.iter().enumerate() {
                match known.get(index) {
                    Some(port) => all.push((port.id.clone(), wanted.has_trunk())),
                    None => {
                        let (network, description) = (Some(wanted.network_id.as_str()), &wanted.description);
                        let found = ports::ours(cloud, &wanted.name, network, description, subject.cluster)?;
                        all.extend(found.into_iter().map(|port| (port.id, wanted.has_trunk())));
                    }
                }
            }
        }
        // Nothing was made, unless the status was lost when the object was moved.
        None => {
            let usual = subject.port_description();
            for (index, wanted) in subject.spec.ports.iter().enumerate() {
                let name = names::port(subject.name, index, wanted.name_suffix.as_deref());
                let description = wanted.description.as_ref().unwrap_or(&usual);
                let has_trunk = wanted.trunk.unwrap_or(subject.spec.trunk);
                let found = ports::ours(cloud, &name, None, description, subject.cluster)?;
                all.extend(found.into_iter().map(|port| (port.id, has_trunk)));
            }
        }
    }
    Ok(all)
}
