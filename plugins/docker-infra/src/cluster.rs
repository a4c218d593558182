//! DockerCluster: a network, and a load balancer in front of the API servers.
//!
//! Look at the load balancer, decide, do one thing, look again. Its configuration is written by this call alone, from
//! all control-plane machines of the cluster; whoever changes them wakes it.

mod backends;
mod load_balancer;

use std::time::Duration;

use capwasm_api::names::fingerprint;
use capwasm_sdk::{ClusterAnswer, Context, Endpoint, FailureDomain, ObjectRef, Optional, Problem, object};
use serde_json::{Value, json};

use crate::bootstrap::last_lines;
use crate::config::Configuration;
use crate::engine::{Container, Engine, EngineError};
use crate::family::{self, Families, Family};
use crate::haproxy::{self, Front, PORT};
use crate::kinds::{self, CLUSTER_NAME_LABEL, ClusterSpec};
use crate::{deprecated, network, ownership};
use load_balancer::Act;

/// The load balancer runs with the configuration that the machines ask for.
const AVAILABLE: &str = "LoadBalancerAvailable";
/// Creating, configuring, starting and reloading take four; more means that somebody works against us.
const MOST_ACTS: usize = 8;
/// How long to wait for the engine to finish what it is doing.
const ENGINE_BUSY: Duration = Duration::from_millis(500);
/// Between two looks at a load balancer that does not stay up.
const RESTARTING: Duration = Duration::from_secs(2);
/// Between two looks for what was asked for and not answered.
const OWED: Duration = Duration::from_secs(5);

/// One pass over a DockerCluster.
struct Subject<'a> {
    object: &'a Value,
    spec: ClusterSpec,
    cluster: String,
    /// Of the load balancer's container.
    name: String,
    families: Families,
    configuration: Configuration,
}

impl Subject<'_> {
    fn port(&self) -> u16 {
        match self.spec.control_plane_endpoint.port {
            0 => PORT,
            port => port,
        }
    }
}

/// Makes the network and the load balancer, and puts the control-plane machines behind it.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem> {
    let cluster = cluster_name(cx, object)
        .ok_or_else(|| Problem::waiting("WaitingForCluster", "no Cluster owns this object yet"))?;
    let result = subject(cx, object, cluster).and_then(|subject| balance(cx, &subject));
    match &result {
        Ok(answer) if answer.provisioned => {
            cx.out.condition(AVAILABLE, Some(true), "Available", "");
        }
        // It waits, and has said for what.
        Ok(_) => {}
        Err(problem) => {
            let reason = ownership::reason(object, AVAILABLE, problem, "NotAvailable");
            cx.out.condition(AVAILABLE, Some(false), reason, problem.message.clone());
        }
    }
    deprecated::conditions(cx, object, &[(AVAILABLE, "LoadBalancerProvisioningFailed")]);
    result
}

fn subject<'a>(cx: &Context<'_>, object: &'a Value, cluster: String) -> Result<Subject<'a>, Problem> {
    Ok(Subject {
        object,
        spec: object::spec(object)?,
        name: kinds::load_balancer_name(&cluster)?,
        families: cx.related_one("cluster").map_or(Ok(Families::default()), |cluster| Families::of(&cluster))?,
        cluster,
        configuration: Configuration::load(cx.host)?,
    })
}

fn cluster_name(cx: &Context<'_>, object: &Value) -> Option<String> {
    let owner = cx.related_one("cluster").map(|cluster| object::name(&cluster).to_owned());
    owner.or_else(|| object::label(object, CLUSTER_NAME_LABEL).map(str::to_owned)).filter(|name| !name.is_empty())
}

fn balance(cx: &mut Context<'_>, subject: &Subject<'_>) -> Result<ClusterAnswer, Problem> {
    let template = own_template(cx, subject)?;
    let engine = Engine::new(cx.host);
    let servers = backends::of(
        &cx.host.related("machines"),
        &cx.host.related("infrastructure-machines"),
        &subject.cluster,
        subject.families.first(),
        &|docker_machine, name| address_of(subject, &engine, docker_machine, name),
    )?;
    let front = Front { port: subject.port(), ipv6: subject.families.has(Family::V6), template: template.as_deref() };
    let file = haproxy::render(&servers, &front).map_err(|error| Problem::invalid("BadTemplate", error.to_string()))?;
    let print = fingerprint(&file);
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let hint = subject.object.pointer("/status/loadBalancer").cloned().unwrap_or_default();
    // What the container is known to hold: from the hint, then from what this pass writes.
    let mut known = Some(object::text(&hint, "/configuration").to_owned()).filter(|print| !print.is_empty());
    let mut written_for = object::text(&hint, "/containerID").to_owned();
    for _ in 0..MOST_ACTS {
        let found = engine.container(&subject.name)?;
        if found.as_ref().is_some_and(|container| container.id != written_for) {
            known = None;
        }
        match load_balancer::decide(subject, found.as_ref(), known.as_deref(), &print) {
            Act::Create => load_balancer::create(cx, subject, &engine)?,
            Act::Configure { id, reload } => {
                load_balancer::write(&engine, &id, &file)?;
                if reload {
                    engine.signal(&id, "HUP")?;
                }
                (known, written_for) = (Some(print.clone()), id);
            }
            Act::Start(id) => load_balancer::start(subject, &engine, &id)?,
            Act::Wait(state) => {
                let message = match state.as_str() {
                    // Its configuration may be no good.
                    "restarting" => {
                        cx.out.wake_after(RESTARTING);
                        let log = engine.logs(&subject.name, 10).unwrap_or_else(|error| error.to_string());
                        format!("the load balancer ended and is started again; its last lines: {}", last_lines(&log))
                    }
                    state => {
                        cx.out.wake_after(ENGINE_BUSY);
                        format!("the load balancer is {state}")
                    }
                };
                cx.out.condition(AVAILABLE, Some(false), "NotAvailable", message);
                // Failure domains do not come and go with the load balancer.
                return Ok(ClusterAnswer { failure_domains: failure_domains(subject), ..ClusterAnswer::default() });
            }
            Act::Use { id, address } => {
                cx.out.status(json!({"loadBalancer": {"containerID": id, "configuration": print, "backends": names}}));
                let answer = answer(subject, object::text(&hint, "/address"), &address)?;
                // Only now: while the endpoint is wrong, the address that was right must be remembered.
                cx.out.status(json!({"loadBalancer": {"address": address}}));
                return Ok(answer);
            }
            Act::Refuse(problem) => return Err(problem),
        }
    }
    let message = "the load balancer does not stay as it was made; is somebody else changing it?";
    Err(Problem::transient("LoadBalancerUnstable", message))
}

/// Where a machine's container is, in the load balancer's family; none while it has no address.
fn address_of(
    subject: &Subject<'_>,
    engine: &Engine<'_>,
    docker_machine: &Value,
    name: &str,
) -> Result<Option<String>, EngineError> {
    let names_it = object::text(docker_machine, "/spec/providerID") == kinds::provider_id(name);
    let found = engine.container(name)?.filter(|found| ownership::is_ours(found, docker_machine, names_it));
    let network = &subject.configuration.network;
    Ok(found.and_then(|found| family::address(&found, subject.families.first(), network).map(str::to_owned)))
}

/// An endpoint that was given from outside is left alone. One that was ours and is no longer the load balancer's
/// cannot be repaired from here, because machines and certificates name it.
fn answer(subject: &Subject<'_>, address_before: &str, address: &str) -> Result<ClusterAnswer, Problem> {
    let given = &subject.spec.control_plane_endpoint;
    if !given.host.is_empty() && given.host == address_before && address != address_before {
        let message = format!(
            "the load balancer moved from {address_before} to {address}, but the cluster's endpoint cannot change"
        );
        return Err(Problem::terminal("LoadBalancerMoved", message));
    }
    let host = if given.host.is_empty() { address } else { &given.host };
    Ok(ClusterAnswer {
        provisioned: true,
        endpoint: Some(Endpoint { host: host.to_owned(), port: subject.port() }),
        failure_domains: failure_domains(subject),
    })
}

fn failure_domains(subject: &Subject<'_>) -> Vec<FailureDomain> {
    let domains = subject.spec.failure_domains.iter().map(|domain| FailureDomain {
        name: domain.name.clone(),
        control_plane: domain.control_plane,
        attributes: domain.attributes.clone().into_iter().collect(),
    });
    domains.collect()
}

/// The cluster's own template, from key `value` of the ConfigMap that it names.
fn own_template(cx: &Context<'_>, subject: &Subject<'_>) -> Result<Option<String>, Problem> {
    let name = &subject.spec.load_balancer.custom_template.name;
    if name.is_empty() {
        return Ok(None);
    }
    let waiting = |what: &str| Problem::waiting("WaitingForTemplate", format!("ConfigMap {name} {what}"));
    let found = cx.host.lookup(&ObjectRef::new("v1", "ConfigMap", name)).optional()?;
    let found = found.ok_or_else(|| waiting("with the load balancer's template is not there"))?;
    match object::text(&found, "/data/value") {
        "" => Err(waiting("has no key 'value' with the load balancer's template")),
        template => Ok(Some(template.to_owned())),
    }
}

/// Removes the load balancer, and the network if it was this provider's and no other cluster uses it.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let gone = remove(cx, object);
    // Until it is sure that nothing more comes, the reason for doubt must stay.
    let owed = ownership::is_owed(cx, object, AVAILABLE);
    let reason = if owed { ownership::UNANSWERED } else { "Deleting" };
    cx.out.condition(AVAILABLE, Some(false), reason, "");
    deprecated::conditions(cx, object, &[(AVAILABLE, "Deleting")]);
    if !gone? || owed {
        cx.out.wake_after(if owed { OWED } else { ENGINE_BUSY });
        return Ok(false);
    }
    Ok(true)
}

fn remove(cx: &Context<'_>, object: &Value) -> Result<bool, Problem> {
    let engine = Engine::new(cx.host);
    let network = Configuration::load(cx.host)?.network;
    let spec: ClusterSpec = object::spec(object)?;
    let cluster = cluster_name(cx, object).unwrap_or_default();
    // A name that is too long for a container was never one.
    let name = kinds::load_balancer_name(&cluster).ok().filter(|_| !cluster.is_empty()).unwrap_or_default();
    let gone = ownership::remove(&engine, object, &name, |found| names_it(found, &spec, &network))?;
    if gone {
        network::release(&engine, &network)?;
    }
    Ok(gone)
}

/// Whether a container is what the object's endpoint names.
fn names_it(container: &Container, spec: &ClusterSpec, network: &str) -> bool {
    let host = spec.control_plane_endpoint.host.as_str();
    !host.is_empty() && (container.ipv4(network) == Some(host) || container.ipv6(network) == Some(host))
}
