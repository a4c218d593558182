//! OpenStackMachine: one machine, made of an OpenStackServer of its name.
//!
//! The machine asks OpenStack for nothing that its server tells; only the API server's floating address is its own.

mod ingress;
mod mirror;
mod provider_id;
pub mod server_spec;

use std::time::Duration;

use capwasm_sdk::{Address, AddressKind, Context, MachineAnswer, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Value, json};

use crate::kinds::{
    API_SERVER_INGRESS_READY, CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, INSTANCE_READY, V1ALPHA1, V1BETA1,
};
use crate::machine_template;
use crate::server::state;
use ingress::Way;
use server_spec::Defaults;

/// When a machine that gets none of the API server's traffic is looked after again.
const UNREACHED: Duration = Duration::from_secs(15);

/// One pass over an OpenStackMachine.
struct Subject<'a> {
    object: &'a Value,
    name: &'a str,
    spec: &'a Value,
    /// The Machine that owns the object.
    machine: Value,
    cluster: Value,
}

impl Subject<'_> {
    fn is_control_plane(&self) -> bool {
        object::label(&self.machine, CONTROL_PLANE_LABEL).is_some()
    }

    fn cluster_name(&self) -> &str {
        object::text(&self.machine, "/spec/clusterName")
    }

    /// The security group that the cluster has for machines like this one.
    fn security_group(&self) -> Option<&str> {
        self.cluster.pointer("/spec/managedSecurityGroups").filter(|groups| groups.is_object())?;
        let field = if self.is_control_plane() { "controlPlaneSecurityGroup" } else { "workerSecurityGroup" };
        Some(object::text(&self.cluster, &format!("/status/{field}/id"))).filter(|id| !id.is_empty())
    }

    /// The OpenStackServer of this machine.
    fn server(&self) -> Result<Value, Problem> {
        let user_data = object::text(&self.machine, "/spec/bootstrap/dataSecretName");
        if user_data.is_empty() {
            return Err(Problem::waiting("WaitingForBootstrapData", "the Machine names no bootstrap data yet"));
        }
        let spec = server_spec::server_spec(
            self.spec,
            &Defaults {
                identity: self.cluster.pointer("/spec/identityRef").unwrap_or(&Value::Null),
                tags: server_spec::tags(self.spec, &self.cluster),
                availability_zone: object::text(&self.machine, "/spec/failureDomain"),
                user_data: Some(user_data),
                security_group: self.security_group(),
                cluster: &self.cluster,
            },
        )?;
        Ok(json!({
            "apiVersion": V1ALPHA1,
            "kind": "OpenStackServer",
            "metadata": {
                "name": self.name,
                "labels": {CLUSTER_NAME_LABEL: self.cluster_name()},
                "ownerReferences": [{
                    "apiVersion": V1BETA1,
                    "kind": "OpenStackMachine",
                    "name": self.name,
                    "uid": object::uid(self.object),
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
        }))
    }
}

/// Asks for the OpenStackServer of the machine, and takes over what becomes of it.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem> {
    let machine = cx
        .related_one("machine")
        .ok_or_else(|| Problem::waiting("WaitingForMachine", "no Machine owns this object yet"))?;
    let cluster = cx.related_one("infrastructure-cluster").ok_or_else(|| {
        Problem::waiting("WaitingForClusterInfrastructure", "the Cluster's OpenStackCluster is not there yet")
    })?;
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let subject = Subject { object, name: object::name(object), spec, machine, cluster };
    let Some(server) = server_of(cx, object)? else { return ask_for_server(cx, &subject) };
    push_pairs(cx, &subject, &server);
    let is_node =
        subject.machine.pointer("/status/nodeRef/name").is_some() || !object::text(spec, "/providerID").is_empty();
    let mirror = mirror::of(&server, is_node);
    cx.out.condition(INSTANCE_READY, mirror.status, &mirror.reason, mirror.message);
    cx.out.status(mirror.fields);
    mirror.end?;
    let mut addresses = addresses(&server);
    if subject.is_control_plane() {
        match reach(cx, &subject, &server) {
            Ok(Some(floating)) if !addresses.iter().any(|address| address.value == floating) => {
                addresses.push(Address { kind: AddressKind::ExternalIp, value: floating });
            }
            Ok(_) => {}
            // Told in its own condition: the server runs all the same.
            Err(problem) => {
                cx.out.wake_after(problem.retry_after.unwrap_or(UNREACHED));
            }
        }
    }
    addresses.push(Address { kind: AddressKind::InternalDns, value: subject.name.to_owned() });
    let zone = object::text(&subject.machine, "/spec/failureDomain");
    Ok(MachineAnswer {
        provisioned: true,
        provider_id: Some(provider_id::of(cx, object, &subject.cluster, &server)?),
        addresses,
        failure_domain: Some(zone.to_owned()).filter(|zone| !zone.is_empty()),
    })
}

/// The machine's own OpenStackServer. Reading it wakes the machine when it changes.
fn server_of(cx: &Context<'_>, object: &Value) -> Result<Option<Value>, Problem> {
    let found = cx.host.lookup(&target(object::name(object))).optional()?;
    match found {
        Some(server) if !is_owned(&server, object) => {
            let message = format!("the OpenStackServer {} belongs to another object", object::name(object));
            Err(Problem::invalid("ServerNameTaken", message))
        }
        found => Ok(found),
    }
}

fn target(name: &str) -> ObjectRef {
    ObjectRef::new(V1ALPHA1, "OpenStackServer", name)
}

fn is_owned(server: &Value, object: &Value) -> bool {
    let owners = server.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| object::text(owner, "/uid") == object::uid(object))
}

fn ask_for_server(cx: &mut Context<'_>, subject: &Subject<'_>) -> Result<MachineAnswer, Problem> {
    if !object::text(subject.spec, "/providerID").is_empty() {
        // Another server would not be this machine.
        let message = "the machine's OpenStackServer is gone; delete the Machine to get another one";
        cx.out.condition(INSTANCE_READY, Some(false), state::DELETED, message);
        return Err(Problem::terminal(state::DELETED, message));
    }
    let asked = subject.server();
    let (reason, message) = match &asked {
        Ok(_) => (state::NOT_READY, "Waiting for instance to be created".to_owned()),
        Err(problem) => (problem.reason.as_str(), problem.message.clone()),
    };
    cx.out.condition(INSTANCE_READY, Some(false), reason, message.clone());
    cx.out.create("server", Place::Management, asked?);
    Err(Problem::waiting(state::NOT_READY, message))
}

/// Allowed address pairs may change while the machine runs; nothing else of the server does.
fn push_pairs(cx: &mut Context<'_>, subject: &Subject<'_>, server: &Value) {
    let ports = |object: &Value, at: &str| object.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(ports) = machine_template::with_pairs(&ports(server, "/spec/ports"), &ports(subject.spec, "/ports")) {
        let patch = json!({"spec": {"ports": ports}});
        cx.out.patch("address-pairs", Place::Management, target(subject.name), patch);
    }
}

/// Makes a control-plane machine reachable; the floating address that leads to it, if one does.
fn reach(cx: &mut Context<'_>, subject: &Subject<'_>, server: &Value) -> Result<Option<String>, Problem> {
    match ingress::way(&subject.cluster) {
        Way::LoadBalancer => Ok(None),
        Way::Other => {
            cx.out.condition(API_SERVER_INGRESS_READY, Some(true), "Ready", "");
            Ok(None)
        }
        Way::FloatingIp(address) => {
            let leads_here = ingress::ensure(cx, subject.object, server, &subject.cluster, &address)?;
            Ok(leads_here.then_some(address))
        }
    }
}

fn addresses(server: &Value) -> Vec<Address> {
    let known = server.pointer("/status/addresses").and_then(Value::as_array);
    let one = |address: &Value| {
        let kind = match object::text(address, "/type") {
            "InternalIP" => AddressKind::InternalIp,
            "ExternalIP" => AddressKind::ExternalIp,
            _ => return None,
        };
        Some(Address { kind, value: object::text(address, "/address").to_owned() })
    };
    known.into_iter().flatten().filter_map(one).collect()
}

/// Deletes the OpenStackServer; true when it is gone.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let found = cx.host.lookup(&target(object::name(object))).optional()?;
    let Some(server) = found.filter(|server| is_owned(server, object)) else { return Ok(true) };
    if is_served(cx, object) {
        return Err(Problem::waiting(
            "WaitingForLoadBalancerMember",
            "the load balancer still sends requests to this machine",
        ));
    }
    if !object::is_deleting(&server) {
        let uid = Some(object::uid(&server).to_owned());
        cx.out.delete("server", Place::Management, target(object::name(object)), uid);
    }
    if let Some(told) = object::condition(&server, INSTANCE_READY).filter(|_| object::is_deleting(&server)) {
        let status = match object::text(told, "/status") {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        };
        cx.out.condition(INSTANCE_READY, status, object::text(told, "/reason"), object::text(told, "/message"));
    }
    Ok(false)
}

/// Whether the load balancer has the machine as a member that the OpenStackCluster is going to take away. When the whole
/// cluster goes, the load balancer goes with all its members.
fn is_served(cx: &Context<'_>, object: &Value) -> bool {
    if !object::is_true(object, API_SERVER_INGRESS_READY) {
        return false;
    }
    let stays = |role: &str| cx.related_one(role).filter(|it| !object::is_deleting(it));
    match (stays("cluster"), stays("infrastructure-cluster")) {
        (Some(_), Some(cluster)) => ingress::way(&cluster) == Way::LoadBalancer,
        _ => false,
    }
}
