//! OpenStackCluster: what all machines of a cluster share.
//!
//! A pass goes through the parts in order: network and security groups, the endpoint, failure domains; then who is behind
//! the load balancer, and the bastion. Of each part a fingerprint of what was wanted is kept in the status: a part whose
//! fingerprint holds is not looked at again, so that an unchanged cluster costs one read in ten minutes, and a pass that
//! waits for Octavia asks for nothing else. Without fingerprints everything is found again in OpenStack by its name.

mod bastion;
mod cidr;
mod deletion;
mod drift;
mod endpoint;
mod events;
mod external;
mod failure_domains;
mod floating_ip;
mod janitor;
mod load_balancer;
mod members;
mod network;
mod pass;
mod router;
mod rules;
mod security_groups;
mod spec;
mod status;
#[cfg(test)]
mod tests;

use capwasm_api::names::fingerprint;
use capwasm_sdk::{ClusterAnswer, Context, FailureDomain, Fault, Problem, object};
use serde_json::{Value, json};

use crate::kinds::{API_ENDPOINT_READY, NETWORK_READY, ROUTER_READY, SECURITY_GROUPS_READY};
use crate::late;
use pass::{Pass, READY, pause};
use status::Status;

/// Reason of conditions whose part failed, upstream's.
const OPENSTACK_ERROR: &str = "OpenStackError";
/// Reason of failed security groups, upstream's.
const SECURITY_GROUPS_FAILED: &str = "SecurityGroupReconcileFailed";
/// Reason of a failed endpoint, upstream's.
const ENDPOINT_FAILED: &str = "APIEndpointConfigFailed";
/// Reason of conditions while the object is being deleted.
const DELETING: &str = "Deleting";

/// Keys of `status.applied`, which has a fingerprint of each part of the spec.
const NETWORK: &str = "network";
const ENDPOINT: &str = "endpoint";
const FAILURE_DOMAINS: &str = "failureDomains";

/// Makes or changes the cluster's infrastructure, one part after the other.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem> {
    let mut pass = Pass::begin(cx, object).inspect_err(|problem| come_back(cx, problem))?;
    let answer = bring(cx, &mut pass);
    write(cx, &pass.status);
    if let Err(problem) = &answer {
        come_back(cx, problem);
    }
    answer
}

/// What is waited for in OpenStack wakes nobody.
fn come_back(cx: &mut Context<'_>, problem: &Problem) {
    if let (Fault::Waiting, Some(delay)) = (problem.fault, problem.retry_after) {
        cx.out.wake_after(delay);
    }
}

fn bring(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<ClusterAnswer, Problem> {
    let mut is_unchanged = true;
    let print = network_print(pass);
    if pass.status.network.is_none() || !pass.status.is_applied(NETWORK, &print) {
        is_unchanged = false;
        // Whatever comes after it has to be looked at as well.
        forget(&mut pass.status);
        networks(cx, pass)?;
        pass.status.set_applied(NETWORK, Some(print));
    }
    let print = endpoint_print(pass);
    let known = endpoint::known(&pass.spec, &pass.status).filter(|_| pass.status.is_applied(ENDPOINT, &print));
    let endpoint = match known {
        Some(known) => known,
        None => {
            is_unchanged = false;
            let found = endpoint::reconcile(cx, pass);
            let found = told(cx, API_ENDPOINT_READY, ENDPOINT_FAILED, found).inspect_err(|problem| {
                // What it rests on may be gone.
                if problem.fault != Fault::Waiting {
                    forget(&mut pass.status);
                }
            })?;
            pass.status.set_applied(ENDPOINT, Some(print));
            found
        }
    };
    let failure_domains = failure_domains(pass, &mut is_unchanged)?;
    let answer = ClusterAnswer { provisioned: true, endpoint: Some(endpoint), failure_domains };
    // Upstream has it beside `ready`, which is the host's to write.
    cx.out.status(json!({"initialization": {"provisioned": true}}));
    if !was_provisioned(pass.object) {
        // Nobody should have to wait for a bastion, or for what goes wrong with one.
        cx.out.wake_when_applied();
        return Ok(answer);
    }
    let members = members::reconcile(cx, pass);
    bastion::reconcile(cx, pass)?;
    match members {
        Ok(()) => {}
        Err(problem) if problem.fault == Fault::Waiting => {
            cx.out.wake_after(problem.retry_after.unwrap_or_else(|| pause(cx.host.attempt())));
            return Ok(answer);
        }
        Err(problem) => {
            // The load balancer, or a part of it, may be gone.
            forget(&mut pass.status);
            return Err(problem);
        }
    }
    if is_unchanged && !drift::is_as_made(cx, pass)? {
        let message = "something in OpenStack is not as it was made; everything is looked at again";
        cx.out.warning("OpenStackChanged", message);
        forget(&mut pass.status);
        cx.out.wake_when_applied();
    }
    Ok(answer)
}

/// Whether everything was there once, and this could be written down.
fn was_provisioned(object: &Value) -> bool {
    let is_written = |at: &str| object.pointer(at).and_then(Value::as_bool) == Some(true);
    is_written("/status/ready") || is_written("/status/initialization/provisioned")
}

/// External network, network, router, security groups.
fn networks(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    let found = external::find(pass).and_then(|()| network::reconcile(cx, pass));
    told(cx, NETWORK_READY, OPENSTACK_ERROR, found)?;
    let found = router::reconcile(cx, pass);
    if found.is_err() || pass.status.router.is_some() {
        told(cx, ROUTER_READY, OPENSTACK_ERROR, found)?;
    }
    let found = load_balancer::find_network(pass);
    if let Err(problem) = found {
        return told(cx, API_ENDPOINT_READY, ENDPOINT_FAILED, Err(problem));
    }
    let found = security_groups::reconcile(cx, pass);
    told(cx, SECURITY_GROUPS_READY, SECURITY_GROUPS_FAILED, found)
}

/// Zones are read once, and again when the spec says something else about them.
fn failure_domains(pass: &mut Pass<'_>, is_unchanged: &mut bool) -> Result<Vec<FailureDomain>, Problem> {
    let known = failure_domains::known(pass.object);
    let spec = &pass.spec;
    let wanted = json!([spec.control_plane_availability_zones, spec.control_plane_omit_availability_zone]);
    let print = fingerprint(&wanted.to_string());
    if !known.is_empty() && pass.status.is_applied(FAILURE_DOMAINS, &print) {
        return Ok(known);
    }
    *is_unchanged = false;
    let found = failure_domains::read(pass)?;
    pass.status.set_applied(FAILURE_DOMAINS, Some(print));
    Ok(found)
}

/// Sets the condition of a part from how it ended.
fn told<T>(cx: &mut Context<'_>, condition: &str, reason: &str, ended: Result<T, Problem>) -> Result<T, Problem> {
    match &ended {
        Ok(_) => cx.out.condition(condition, Some(true), READY, ""),
        Err(problem) if problem.fault == Fault::Waiting => {
            cx.out.condition(condition, Some(false), &problem.reason, problem.message.clone())
        }
        Err(problem) => cx.out.condition(condition, Some(false), reason, problem.to_string()),
    };
    ended
}

/// Fields of the spec that the network, its router and the security groups follow from.
const NETWORK_FIELDS: [&str; 13] = [
    "managedSubnets",
    "subnets",
    "primarySubnet",
    "network",
    "router",
    "externalNetwork",
    "externalRouterIPs",
    "networkMTU",
    "disablePortSecurity",
    "disableExternalNetwork",
    "managedSecurityGroups",
    "tags",
    "identityRef",
];

fn fields(object: &Value, names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| object.pointer(&format!("/spec/{name}")).cloned().unwrap_or_default()).collect()
}

fn network_print(pass: &Pass<'_>) -> String {
    let balancer = pass.spec.load_balancer();
    let parts = json!([
        pass.names.base(),
        fields(pass.object, &NETWORK_FIELDS),
        pass.spec.bastion().is_some(),
        pass.spec.load_balancer_ports(),
        balancer.map(|spec| json!([spec.network, spec.subnets])),
    ]);
    fingerprint(&parts.to_string())
}

fn endpoint_print(pass: &Pass<'_>) -> String {
    let spec = &pass.spec;
    let balancer = spec.load_balancer();
    let parts = json!([
        pass.status.applied.get(NETWORK),
        fields(pass.object, &["apiServerLoadBalancer", "apiServerFloatingIP", "apiServerFixedIP", "tags"]),
        spec.disable_api_server_floating_ip,
        spec.load_balancer_ports(),
        balancer.map(|spec| load_balancer::canonical_cidrs(spec, &pass.status).0),
    ]);
    fingerprint(&parts.to_string())
}

/// Drops the fingerprints, so that every part is looked at again.
fn forget(status: &mut Status) {
    for (part, print) in &mut status.applied {
        if part != drift::PART {
            *print = None;
        }
    }
}

fn write(cx: &mut Context<'_>, status: &Status) {
    // A map of strings, lists and texts always has a form in JSON.
    if let Ok(fields) = serde_json::to_value(status) {
        cx.out.status(fields);
    }
}

/// Deletes what was made for the cluster; true when nothing is left.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    // Machines need network and credentials to go. They wake us.
    if ["machines", "infrastructure-machines"].iter().any(|role| !cx.host.related(role).is_empty()) {
        return Ok(false);
    }
    if pass::cluster_name(cx, object).is_none() && object.pointer("/status/network").is_none_or(Value::is_null) {
        // Without an owner nothing was ever made.
        return Ok(true);
    }
    let mut pass = Pass::begin(cx, object).inspect_err(|problem| come_back(cx, problem))?;
    let gone =
        deletion::remove(cx, &mut pass).map(|gone| gone && (was_provisioned(object) || late::is_over(cx, object)));
    forget(&mut pass.status);
    write(cx, &pass.status);
    if let Err(problem) = &gone {
        come_back(cx, problem);
    }
    for condition in [NETWORK_READY, ROUTER_READY, SECURITY_GROUPS_READY, API_ENDPOINT_READY] {
        if object::condition(object, condition).is_some() {
            let message = gone.as_ref().err().map(Problem::to_string).unwrap_or_default();
            cx.out.condition(condition, Some(false), DELETING, message);
        }
    }
    gone
}
