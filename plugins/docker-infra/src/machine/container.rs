//! The container of a machine: what to do about it, how it is made, how it goes.

use capwasm_sdk::{Context, Problem, object};
use serde_json::{Map, Value, json};

use super::{ENGINE_BUSY, Subject};
use crate::bootstrap::Plan;
use crate::engine::{Container, Creation, Engine};
use crate::kinds::{
    CLUSTER_LABEL, CONTROL_PLANE_LABEL, FAILURE_DOMAIN_LABEL, MachineSpec, ROLE_LABEL, UID_LABEL, provider_id,
};

/// What to do about a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// There is none: make it.
    Create,
    /// It never ran: start it.
    Start(String),
    /// It ran and ended.
    Restart {
        /// Engine's id.
        id: String,
        /// How it ended.
        exit_code: i64,
    },
    /// It runs.
    Use,
    /// The engine is busy with it.
    Wait(String),
    /// It must not be touched.
    Refuse(Problem),
}

/// Decides from what the engine shows.
pub fn decide(subject: &Subject<'_>, found: Option<&Container>) -> Act {
    let name = &subject.name;
    let Some(container) = found else {
        return if subject.is_latched() || subject.has_begun() {
            let message = format!("the container {name} is gone; delete the Machine to get another one");
            Act::Refuse(Problem::terminal("ContainerLost", message))
        } else {
            Act::Create
        };
    };
    if !is_ours(container, object::uid(subject.object), name, &subject.spec) {
        let message = format!("a container named {name} exists that was not made for this DockerMachine; remove it");
        return Act::Refuse(Problem::terminal("ContainerNameTaken", message));
    }
    match container.state.status.as_str() {
        "running" => Act::Use,
        "created" => Act::Start(container.id.clone()),
        "exited" => Act::Restart { id: container.id.clone(), exit_code: container.state.exit_code },
        state @ ("restarting" | "removing") => Act::Wait(state.to_owned()),
        // Paused by a person, or dead: nothing that goes by soon.
        state => Act::Refuse(Problem::transient("ContainerNotRunning", format!("the container {name} is {state}"))),
    }
}

/// By uid; or, where the object got another uid by a move, because its identity names this container.
fn is_ours(container: &Container, uid: &str, name: &str, spec: &MachineSpec) -> bool {
    match container.label(UID_LABEL) {
        Some(made_for) => made_for == uid || spec.provider_id == provider_id(name),
        None => false,
    }
}

/// Makes the container. Whoever was quicker is looked at by the caller.
pub fn create(cx: &mut Context<'_>, subject: &Subject<'_>, engine: &Engine<'_>, plan: &Plan) -> Result<(), Problem> {
    let image = image(subject)?;
    engine.ensure_image(&image)?;
    if engine.create(&subject.name, &body(subject, &image))? == Creation::NameTaken {
        return Ok(());
    }
    cx.out.event("ContainerCreated", format!("created container {} from {image}", subject.name));
    if !plan.ignored.is_empty() {
        let message =
            format!("these parts of the bootstrap data have no effect in a container: {}", plan.ignored.join(", "));
        cx.out.warning("BootstrapDataIgnored", message);
    }
    if !subject.spec.pre_load_images.is_empty() {
        let images = subject.spec.pre_load_images.join(", ");
        cx.out.warning("PreLoadImagesUnsupported", format!("not loaded, the machine will pull them itself: {images}"));
    }
    Ok(())
}

fn image(subject: &Subject<'_>) -> Result<String, Problem> {
    if !subject.spec.custom_image.is_empty() {
        return Ok(subject.spec.custom_image.clone());
    }
    let pattern = &subject.configuration.images.node;
    let version = object::text(&subject.machine, "/spec/version");
    if version.is_empty() && pattern.contains("{version}") {
        let message = "the Machine has no spec.version, and the DockerMachine no spec.customImage";
        return Err(Problem::invalid("NoVersion", message));
    }
    Ok(pattern.replace("{version}", version))
}

fn body(subject: &Subject<'_>, image: &str) -> Value {
    let is_control_plane = object::label(&subject.machine, CONTROL_PLANE_LABEL).is_some();
    let mut labels = Map::new();
    let mut label = |name: &str, value: &str| labels.insert(name.to_owned(), Value::from(value));
    label(CLUSTER_LABEL, &subject.cluster);
    label(ROLE_LABEL, if is_control_plane { "control-plane" } else { "worker" });
    label(UID_LABEL, object::uid(subject.object));
    let failure_domain = object::text(&subject.machine, "/spec/failureDomain");
    if !failure_domain.is_empty() {
        label(FAILURE_DOMAIN_LABEL, failure_domain);
    }
    let network = &subject.configuration.network;
    let mut mounts: Vec<Value> = subject
        .spec
        .extra_mounts
        .iter()
        .map(|mount| bind(&mount.host_path, &mount.container_path, mount.read_only))
        .collect();
    let mut body = json!({
        "Hostname": subject.name,
        "Image": image,
        "Labels": labels,
        "Env": ["KUBECONFIG=/etc/kubernetes/admin.conf"],
        "HostConfig": {
            "NetworkMode": network,
            // Once: a node that cannot even boot must not spin.
            "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 1},
        },
        "NetworkingConfig": {"EndpointsConfig": {network: {}}},
    });
    if subject.configuration.privileged {
        mounts.push(bind("/lib/modules", "/lib/modules", true));
        // What systemd, containerd and the kubelet need in a container; as images of the kind project expect it.
        object::merge(
            &mut body,
            &json!({
                "Tty": true,
                "Volumes": {"/var": {}},
                "HostConfig": {
                    "Privileged": true,
                    "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
                    "Tmpfs": {"/tmp": "", "/run": ""},
                    "CgroupnsMode": "private",
                    "Init": false,
                },
            }),
        );
    }
    object::merge(&mut body, &json!({"HostConfig": {"Mounts": mounts}}));
    body
}

fn bind(source: &str, target: &str, read_only: bool) -> Value {
    json!({"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only})
}

/// Removes every container that was made for the uid, and the one that the identity names. True when none is left.
pub fn remove(cx: &mut Context<'_>, engine: &Engine<'_>, uid: &str, identity: &str) -> Result<bool, Problem> {
    let mut ids = engine.containers_labelled(UID_LABEL, uid)?;
    let name = identity.strip_prefix("docker:////").unwrap_or_default();
    if ids.is_empty() && !name.is_empty() {
        let moved = engine.container(name)?.filter(|container| container.label(UID_LABEL).is_some());
        ids.extend(moved.map(|container| container.id));
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

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
