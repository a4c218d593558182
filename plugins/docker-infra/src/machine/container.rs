//! The container of a machine: what to do about it, how it is made, how it goes.

use capwasm_sdk::{Context, Problem, object};
use serde_json::{Value, json};

use super::Subject;
use crate::bootstrap::Plan;
use crate::engine::{Container, Creation, Engine};
use crate::haproxy::PORT;
use crate::kinds::{CLUSTER_LABEL, FAILURE_DOMAIN_LABEL, ROLE_LABEL, SIMULATE};
use crate::{ownership, ports};

/// What to do about a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// There is none: make it.
    Create,
    /// It never ran: start it.
    Start(String),
    Restart {
        id: String,
        exit_code: i64,
    },
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
        return if subject.has_begun() {
            let message = format!("the container {name} is gone; delete the Machine to get another one");
            Act::Refuse(Problem::terminal("ContainerLost", message))
        } else {
            Act::Create
        };
    };
    if !ownership::is_ours(container, subject.object, subject.names_it()) {
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

/// Makes the container. Whoever was quicker is looked at by the caller.
pub fn create(cx: &mut Context<'_>, subject: &Subject<'_>, engine: &Engine<'_>, plan: &Plan) -> Result<(), Problem> {
    let image = image(subject)?;
    engine.ensure_image(&image)?;
    let made = engine.create(&subject.name, &body(subject, &image)).map_err(ownership::unanswered)?;
    if made == Creation::NameTaken {
        return Ok(());
    }
    cx.out.event("ContainerCreated", format!("created container {} from {image}", subject.name));
    if !plan.ignored.is_empty() {
        let message =
            format!("these parts of the bootstrap data have no effect in a container: {}", plan.ignored.join(", "));
        cx.out.warning("BootstrapDataIgnored", message);
    }
    Ok(())
}

fn image(subject: &Subject<'_>) -> Result<String, Problem> {
    if !subject.spec.custom_image.is_empty() {
        return Ok(subject.spec.custom_image.clone());
    }
    let pattern = &subject.configuration.images.node;
    let version = subject.version();
    if version.is_empty() && pattern.contains("{version}") {
        let message = "the Machine has no spec.version, and the DockerMachine no spec.customImage";
        return Err(Problem::invalid("NoVersion", message));
    }
    Ok(pattern.replace("{version}", version))
}

fn body(subject: &Subject<'_>, image: &str) -> Value {
    let mut labels = ownership::labels(subject.object);
    let mut environment = vec!["KUBECONFIG=/etc/kubernetes/admin.conf".to_owned()];
    let mut label = |name: &str, value: &str| labels.insert(name.to_owned(), Value::from(value));
    label(CLUSTER_LABEL, &subject.cluster);
    label(ROLE_LABEL, if subject.is_control_plane() { "control-plane" } else { "worker" });
    if !subject.failure_domain().is_empty() {
        label(FAILURE_DOMAIN_LABEL, subject.failure_domain());
    }
    // Nothing but a simulated node reads either.
    if let Some(faults) = object::annotation(subject.object, SIMULATE) {
        label(SIMULATE, faults);
        environment.push(format!("CAPWASM_SIMULATE={faults}"));
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
        "Env": environment,
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
    if subject.is_control_plane() {
        object::merge(&mut body, &ports::published(PORT, &subject.configuration.publish, &subject.families));
    }
    object::merge(&mut body, &ports::sysctls(&subject.families));
    body
}

fn bind(source: &str, target: &str, read_only: bool) -> Value {
    json!({"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only})
}

#[cfg(test)]
#[path = "container_tests.rs"]
mod tests;
