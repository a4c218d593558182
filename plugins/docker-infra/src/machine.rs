//! DockerMachine: a container that becomes a node.
//!
//! Look at the container, decide, do one thing, look again; what needs time is left to a later pass.

mod boot;
mod container;
mod node;

use std::time::Duration;

use capwasm_sdk::{Address, AddressKind, Context, Host, MachineAnswer, Optional, Problem, object};
use serde_json::Value;

use crate::bootstrap::Plan;
use crate::cloud_config;
use crate::config::Configuration;
use crate::engine::{Container, Engine};
use crate::kinds::{self, FAILURE_DOMAIN_LABEL, MachineSpec};
use container::Act;

/// The container of a machine exists and runs.
const CONTAINER_PROVISIONED: &str = "ContainerProvisioned";
/// The bootstrap data was run in it.
const BOOTSTRAP_SUCCEEDED: &str = "BootstrapExecSucceeded";
/// From nothing to a running container it takes three; more means that somebody works against us.
const MOST_ACTS: usize = 6;
/// How long to wait for the engine to finish what it is doing.
const ENGINE_BUSY: Duration = Duration::from_millis(500);

/// What a pass is about.
struct Subject<'a> {
    object: &'a Value,
    spec: MachineSpec,
    /// The owner.
    machine: Value,
    cluster: String,
    /// Of the container, the host and the Node.
    name: String,
    configuration: Configuration,
}

impl Subject<'_> {
    /// Whether it was a node once: then its container is never made again silently.
    fn is_latched(&self) -> bool {
        !self.spec.provider_id.is_empty()
            || self.object.pointer("/status/initialization/provisioned").and_then(Value::as_bool) == Some(true)
    }

    /// Whether commands have been run in its container.
    fn has_begun(&self) -> bool {
        self.object.pointer("/status/bootstrap/startedAt").is_some()
    }

    /// What its bootstrap data asks for.
    fn plan(&self, host: &dyn Host) -> Result<Plan, Problem> {
        let waiting = || Problem::waiting("WaitingForBootstrapData", "the bootstrap data is not there yet");
        let format = host.bootstrap_data("format").optional()?.unwrap_or_default();
        if !format.is_empty() && format != b"cloud-config" {
            let message = format!(
                "bootstrap data of the format {} cannot be run in a container",
                String::from_utf8_lossy(&format)
            );
            return Err(Problem::invalid("UnsupportedFormat", message));
        }
        let data = host.bootstrap_data("value").optional()?.ok_or_else(waiting)?;
        let config = cloud_config::parse(&data, &self.name)
            .map_err(|error| Problem::invalid("BadBootstrapData", error.to_string()))?;
        Ok(Plan::new(config, self.configuration.privileged))
    }
}

/// Brings the machine nearer to being a node.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem> {
    let machine = cx
        .related_one("machine")
        .ok_or_else(|| Problem::waiting("WaitingForMachine", "no Machine owns this object yet"))?;
    let cluster = object::text(&machine, "/spec/clusterName").to_owned();
    if cluster.is_empty() {
        return Err(Problem::invalid("NoClusterName", "the Machine has no spec.clusterName"));
    }
    let subject = Subject {
        object,
        spec: object::spec(object)?,
        name: kinds::machine_name(&cluster, object::name(&machine))?,
        cluster,
        configuration: Configuration::load(cx.host)?,
        machine,
    };
    let engine = Engine::new(cx.host);
    let container = match running_container(cx, &subject, &engine) {
        Ok(Some(container)) => container,
        Ok(None) => return Ok(MachineAnswer::default()),
        Err(problem) => {
            cx.out.condition(CONTAINER_PROVISIONED, Some(false), reason(&problem), problem.message.clone());
            return Err(problem);
        }
    };
    cx.out.condition(CONTAINER_PROVISIONED, Some(true), "Provisioned", "");
    let mut answer = answer(&subject, &container);
    if !subject.is_latched() {
        // The hints stay until the machine is a node, so that a container that goes before is missed.
        let plan = subject.plan(cx.host)?;
        if !boot::advance(cx, &subject, &engine, &container, &plan)? {
            return Ok(answer);
        }
    }
    cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(true), "Succeeded", "");
    if !subject.is_latched() {
        node::identify(cx, &subject.name)?;
        cx.out.status(serde_json::json!({"bootstrap": null}));
    }
    answer.provisioned = true;
    answer.provider_id = Some(kinds::provider_id(&subject.name));
    Ok(answer)
}

/// Upstream has one word for every reason why there is no container, except for waiting.
fn reason(problem: &Problem) -> &'static str {
    if problem.reason == "WaitingForBootstrapData" { "WaitingForBootstrapData" } else { "NotProvisioned" }
}

/// The container, made and started if need be; none while the engine is busy with it.
fn running_container(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    engine: &Engine<'_>,
) -> Result<Option<Container>, Problem> {
    for _ in 0..MOST_ACTS {
        let found = engine.container(&subject.name)?;
        match container::decide(subject, found.as_ref()) {
            Act::Create => {
                let plan = subject.plan(cx.host)?;
                container::create(cx, subject, engine, &plan)?;
            }
            Act::Start(id) => engine.start(&id)?,
            Act::Restart { id, exit_code } => {
                let log = engine.logs(&id, 10).unwrap_or_else(|error| error.to_string());
                engine.start(&id)?;
                let message =
                    format!("the container ended with code {exit_code} and was started again; its last lines: {log}");
                return Err(Problem::transient("ContainerExited", message));
            }
            Act::Use => return Ok(found),
            Act::Wait(state) => {
                cx.out.condition(
                    CONTAINER_PROVISIONED,
                    Some(false),
                    "NotProvisioned",
                    format!("the container is {state}"),
                );
                cx.out.wake_after(ENGINE_BUSY);
                return Ok(None);
            }
            Act::Refuse(problem) => return Err(problem),
        }
    }
    Err(Problem::transient(
        "ContainerUnstable",
        "the container does not stay as it was made; is somebody else changing it?",
    ))
}

fn answer(subject: &Subject<'_>, container: &Container) -> MachineAnswer {
    let network = &subject.configuration.network;
    let mut addresses = vec![Address { kind: AddressKind::Hostname, value: subject.name.clone() }];
    for ip in container.ipv4(network).into_iter().chain(container.ipv6(network)) {
        addresses.push(Address { kind: AddressKind::InternalIp, value: ip.to_owned() });
        addresses.push(Address { kind: AddressKind::ExternalIp, value: ip.to_owned() });
    }
    for kind in [AddressKind::InternalDns, AddressKind::ExternalDns] {
        addresses.push(Address { kind, value: subject.name.clone() });
    }
    let failure_domain = container.label(FAILURE_DOMAIN_LABEL).filter(|domain| !domain.is_empty());
    MachineAnswer { addresses, failure_domain: failure_domain.map(str::to_owned), ..MachineAnswer::default() }
}

/// Removes whatever was made for the machine, finished or not.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    cx.out.condition(CONTAINER_PROVISIONED, Some(false), "Deleting", "");
    let spec: MachineSpec = object::spec(object)?;
    container::remove(cx, &Engine::new(cx.host), object::uid(object), &spec.provider_id)
}
