//! Events about what was done in OpenStack, with upstream's reasons: `SuccessfulCreateNetwork`, `FailedDeleteRouter`, ….

use capwasm_sdk::{Context, Problem};

use crate::cloud::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Act {
    Create,
    Update,
    Delete,
    Associate,
    Disassociate,
}

/// To what: the word of reasons, and the word of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What(pub &'static str, pub &'static str);

pub const NETWORK: What = What("Network", "network");
pub const SUBNET: What = What("Subnet", "subnet");
pub const ROUTER: What = What("Router", "router");
pub const PORT: What = What("Port", "port");
pub const SECURITY_GROUP: What = What("SecurityGroup", "security group");
pub const FLOATING_IP: What = What("FloatingIP", "floating IP");
pub const LOAD_BALANCER: What = What("LoadBalancer", "load balancer");
pub const LISTENER: What = What("Listener", "listener");
pub const POOL: What = What("Pool", "pool");
pub const MONITOR: What = What("Monitor", "monitor");
pub const VOLUME: What = What("Volume", "volume");
pub const SNAPSHOT: What = What("Snapshot", "snapshot");

impl Act {
    /// The verb of an event's reason, and the first word of its message.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Act::Create => ("Create", "Created"),
            Act::Update => ("Update", "Updated"),
            Act::Delete => ("Delete", "Deleted"),
            Act::Associate => ("Associate", "Associated"),
            Act::Disassociate => ("Disassociate", "Disassociated"),
        }
    }
}

/// Tells an act that succeeded: `SuccessfulCreateNetwork`.
pub fn done(cx: &mut Context<'_>, act: Act, what: What, name: &str, id: &str) {
    let (verb, past) = act.words();
    cx.out.event(&format!("Successful{verb}{}", what.0), format!("{past} {} {name} with id {id}", what.1));
}

/// It was not done: says so, and makes it the problem of the pass.
pub fn failed(cx: &mut Context<'_>, act: Act, what: What, name: &str, failure: Failure) -> Problem {
    let (verb, _) = act.words();
    let message = format!("unable to {} {} {name}: {failure}", verb.to_lowercase(), what.1);
    cx.out.warning(&format!("Failed{verb}{}", what.0), message);
    Problem::from(failure).context(format!("unable to {} {} {name}", verb.to_lowercase(), what.1))
}
