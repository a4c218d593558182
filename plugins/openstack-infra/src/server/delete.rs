//! The end of a server: the server, what it did not take along, its ports and trunks, and its floating address.

use capwasm_sdk::{Context, Problem, object};
use serde_json::Value;

use super::{Subject, connect, failed, floating, ports, state, volumes};
use crate::cloud::{Cloud, Gone};
use crate::compute::{self, Server};
use crate::kinds::INSTANCE_READY;
use crate::{clock, names, port};

/// True when nothing is left.
pub fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let subject = Subject::read(object)?;
    let cloud = connect(cx, object)?;
    if !server_is_gone(cx, &cloud, &subject)? {
        return Ok(false);
    }
    if !volumes::delete(cx, &cloud, subject.name, &volumes::wanted(&subject.spec))? {
        return Ok(false);
    }
    for (port, has_trunk) in all_ports(&cloud, &subject)? {
        if port::delete_port(&cloud, &port, has_trunk)? == Gone::Now {
            cx.out.event("SuccessfulDeletePort", format!("Deleted port with id {port}"));
        }
    }
    floating::release(cx, &subject)
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
    let since = clock::parse(object::text(subject.object, "/metadata/deletionTimestamp"));
    let age = since.map_or(0, |since| (cx.host.now_ms() / 1_000).saturating_sub(since));
    cx.out.wake_after(state::patience(age));
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
