//! DockerMachine: a container that becomes a node.
//!
//! Look at the container, decide, do one thing, look again; what needs time is left to a later pass. The provider ID is told as
//! soon as the container runs: the container's name is in it, so that the load balancer can ask the engine for the address. While
//! all goes well the status has news twice: when the container runs, and when the machine is a node. The first is for people: it
//! may wait (see the descriptor), and is not written at all where the second comes soon.

mod boot;
mod container;
mod node;
mod preload;

use std::time::Duration;

use capwasm_api::time::duration;
use capwasm_sdk::{Address, AddressKind, Context, Host, MachineAnswer, Optional, Problem, object};
use serde_json::{Value, json};

use crate::bootstrap::Plan;
use crate::config::Configuration;
use crate::engine::{Container, Engine};
use crate::family::Families;
use crate::kinds::{self, CONTROL_PLANE_LABEL, FAILURE_DOMAIN_LABEL, MachineSpec, VERSION};
use crate::{cloud_config, deprecated, ignition, network, ownership};
use boot::Progress;
use container::Act;
use node::Identity;

/// The container of a machine exists and runs.
const CONTAINER_PROVISIONED: &str = "ContainerProvisioned";
/// The bootstrap data was run in it.
const BOOTSTRAP_SUCCEEDED: &str = "BootstrapExecSucceeded";
/// Both, and the old reason of each failure.
const CONDITIONS: [(&str, &str); 2] =
    [(CONTAINER_PROVISIONED, "ContainerProvisioningFailed"), (BOOTSTRAP_SUCCEEDED, "BootstrapFailed")];
/// What is said while nothing lasts long enough to be told.
const UNDER_WAY: &str = "the bootstrap data is being run";
/// From nothing to a running container it takes three; more means that somebody works against us.
const MOST_ACTS: usize = 8;
/// How long to wait for the engine to finish what it is doing.
const ENGINE_BUSY: Duration = Duration::from_millis(500);
/// Between two looks for what was asked for and not answered.
const OWED: Duration = Duration::from_secs(5);
/// How long something may last before it is told.
const QUIET_SECONDS: u64 = 3;
/// How long a bootstrap may take when the object does not say.
const TIMEOUT_SECONDS: u64 = 300;

/// One pass over a DockerMachine.
struct Subject<'a> {
    object: &'a Value,
    spec: MachineSpec,
    machine: Value,
    cluster: String,
    /// Of the container, the host and the Node.
    name: String,
    families: Families,
    configuration: Configuration,
    /// How long the bootstrap may take, in seconds.
    timeout: u64,
}

impl Subject<'_> {
    /// Whether it was a node once. When the status was lost the Machine knows: it takes the identity of nodes only.
    fn is_latched(&self) -> bool {
        !object::text(&self.machine, "/spec/providerID").is_empty()
            || self.object.pointer("/status/initialization/provisioned").and_then(Value::as_bool) == Some(true)
    }

    /// Whether commands may have been run in its container: then it is never made again silently.
    fn has_begun(&self) -> bool {
        !self.spec.provider_id.is_empty()
            || self.object.pointer("/status/bootstrap/startedAt").is_some()
            || self.is_latched()
    }

    /// Whether an API server runs in it.
    fn is_control_plane(&self) -> bool {
        object::label(&self.machine, CONTROL_PLANE_LABEL).is_some()
    }

    /// Kubernetes' version: of a pool's machine the one that it was made for, else the Machine's.
    fn version(&self) -> &str {
        object::annotation(self.object, VERSION).unwrap_or_else(|| object::text(&self.machine, "/spec/version"))
    }

    /// Failure domain that the machine claims to be in: all containers run on one engine.
    fn failure_domain(&self) -> &str {
        let of_machine = object::text(&self.machine, "/spec/failureDomain");
        let of_pool = object::annotation(self.object, FAILURE_DOMAIN_LABEL).unwrap_or_default();
        if of_machine.is_empty() { of_pool } else { of_machine }
    }

    /// Whether the container is the one that the object's identity names.
    fn names_it(&self) -> bool {
        self.spec.provider_id == kinds::provider_id(&self.name)
    }

    /// What its bootstrap data asks for.
    fn plan(&self, host: &dyn Host) -> Result<Plan, Problem> {
        let waiting = || Problem::waiting("WaitingForBootstrapData", "the bootstrap data is not there yet");
        let format = host.bootstrap_data("format").optional()?.unwrap_or_default();
        let data = host.bootstrap_data("value").optional()?.ok_or_else(waiting)?;
        let bad = |message: String| Problem::invalid("BadBootstrapData", message);
        let privileged = self.configuration.privileged;
        let recipe = match format.as_slice() {
            b"" | b"cloud-config" => cloud_config::parse(&data, &self.name).map_err(|error| bad(error.to_string()))?,
            b"ignition" => ignition::parse(&data, privileged).map_err(|error| bad(error.to_string()))?,
            other => {
                let message = format!(
                    "bootstrap data of the format {} cannot be run in a container",
                    String::from_utf8_lossy(other)
                );
                return Err(Problem::invalid("UnsupportedFormat", message));
            }
        };
        Ok(Plan::new(recipe, privileged, self.spec.pre_load_images.len()))
    }
}

/// Makes and starts the container, and runs the bootstrap data in it, until it is a node.
pub fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem> {
    let subject = subject(cx, object)?;
    let result = provision_one(cx, &subject);
    deprecated::conditions(cx, object, &CONDITIONS);
    result
}

fn subject<'a>(cx: &Context<'_>, object: &'a Value) -> Result<Subject<'a>, Problem> {
    let machine = cx
        .related_one("machine")
        .ok_or_else(|| Problem::waiting("WaitingForMachine", "no Machine owns this object yet"))?;
    let cluster = object::text(&machine, "/spec/clusterName").to_owned();
    if cluster.is_empty() {
        return Err(Problem::invalid("NoClusterName", "the Machine has no spec.clusterName"));
    }
    let spec: MachineSpec = object::spec(object)?;
    let timeout = match spec.bootstrap_timeout.as_str() {
        "" => TIMEOUT_SECONDS,
        text => duration::seconds(text).and_then(|seconds| u64::try_from(seconds).ok()).ok_or_else(|| {
            let message = "spec.bootstrapTimeout is not a duration like 5m0s";
            Problem::invalid("BadBootstrapTimeout", message)
        })?,
    };
    Ok(Subject {
        object,
        spec,
        name: kinds::machine_name(&cluster, object::name(&machine))?,
        cluster,
        families: cx.related_one("cluster").map_or(Ok(Families::default()), |cluster| Families::of(&cluster))?,
        configuration: Configuration::load(cx.host)?,
        timeout,
        machine,
    })
}

fn provision_one(cx: &mut Context<'_>, subject: &Subject<'_>) -> Result<MachineAnswer, Problem> {
    let engine = Engine::new(cx.host);
    let container = match running_container(cx, subject, &engine) {
        Ok(Some(container)) => container,
        Ok(None) => return Ok(MachineAnswer::default()),
        Err(problem) => {
            cx.out.condition(CONTAINER_PROVISIONED, Some(false), reason(subject, &problem), problem.message.clone());
            return Err(problem);
        }
    };
    cx.out.condition(CONTAINER_PROVISIONED, Some(true), "Provisioned", "");
    let mut answer = answer(subject, &container);
    if !subject.is_latched() && !becomes_node(cx, subject, &engine, &container)? {
        return Ok(answer);
    }
    cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(true), "Succeeded", "");
    if !subject.is_latched() {
        // The hints stay until the machine is a node, so that a container that goes before is missed.
        cx.out.status(json!({"bootstrap": null}));
    }
    if subject.is_control_plane() && backends(cx).is_some_and(|names| names.contains(&subject.name)) {
        cx.out.status(json!({"loadBalancerConfigured": true}));
    }
    answer.provisioned = true;
    Ok(answer)
}

/// Bootstraps the container and gives its Node its identity. True when both are done, and an API server is behind the load
/// balancer.
fn becomes_node(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    engine: &Engine<'_>,
    container: &Container,
) -> Result<bool, Problem> {
    let plan = subject.plan(cx.host)?;
    let Progress::Done(ended) = boot::advance(cx, subject, engine, container, &plan)? else { return Ok(false) };
    let missing = match node::identify(cx, &subject.name, container)? {
        Identity::Known if is_left_out(cx, subject) => {
            Some(("WaitingForLoadBalancer", "the load balancer does not have the machine behind it yet".to_owned()))
        }
        Identity::Known => None,
        Identity::Waiting(message) => Some(("WaitingForNode", message)),
    };
    match missing {
        None => Ok(true),
        Some((reason, message)) => {
            let now = cx.host.now_ms() / 1_000;
            if let Some(left) =
                ended.and_then(|ended| (ended + QUIET_SECONDS).checked_sub(now)).filter(|left| *left > 0)
            {
                cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(false), "NotSucceeded", UNDER_WAY);
                cx.out.wake_after(Duration::from_secs(left));
                return Ok(false);
            }
            cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(true), "Succeeded", "");
            Err(Problem::waiting(reason, message))
        }
    }
}

/// Upstream has one word for every reason why there is no container, except for waiting.
fn reason(subject: &Subject<'_>, problem: &Problem) -> &'static str {
    let waits = problem.reason == "WaitingForBootstrapData";
    let usual = if waits { "WaitingForBootstrapData" } else { "NotProvisioned" };
    ownership::reason(subject.object, CONTAINER_PROVISIONED, problem, usual)
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
            Act::Start(id) => match engine.start(&id) {
                // The network may have gone with another cluster's load balancer.
                Err(error) if error.is_not_found() => {
                    network::ensure(engine, &subject.configuration.network, &subject.families)?;
                }
                other => other?,
            },
            Act::Restart { id, exit_code } => {
                let log = engine.logs(&id, 10).unwrap_or_else(|error| error.to_string());
                engine.start(&id)?;
                let log = crate::bootstrap::last_lines(&log);
                let message =
                    format!("the container ended with code {exit_code} and was started again; its last lines: {log}");
                return Err(Problem::transient("ContainerExited", message));
            }
            Act::Use => return Ok(found),
            Act::Wait(state) => {
                let message = format!("the container is {state}");
                cx.out.condition(CONTAINER_PROVISIONED, Some(false), "NotProvisioned", message);
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

/// Who and where a machine with a running container is.
fn answer(subject: &Subject<'_>, container: &Container) -> MachineAnswer {
    let mut addresses = vec![Address { kind: AddressKind::Hostname, value: subject.name.clone() }];
    for ip in subject.families.addresses(container, &subject.configuration.network) {
        addresses.push(Address { kind: AddressKind::InternalIp, value: ip.to_owned() });
        addresses.push(Address { kind: AddressKind::ExternalIp, value: ip.to_owned() });
    }
    for kind in [AddressKind::InternalDns, AddressKind::ExternalDns] {
        addresses.push(Address { kind, value: subject.name.clone() });
    }
    let failure_domain = container.label(FAILURE_DOMAIN_LABEL).filter(|domain| !domain.is_empty());
    MachineAnswer {
        provisioned: false,
        provider_id: Some(kinds::provider_id(&subject.name)),
        addresses,
        failure_domain: failure_domain.map(str::to_owned),
    }
}

/// Names of the machines behind the cluster's load balancer; none where there is no such balancer, or its record was lost.
fn backends(cx: &Context<'_>) -> Option<Vec<String>> {
    let cluster = cx.related_one("infrastructure-cluster")?;
    let names = cluster.pointer("/status/loadBalancer/backends")?.as_array()?;
    Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Whether an API server is not behind the load balancer that there is.
fn is_left_out(cx: &Context<'_>, subject: &Subject<'_>) -> bool {
    subject.is_control_plane() && backends(cx).is_some_and(|names| !names.contains(&subject.name))
}

/// Removes whatever was made for the machine, finished or not.
pub fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
    let gone = remove(cx, object);
    // Until it is sure that nothing more comes, the reason for doubt must stay.
    let owed = ownership::is_owed(cx, object, CONTAINER_PROVISIONED);
    let reason = if owed { ownership::UNANSWERED } else { "Deleting" };
    cx.out.condition(CONTAINER_PROVISIONED, Some(false), reason, "");
    deprecated::conditions(cx, object, &CONDITIONS);
    if !gone? || owed {
        cx.out.wake_after(if owed { OWED } else { ENGINE_BUSY });
        return Ok(false);
    }
    Ok(true)
}

/// Removes every container that carries the object's uid; or the one that came with the object when it was moved. What the
/// object says about itself proves nothing.
fn remove(cx: &Context<'_>, object: &Value) -> Result<bool, Problem> {
    let named = object::text(object, "/spec/providerID").strip_prefix("docker:////").unwrap_or_default();
    Ok(ownership::remove(&Engine::new(cx.host), object, named, |_| true)?)
}
