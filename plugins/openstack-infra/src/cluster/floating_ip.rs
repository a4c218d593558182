//! Floating IPs of the API server and the bastion.
//!
//! One that is made for a port is made with it, in one request: then it is found again by the port, and cannot be made
//! twice.

use capwasm_sdk::{Context, Problem};
use serde_json::json;

use super::events::{self, Act};
use super::pass::Pass;
use crate::cloud::Query;
use crate::network::{self, FloatingIp};

/// What a floating IP should be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'w> {
    /// Where it leads; nowhere yet without it.
    pub port: Option<&'w str>,
    /// The address that it has to have; any without it.
    pub address: Option<&'w str>,
}

/// What is to be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    Make,
    Connect(FloatingIp),
    Use(FloatingIp),
}

/// Finds it, or makes it; its address is in the answer.
pub fn ensure(cx: &mut Context<'_>, pass: &Pass<'_>, wanted: Wanted<'_>) -> Result<FloatingIp, Problem> {
    let found: Vec<FloatingIp> = network::list(&pass.cloud, &query(pass, wanted))?;
    let mut used = match decide(found, wanted) {
        Plan::Use(found) => found,
        Plan::Make => make(cx, pass, wanted)?,
        Plan::Connect(found) => {
            let name = found.floating_ip_address.clone();
            let changed = network::update::<FloatingIp>(&pass.cloud, &found.id, json!({"port_id": wanted.port}))
                .map_err(|failure| events::failed(cx, Act::Associate, events::FLOATING_IP, &name, failure))?;
            events::done(cx, Act::Associate, events::FLOATING_IP, &name, &changed.id);
            changed
        }
    };
    // One that somebody else made stays as it is.
    if used.description == pass.names.description() {
        used.tags = pass.tag::<FloatingIp>(&used.id, &used.tags)?;
    }
    Ok(used)
}

/// By the address that it has to have, by its port, or by the description of the cluster's.
fn query(pass: &Pass<'_>, wanted: Wanted<'_>) -> Query {
    match (wanted.address, wanted.port) {
        (Some(address), _) => Query::new().with("floating_ip_address", address),
        (None, Some(port)) => Query::new().with("port_id", port),
        (None, None) => {
            Query::new().with("description", pass.names.description()).with("project_id", pass.cloud.project_id())
        }
    }
}

fn decide(found: Vec<FloatingIp>, wanted: Wanted<'_>) -> Plan {
    match found.into_iter().min_by(|one, other| one.id.cmp(&other.id)) {
        None => Plan::Make,
        Some(found) if wanted.port.is_some() && found.port_id.as_deref() != wanted.port => Plan::Connect(found),
        Some(found) => Plan::Use(found),
    }
}

fn make(cx: &mut Context<'_>, pass: &Pass<'_>, wanted: Wanted<'_>) -> Result<FloatingIp, Problem> {
    let external = pass.status.external_network.as_ref().ok_or_else(|| {
        let message =
            "a floating IP needs an external network, and there is none: make one, or set disableAPIServerFloatingIP";
        Problem::invalid("NoExternalNetwork", message)
    })?;
    let mut fields = json!({"floating_network_id": external.id, "description": pass.names.description()});
    if let Some(port) = wanted.port {
        fields["port_id"] = port.into();
    }
    if let Some(address) = wanted.address {
        fields["floating_ip_address"] = address.into();
    }
    let name = wanted.address.unwrap_or("of the cluster").to_owned();
    let made = network::create::<FloatingIp>(&pass.cloud, fields)
        .map_err(|failure| events::failed(cx, Act::Create, events::FLOATING_IP, &name, failure))?;
    events::done(cx, Act::Create, events::FLOATING_IP, &made.floating_ip_address, &made.id);
    Ok(made)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn what_is_there_is_used_and_led_to_the_port() {
        let ip = |id: &str, port: Option<&str>| FloatingIp {
            id: id.to_owned(),
            port_id: port.map(str::to_owned),
            ..FloatingIp::default()
        };
        let to_port = Wanted { port: Some("p"), address: None };
        assert_eq!(decide(vec![], to_port), Plan::Make);
        assert_eq!(decide(vec![ip("b", Some("p")), ip("a", Some("p"))], to_port), Plan::Use(ip("a", Some("p"))));
        assert_eq!(decide(vec![ip("a", None)], to_port), Plan::Connect(ip("a", None)));
        assert_eq!(decide(vec![ip("a", Some("q"))], to_port), Plan::Connect(ip("a", Some("q"))));
        assert_eq!(decide(vec![ip("a", Some("q"))], Wanted::default()), Plan::Use(ip("a", Some("q"))));
    }
}
