//! When a machine's certificates end, measured once on the API server's own, and written where core reads it.

use std::time::Duration;

use capwasm_api::conditions;
use capwasm_api::names::annotations;
use capwasm_sdk::{Context, Level, Place, Refusal, object};
use serde_json::json;

use crate::machine::Machine;
use crate::names;
use crate::observe::{Observed, timestamp};

/// A certificate that could not be looked at is tried again after this time.
const RETRY: Duration = Duration::from_secs(60);
const PORT: u16 = 6443;

/// Measures machines that have not been measured; nothing that goes wrong here holds anything else up.
pub fn record(cx: &mut Context<'_>, observed: &Observed) {
    for machine in observed.machines.iter().filter(|machine| needs(machine)) {
        let Some(node) = &machine.node else { continue };
        let port = port(machine);
        let measured = cx
            .host
            .serving_certificate("kube-system", &format!("kube-apiserver-{node}"), port)
            .and_then(|pem| cx.host.not_after_ms(&pem));
        match measured {
            Ok(end) => {
                let target = match machine.config_target().filter(|_| machine.config.is_some()) {
                    Some(config) => config,
                    None => machine.target(),
                };
                let merge = json!({"metadata": {"annotations": {annotations::CERTIFICATES_EXPIRY: conditions::timestamp(timestamp(end))}}});
                cx.out.patch(format!("expiry-{}", machine.name), Place::Management, target, merge);
            }
            // A host that cannot do this will not learn it meanwhile.
            Err(refused) if refused.refusal == Refusal::Unsupported => return,
            Err(refused) => {
                let fields = [("machine", machine.name.as_str()), ("problem", refused.message.as_str())];
                cx.host.log(Level::Info, "unable to look at an API server's certificate", &fields);
                cx.out.wake_after(RETRY);
            }
        }
    }
}

fn needs(machine: &Machine) -> bool {
    let noted = |object: &serde_json::Value| object::annotation(object, annotations::CERTIFICATES_EXPIRY).is_some();
    machine.deleting.is_none()
        && machine.holds(names::API_SERVER_POD_HEALTHY) == Some(true)
        && !noted(&machine.stored)
        && !machine.config.as_ref().is_some_and(noted)
}

/// Where the machine's API server listens.
fn port(machine: &Machine) -> u16 {
    let configured = machine.config.as_ref().and_then(|config| {
        let port = |at: &str| config.pointer(&format!("/spec/{at}/localAPIEndpoint/bindPort"))?.as_u64();
        port("initConfiguration").or_else(|| port("joinConfiguration/controlPlane"))
    });
    configured.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0).unwrap_or(PORT)
}
