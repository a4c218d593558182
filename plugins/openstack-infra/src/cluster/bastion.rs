//! The bastion: an OpenStackServer of its own, and a floating IP on its port.

use capwasm_api::names::fingerprint;
use capwasm_sdk::{Context, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Value, json};

use super::endpoint;
use super::events::{self, Act};
use super::floating_ip::{self, Wanted};
use super::pass::{Pass, pause};
use super::spec::BastionSpec;
use super::status::BastionStatus;
use crate::cloud::Query;
use crate::kinds::{CLUSTER_NAME_LABEL, V1ALPHA1, V1BETA1};
use crate::machine::server_spec::{self, Defaults};
use crate::network::{self, FloatingIp, Port};

/// Key of its fingerprint in `status.applied`.
const PART: &str = "bastion";
/// Annotation of the OpenStackServer: fingerprint of the spec that it was made from. Upstream's name.
const HASH: &str = "infrastructure.cluster.x-k8s.io/bastion-hash";

/// What is to be done about the OpenStackServer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Create,
    Delete,
    /// It comes or goes, and wakes us when it did.
    Wait,
    Use,
}

fn decide(found: Option<&Value>, wanted: Option<&Value>) -> Step {
    match (found, wanted) {
        (None, None) => Step::Nothing,
        (None, Some(_)) => Step::Create,
        (Some(found), _) if object::is_deleting(found) => Step::Wait,
        (Some(_), None) => Step::Delete,
        (Some(found), Some(wanted)) if !is_made_from(found, wanted) => Step::Delete,
        (Some(found), Some(_)) => {
            let is_ready = found.pointer("/status/ready").and_then(Value::as_bool) == Some(true);
            if is_ready { Step::Use } else { Step::Wait }
        }
    }
}

/// One that somebody else made has no fingerprint: then it has to have at least what is wanted, besides defaults.
fn is_made_from(found: &Value, wanted: &Value) -> bool {
    match object::annotation(found, HASH) {
        Some(hash) => hash == fingerprint(&wanted.to_string()),
        None => contains(found.get("spec").unwrap_or(&Value::Null), wanted),
    }
}

fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| contains(found, wanted))
        }
        (found, wanted) => found == wanted,
    }
}

/// Creates, replaces or removes the bastion's OpenStackServer, and takes its address over.
pub fn reconcile(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    let spec = pass.spec.bastion().cloned();
    let wanted = spec.as_ref().map(|spec| server(pass, spec)).transpose()?;
    let found = cx.host.lookup(&reference(pass)).optional()?;
    match decide(found.as_ref(), wanted.as_ref()) {
        Step::Nothing => {
            pass.status.bastion = None;
            pass.status.set_applied(PART, None);
            Ok(())
        }
        Step::Create => {
            cx.out.create("bastion", Place::Management, object(pass, wanted.unwrap_or_default()));
            pass.status.bastion = Some(BastionStatus { name: pass.names.bastion(), ..BastionStatus::default() });
            Ok(())
        }
        Step::Delete => {
            release(cx, pass)?;
            cx.out.delete(
                "bastion",
                Place::Management,
                reference(pass),
                found.as_ref().map(|found| object::uid(found).to_owned()),
            );
            Ok(())
        }
        Step::Wait => {
            if let (Some(found), Some(_)) = (&found, &wanted) {
                mirror(pass, found);
            }
            Ok(())
        }
        Step::Use => match (found, spec) {
            (Some(found), Some(spec)) => used(cx, pass, &found, &spec),
            _ => Ok(()),
        },
    }
}

/// Deletes it; true when nothing is left.
pub fn remove(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<bool, Problem> {
    let Some(found) = cx.host.lookup(&reference(pass)).optional()? else {
        pass.status.bastion = None;
        return Ok(true);
    };
    if !object::is_deleting(&found) {
        release(cx, pass)?;
        let uid = object::uid(&found).to_owned();
        cx.out.delete("bastion", Place::Management, reference(pass), Some(uid));
    }
    Ok(false)
}

fn reference(pass: &Pass<'_>) -> ObjectRef {
    ObjectRef::new(V1ALPHA1, "OpenStackServer", pass.names.bastion()).in_namespace(object::namespace(pass.object))
}

/// The spec of its OpenStackServer.
fn server(pass: &Pass<'_>, spec: &BastionSpec) -> Result<Value, Problem> {
    // Status as it is now, not as it was read.
    let mut cluster = pass.object.clone();
    object::merge(&mut cluster, &json!({"status": serde_json::to_value(&pass.status).unwrap_or_default()}));
    server_spec::server_spec(
        &spec.spec,
        &Defaults {
            identity: &pass.spec.identity_ref,
            tags: server_spec::tags(&spec.spec, &cluster),
            availability_zone: &spec.availability_zone,
            user_data: None,
            security_group: pass.status.bastion_security_group.as_ref().map(|group| group.id.as_str()),
            cluster: &cluster,
        },
    )
}

fn object(pass: &Pass<'_>, spec: Value) -> Value {
    json!({
        "apiVersion": V1ALPHA1,
        "kind": "OpenStackServer",
        "metadata": {
            "name": pass.names.bastion(),
            "namespace": object::namespace(pass.object),
            "labels": {CLUSTER_NAME_LABEL: pass.cluster},
            "annotations": {HASH: fingerprint(&spec.to_string())},
            "ownerReferences": [{
                "apiVersion": V1BETA1, "kind": "OpenStackCluster", "name": object::name(pass.object),
                "uid": object::uid(pass.object),
            }],
        },
        "spec": spec,
    })
}

/// What the OpenStackServer says, in the cluster's status.
fn mirror(pass: &mut Pass<'_>, found: &Value) {
    let text = |at: &str| Some(object::text(found, at).to_owned()).filter(|text| !text.is_empty());
    let name = pass.names.bastion();
    let status = pass.status.bastion.get_or_insert_default();
    let id = text("/status/instanceID");
    if status.id != id {
        (status.ip, status.floating_ip) = (None, None);
    }
    status.id = id;
    status.name = name;
    status.state = text("/status/instanceState");
    status.ssh_key_name = text("/spec/sshKeyName");
    status.resolved = found.pointer("/status/resolved").cloned();
    status.resources = found.pointer("/status/resources").cloned();
}

/// Its floating IP leads to its port in the cluster's network.
fn used(cx: &mut Context<'_>, pass: &mut Pass<'_>, found: &Value, spec: &BastionSpec) -> Result<(), Problem> {
    let before = pass.status.bastion.clone();
    mirror(pass, found);
    let instance = object::text(found, "/status/instanceID");
    let external = pass.status.external_network.as_ref().map(|external| external.id.clone());
    let print = fingerprint(&json!([instance, external, spec.floating_ip, pass.spec.tags]).to_string());
    if pass.status.is_applied(PART, &print) {
        return Ok(());
    }
    let network = pass.status.network.as_ref().map_or("", |network| network.id.as_str());
    let query = Query::new().with("device_id", instance).with("network_id", network);
    let ports: Vec<Port> = network::list(&pass.cloud, &query)?;
    let Some(port) = ports.into_iter().min_by(|one, other| one.id.cmp(&other.id)) else {
        let message = "the bastion has no port in the cluster's network";
        return Err(Problem::transient("BastionHasNoPort", message).retry_after(pause(cx.host.attempt())));
    };
    let mut address = None;
    if external.is_some() {
        let given = Some(spec.floating_ip.as_str()).filter(|address| !address.is_empty());
        let wanted = Wanted { port: Some(&port.id), address: given };
        address = Some(floating_ip::ensure(cx, pass, wanted)?.floating_ip_address);
    }
    let status = pass.status.bastion.get_or_insert_default();
    status.ip = port.fixed_ips.first().map(|address| address.ip_address.clone());
    status.floating_ip = address;
    pass.status.set_applied(PART, Some(print));
    if pass.status.bastion != before && pass.spec.load_balancer().is_some_and(|spec| !spec.allowed_cidrs.is_empty()) {
        // The bastion is one of those who may reach the API server.
        cx.out.wake_when_applied();
    }
    Ok(())
}

/// Deletes its floating IP, unless the user brought it: of those that were made for the cluster, all but the endpoint's.
fn release(cx: &mut Context<'_>, pass: &mut Pass<'_>) -> Result<(), Problem> {
    let endpoint = endpoint::known(&pass.spec, &pass.status).map(|endpoint| endpoint.host);
    let balancer = pass.status.api_server_load_balancer.as_ref().map(|balancer| balancer.ip.clone());
    let given = pass.spec.bastion.as_ref().map(|spec| spec.floating_ip.clone());
    let kept: Vec<String> =
        [endpoint, balancer, given, Some(pass.spec.api_server_floating_ip.clone())].into_iter().flatten().collect();
    delete_floating_ips(cx, pass, &kept)?;
    pass.status.bastion = None;
    pass.status.set_applied(PART, None);
    Ok(())
}

/// Deletes the floating IPs that were made for the cluster, but those with the addresses `kept`.
pub fn delete_floating_ips(cx: &mut Context<'_>, pass: &Pass<'_>, kept: &[String]) -> Result<(), Problem> {
    let description = pass.names.description();
    let query = Query::new().with("description", &description).with("project_id", pass.cloud.project_id());
    let found: Vec<FloatingIp> = network::list(&pass.cloud, &query)?;
    for ip in found.iter().filter(|ip| ip.description == description && !kept.contains(&ip.floating_ip_address)) {
        network::delete::<FloatingIp>(&pass.cloud, &ip.id).map_err(|failure| {
            events::failed(cx, Act::Delete, events::FLOATING_IP, &ip.floating_ip_address, failure)
        })?;
        events::done(cx, Act::Delete, events::FLOATING_IP, &ip.floating_ip_address, &ip.id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn a_bastion_is_made_used_replaced_and_removed_as_the_spec_says() {
        let wanted = json!({"flavor": "small", "ports": [{"network": {"id": "n"}}]});
        let other = json!({"flavor": "large"});
        let made = |spec: &Value, ready: bool| json!({"metadata": {"annotations": {HASH: fingerprint(&spec.to_string())}}, "spec": spec, "status": {"ready": ready}});
        let upstream = json!({
            "spec": {"flavor": "small", "ports": [{"network": {"id": "n"}, "trunk": false}], "identityRef": {}},
            "status": {"ready": true},
        });
        let mut going = made(&wanted, true);
        object::merge(&mut going, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        let table = [
            ("none", None, None, Step::Nothing),
            ("new", None, Some(&wanted), Step::Create),
            ("starting", Some(made(&wanted, false)), Some(&wanted), Step::Wait),
            ("ready", Some(made(&wanted, true)), Some(&wanted), Step::Use),
            ("upstream's", Some(upstream.clone()), Some(&wanted), Step::Use),
            ("upstream's, changed", Some(upstream), Some(&other), Step::Delete),
            ("changed", Some(made(&other, true)), Some(&wanted), Step::Delete),
            ("disabled", Some(made(&wanted, true)), None, Step::Delete),
            ("going", Some(going), Some(&wanted), Step::Wait),
        ];
        for (what, found, wanted, expected) in table {
            assert_eq!(decide(found.as_ref(), wanted), expected, "{what}");
        }
    }
}
