//! The members of a pool, as they are.

use capwasm_sdk::{Host, Problem, Selection, object};
use serde_json::{Value, json};

use super::MADE_FROM;
use crate::kinds::{FAILURE_DOMAIN_LABEL, VERSION};

pub const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
/// On a Machine that should go first, or on its DockerMachine.
const DELETE_ANNOTATION: &str = "cluster.x-k8s.io/delete-machine";

/// A DockerMachine of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub uid: String,
    /// When it was made; sorts as text.
    pub created: String,
    /// Fingerprint of what it was made from.
    pub made_from: String,
    /// Failure domain that it claims to be in.
    pub failure_domain: String,
    /// Empty until it is a node.
    pub provider_id: String,
    pub ready: bool,
    /// It is on its way out, or its Machine is.
    pub deleting: bool,
    /// Somebody wants it to go first.
    pub marked: bool,
    /// Name and uid of its Machine, once core has made it.
    pub machine: Option<(String, String)>,
    /// Its entry in `status.instances`.
    pub instance: Value,
}

/// The pool's own DockerMachines, by name, and all names that are taken in it.
pub fn of(host: &dyn Host, pool: &Value, selector: &str) -> Result<(Vec<Member>, Vec<String>), Problem> {
    let docker_machines = host.lookup_list(&Selection::of(API_VERSION, "DockerMachine").labelled(selector))?;
    let machines = host.lookup_list(&Selection::of("cluster.x-k8s.io/", "Machine").labelled(selector))?;
    let mut members: Vec<Member> = docker_machines
        .iter()
        .filter(|docker_machine| is_owned(docker_machine, object::uid(pool)))
        .map(|docker_machine| member(docker_machine, &machines))
        .collect();
    members.sort_by(|left, right| left.name.cmp(&right.name));
    let taken = docker_machines.iter().chain(&machines).map(|taken| object::name(taken).to_owned()).collect();
    Ok((members, taken))
}

fn is_owned(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    !uid.is_empty() && owners.into_iter().flatten().any(|owner| object::text(owner, "/uid") == uid)
}

fn member(docker_machine: &Value, machines: &[Value]) -> Member {
    let name = object::name(docker_machine);
    let machine = machines.iter().find(|machine| {
        object::text(machine, "/spec/infrastructureRef/name") == name
            && object::text(machine, "/spec/infrastructureRef/kind") == "DockerMachine"
    });
    let marked = |object: &Value| object::annotation(object, DELETE_ANNOTATION).is_some();
    let provisioned =
        docker_machine.pointer("/status/initialization/provisioned").and_then(Value::as_bool) == Some(true);
    // A container has one before it is a node.
    let provider_id = if provisioned { object::text(docker_machine, "/spec/providerID") } else { "" };
    let annotation = |name: &str| object::annotation(docker_machine, name).unwrap_or_default().to_owned();
    let ready = !provider_id.is_empty();
    let mut instance = json!({
        "instanceName": name,
        "bootstrapped": object::is_true(docker_machine, "BootstrapExecSucceeded"),
        "ready": ready,
        "addresses": docker_machine.pointer("/status/addresses").cloned().unwrap_or_else(|| json!([])),
    });
    for (field, value) in [("version", annotation(VERSION).as_str()), ("providerID", provider_id)] {
        if !value.is_empty() {
            object::merge(&mut instance, &json!({field: value}));
        }
    }
    Member {
        name: name.to_owned(),
        uid: object::uid(docker_machine).to_owned(),
        created: object::text(docker_machine, "/metadata/creationTimestamp").to_owned(),
        made_from: annotation(MADE_FROM),
        failure_domain: annotation(FAILURE_DOMAIN_LABEL),
        provider_id: provider_id.to_owned(),
        ready,
        deleting: object::is_deleting(docker_machine) || machine.is_some_and(object::is_deleting),
        marked: marked(docker_machine) || machine.is_some_and(marked),
        machine: machine.map(|machine| (object::name(machine).to_owned(), object::uid(machine).to_owned())),
        instance,
    }
}
