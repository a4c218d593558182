//! `POST /servers/{id}/action`.

use serde_json::{Value, json};

use super::{Call, build, denied, invalid, refused};
use crate::answer::{Answer, Outcome};
use crate::cloud::{State, now};
use crate::nodes;
use crate::table::text;

pub(super) fn act(call: &Call<'_>, state: &mut State, id: &str) -> Outcome {
    let body = call.request.json().unwrap_or_default();
    let Some((action, given)) = body.as_object().and_then(|body| body.iter().next()) else {
        return Err(invalid("Malformed request body"));
    };
    let Some(server) = state.compute.servers.get_mut(id) else { return Ok(Answer::empty(202)) };
    let on_host = !server["_host"].is_null();
    match action.as_str() {
        "os-stop" | "os-start" | "reboot" | "os-getConsoleOutput" if !on_host => {
            return Err(refused(409, &format!("Instance {id} is not ready")));
        }
        "os-stop" => {
            expect(server, id, action, "active")?;
            change(server, "SHUTOFF", "stopped", 4);
            nodes::halt(call.cloud, id);
        }
        "os-start" => {
            expect(server, id, action, "stopped")?;
            change(server, "ACTIVE", "active", 1);
            nodes::resume(call.cloud, id);
        }
        "reboot" => {
            expect(server, id, action, "active")?;
            change(server, "ACTIVE", "active", 1);
            nodes::halt(call.cloud, id);
            nodes::resume(call.cloud, id);
        }
        "os-getConsoleOutput" => {
            let log = nodes::console(call.cloud, id);
            return Ok(Answer::json(200, &json!({ "output": log })));
        }
        "os-resetState" => {
            if !call.scope.admin {
                return Err(denied("os_compute_api:os-admin-actions:reset_state"));
            }
            match text(given, "state") {
                "error" => {
                    server["status"] = json!("ERROR");
                    server["_vm_state"] = json!("error");
                }
                "active" => change(server, "ACTIVE", "active", 1),
                other => return Err(invalid(&format!("Invalid input for field/attribute state. Value: {other}."))),
            }
            server["_task"] = Value::Null;
        }
        "forceDelete" => build::delete(call.cloud, state, id),
        other => return Err(invalid(&format!("There is no such action: {other}"))),
    }
    Ok(Answer::empty(202))
}

/// Checks that an action fits the server's state.
fn expect(server: &Value, id: &str, action: &str, wanted: &str) -> Result<(), Answer> {
    let state = text(server, "_vm_state");
    if state == wanted {
        return Ok(());
    }
    let action = action.trim_start_matches("os-");
    Err(refused(409, &format!("Cannot '{action}' instance {id} while it is in vm_state {state}")))
}

fn change(server: &mut Value, status: &str, vm_state: &str, power: u64) {
    server["status"] = json!(status);
    server["_vm_state"] = json!(vm_state);
    server["_power"] = json!(power);
    server["updated"] = json!(now());
}
