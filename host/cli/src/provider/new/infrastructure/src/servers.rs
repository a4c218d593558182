//! A stand-in for a cloud: a server is a ConfigMap. Replace it by requests to the real one.
//!
//! What stays: a server is named for the object that it is made for, so that a call which is repeated from its start finds what the
//! last one made.

use capwasm_sdk::{Context, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Value, json};

use crate::kinds::Size;

/// A server that there is.
pub struct Server {
    /// Unique in the cloud.
    pub id: String,
    /// What it answers to.
    pub address: String,
}

/// The server of a machine, if there is one. Reading it wakes the machine when it appears, changes or goes.
pub fn find(cx: &Context<'_>, machine: &Value) -> Result<Option<Server>, Problem> {
    let found = cx.host.lookup(&reference(machine)).optional()?;
    Ok(found.map(|found| Server {
        id: object::name(&found).to_owned(),
        address: object::text(&found, "/data/address").to_owned(),
    }))
}

/// Asks for one.
pub fn start(cx: &mut Context<'_>, machine: &Value, size: Size, user_data: &[u8]) {
    let server = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": reference(machine).name, "ownerReferences": [object::owner_reference(machine)]},
        // What a machine boots with holds secrets: a real cloud gets it, a ConfigMap does not.
        "data": {"size": format!("{size:?}"), "userDataBytes": user_data.len().to_string(), "address": "192.0.2.1"},
    });
    cx.out.create("start", Place::Management, server);
}

/// Asks for its end; true when it is gone.
pub fn stop(cx: &mut Context<'_>, machine: &Value) -> Result<bool, Problem> {
    if find(cx, machine)?.is_none() {
        return Ok(true);
    }
    cx.out.delete("stop", Place::Management, reference(machine), None);
    Ok(false)
}

fn reference(machine: &Value) -> ObjectRef {
    ObjectRef::new("v1", "ConfigMap", format!("server-{}", object::uid(machine)))
}
