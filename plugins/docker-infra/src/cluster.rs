//! DockerCluster: a network, and a load balancer in front of the API servers.
//!
//! Look at the load balancer, decide, do one thing, look again. Its configuration is written by this call alone, from
//! all control-plane machines of the cluster; whoever changes them wakes it.

mod backends;
mod load_balancer;

use std::time::Duration;

use capwasm_sdk::{ClusterAnswer, Context, Endpoint, FailureDomain, Problem, object};
use serde_json::{Value, json};

use crate::config::Configuration;
use crate::engine::{Container, Engine};
use crate::haproxy::{self, PORT};
use crate::kinds::{self, CLUSTER_NAME_LABEL, ClusterSpec, UID_LABEL};
use load_balancer::Act;

/// The load balancer runs with the configuration that the machines ask for.
const AVAILABLE: &str = "LoadBalancerAvailable";
/// Creating, configuring, starting and reloading take four; more means that somebody works against us.
const MOST_ACTS: usize = 8;
/// How long to wait for the engine to finish what it is doing.
const ENGINE_BUSY: Duration = Duration::from_millis(500);

/// What a pass is about.
struct Subject<'a> {
    object: &'a Value,
    spec: ClusterSpec,
    cluster: String,
    /// Of the load balancer's container.
    name: String,
    configuration: Configuration,
}

/// Brings network and load balancer nearer to what is wanted.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem> {
    let cluster = cluster_name(cx, object)
        .ok_or_else(|| Problem::waiting("WaitingForCluster", "no Cluster owns this object yet"))?;
    let subject = Subject {
        object,
        spec: object::spec(object)?,
        name: kinds::load_balancer_name(&cluster)?,
        cluster,
        configuration: Configuration::load(cx.host)?,
    };
    let result = balance(cx, &subject);
    match &result {
        Ok(answer) if answer.provisioned => cx.out.condition(AVAILABLE, Some(true), "Available", ""),
        Ok(_) => cx.out.condition(AVAILABLE, Some(false), "NotAvailable", "the engine is busy with the load balancer"),
        Err(problem) => cx.out.condition(AVAILABLE, Some(false), "NotAvailable", problem.message.clone()),
    };
    result
}

fn cluster_name(cx: &Context<'_>, object: &Value) -> Option<String> {
    let owner = cx.related_one("cluster").map(|cluster| object::name(&cluster).to_owned());
    owner.or_else(|| object::label(object, CLUSTER_NAME_LABEL).map(str::to_owned)).filter(|name| !name.is_empty())
}

fn balance(cx: &mut Context<'_>, subject: &Subject<'_>) -> Result<ClusterAnswer, Problem> {
    if subject.spec.load_balancer.custom_template.is_some() {
        let message = "spec.loadBalancer.customHAProxyConfigTemplateRef is not supported: remove it";
        return Err(Problem::invalid("CustomTemplateUnsupported", message));
    }
    let engine = Engine::new(cx.host);
    let servers =
        backends::of(&cx.host.related("machines"), &cx.host.related("infrastructure-machines"), &subject.cluster);
    let network = &subject.configuration.network;
    let hint = subject.object.pointer("/status/loadBalancer").cloned().unwrap_or_default();
    // What the container is known to hold: from the hint, then from what this pass writes.
    let mut known = Some(object::text(&hint, "/configuration").to_owned()).filter(|print| !print.is_empty());
    let mut written_for = object::text(&hint, "/containerID").to_owned();
    for _ in 0..MOST_ACTS {
        let found = engine.container(&subject.name)?;
        let ipv6 = found.as_ref().is_some_and(|container| container.ipv6(network).is_some());
        let file = haproxy::render(&servers, ipv6);
        let print = haproxy::fingerprint(&file);
        if found.as_ref().is_some_and(|container| container.id != written_for) {
            known = None;
        }
        match load_balancer::decide(subject, found.as_ref(), known.as_deref(), &print) {
            Act::Create => load_balancer::create(cx, subject, &engine)?,
            Act::Compare(id) => {
                known = Some(load_balancer::written(&engine, &id)?);
                written_for = id;
            }
            Act::Configure { id, reload } => {
                load_balancer::write(&engine, &id, &file)?;
                if reload {
                    engine.signal(&id, "HUP")?;
                }
                (known, written_for) = (Some(print), id);
            }
            Act::Start(id) => engine.start(&id)?,
            Act::Wait => {
                cx.out.wake_after(ENGINE_BUSY);
                // Failure domains do not come and go with the load balancer.
                return Ok(ClusterAnswer { failure_domains: failure_domains(subject), ..ClusterAnswer::default() });
            }
            Act::Use { id, address } => {
                cx.out.status(json!({"loadBalancer": {"containerID": id, "configuration": print}}));
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
    let port = if given.port == 0 { PORT } else { given.port };
    Ok(ClusterAnswer {
        provisioned: true,
        endpoint: Some(Endpoint { host: host.to_owned(), port }),
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

/// Removes the load balancer. The network stays: other clusters share it.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    cx.out.condition(AVAILABLE, Some(false), "Deleting", "");
    let engine = Engine::new(cx.host);
    let mut ids = engine.containers_labelled(UID_LABEL, object::uid(object))?;
    if ids.is_empty()
        && let Some(cluster) = cluster_name(cx, object)
    {
        let spec: ClusterSpec = object::spec(object)?;
        let network = Configuration::load(cx.host)?.network;
        let moved = engine.container(&kinds::load_balancer_name(&cluster)?)?;
        ids.extend(moved.filter(|found| is_endpoint(found, &spec, &network)).map(|found| found.id));
    }
    let mut gone = true;
    for id in ids {
        gone &= engine.remove(&id)?;
    }
    if !gone {
        cx.out.wake_after(ENGINE_BUSY);
    }
    Ok(gone)
}

/// Whether a container of ours is what the object's endpoint names; so it is found after a move gave the object
/// another uid.
fn is_endpoint(container: &Container, spec: &ClusterSpec, network: &str) -> bool {
    container.label(UID_LABEL).is_some()
        && container.ipv4(network).is_some_and(|ip| ip == spec.control_plane_endpoint.host)
}
