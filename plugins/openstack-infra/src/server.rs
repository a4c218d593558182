//! OpenStackServer: one virtual machine with its ports and volumes.
//!
//! What the spec's references stand for is looked up once and written down before anything is made; then ports, volumes and
//! the server are made, each found again by its name. A server that runs is read, and nothing else is.

mod addresses;
mod boot;
mod delete;
pub mod floating;
mod ports;
pub mod resolve;
pub mod spec;
pub mod state;
mod volumes;

use std::time::Duration;

use capwasm_api::time;
use capwasm_sdk::{Context, Fault, Problem, Refusal, object};
use serde_json::{Value, json};

use crate::cloud::{Cloud, Failure};
use crate::compute::{self, Server};
use crate::identity::connect;
use crate::kinds::{CLUSTER_NAME_LABEL, FLOATING_ADDRESS_READY, INSTANCE_READY};
use crate::names::ClusterNames;
use boot::Boot;
use resolve::Resolution;
use spec::{PortId, Resolved, ServerSpec, ServerStatus};
use state::Told;

pub use delete::delete;

/// How long after it was asked for a server is looked at first.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// One pass over an OpenStackServer.
pub struct Subject<'a> {
    object: &'a Value,
    /// Name of the object and of the server.
    name: &'a str,
    /// The Cluster's name; empty where there is none.
    cluster: &'a str,
    spec: ServerSpec,
    status: ServerStatus,
}

impl<'a> Subject<'a> {
    fn read(object: &'a Value) -> Result<Subject<'a>, Problem> {
        Ok(Subject {
            object,
            name: object::name(object),
            cluster: object::label(object, CLUSTER_NAME_LABEL).unwrap_or_default(),
            spec: object::spec(object)?,
            status: ServerStatus::read(object)?,
        })
    }

    /// The description of ports, unless they have their own.
    fn port_description(&self) -> String {
        let named = if self.cluster.is_empty() { self.name } else { self.cluster };
        ClusterNames::new(object::namespace(self.object), named).description()
    }

    /// The description of the server: it tells whose it is.
    fn description(&self) -> String {
        format!("{OWNED_BY}{}/{}", object::namespace(self.object), self.name)
    }

    /// Whether a server of our name was made for another object.
    fn is_foreign(&self, server: &Server) -> bool {
        server.description.starts_with(OWNED_BY) && server.description != self.description()
    }

    /// The server of our name, made by an earlier pass.
    fn existing(&self, cloud: &Cloud<'_>) -> Result<Option<Server>, Problem> {
        let mut found = compute::servers_named(cloud, self.name)?;
        if found.len() > 1 {
            let message =
                format!("there are {} servers named {}; delete those that are not ours", found.len(), self.name);
            return Err(Problem::invalid("DuplicateServerNames", message));
        }
        match found.pop() {
            Some(server) if self.is_foreign(&server) => {
                let message = format!("a server named {} exists: {}", self.name, server.description);
                Err(Problem::invalid("ServerNameTaken", message))
            }
            found => Ok(found),
        }
    }
}

/// In front of the namespace and name of the object that a server was made for.
const OWNED_BY: &str = "Created by cluster-api-provider-openstack server ";

/// Makes ports, volumes and the server, one pass after the other, until it is `ACTIVE`.
pub fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem> {
    let subject = Subject::read(object)?;
    let cloud = connect(cx, object)?;
    if let Some(id) = &subject.status.instance_id {
        let found = compute::server(&cloud, id).map_err(|failure| match failure.fault {
            // It may run all the same.
            Fault::Transient => failure.into(),
            _ => failed(cx, state::OPENSTACK_ERROR, "looking for the server", failure.into()),
        })?;
        return match found {
            Some(server) => settle(cx, &cloud, &subject, &subject.status.resources.ports, &server),
            None => {
                cx.out.status(json!({"instanceState": "DELETED"}));
                told(cx, state::vanished())
            }
        };
    }
    let Some(resolved) = &subject.status.resolved else {
        return resolve(cx, &cloud, &subject);
    };
    make(cx, &cloud, &subject, resolved)
}

/// Looks up what the spec's references stand for, and writes it down: nothing is made before that can be read.
fn resolve(cx: &mut Context<'_>, cloud: &Cloud<'_>, subject: &Subject<'_>) -> Result<(), Problem> {
    let found = resolve::resolve(cx.host, cloud, subject.name, &subject.port_description(), &subject.spec);
    match found.map_err(|problem| failed(cx, state::DEPENDENCY_FAILED, "Failed to resolve server spec", problem))? {
        Resolution::Pending(pending) => {
            let message = format!("Waiting for server dependencies to be resolved: {}", pending.join(", "));
            cx.out.condition(INSTANCE_READY, Some(false), state::NOT_READY, message.clone());
            Err(Problem::waiting(state::NOT_READY, message))
        }
        Resolution::Done(resolved) => {
            cx.out.status(json!({"resolved": resolved, "resources": {}}));
            cx.out.wake_when_applied();
            let message = "its ports and volumes are made next";
            cx.out.condition(INSTANCE_READY, Some(false), state::NOT_READY, message);
            Err(Problem::waiting(state::NOT_READY, message))
        }
    }
}

/// Makes ports, volumes and the server, or finds them.
fn make(cx: &mut Context<'_>, cloud: &Cloud<'_>, subject: &Subject<'_>, resolved: &Resolved) -> Result<(), Problem> {
    if let Some(pool) = &subject.spec.floating_ip_pool_ref
        && floating::claim(cx, subject, pool)?.is_none()
    {
        let message = "the pool has not answered the IPAddressClaim yet";
        cx.out.condition(INSTANCE_READY, Some(false), state::NOT_READY, message);
        return Err(Problem::waiting(state::NOT_READY, message));
    }
    let mut ports = subject.status.resources.ports.clone();
    let known = ports.len();
    let made = ports::ensure(cx, cloud, &resolved.ports, subject.cluster, &mut ports);
    if ports.len() > known {
        cx.out.status(json!({"resources": {"ports": ports}}));
    }
    made.map_err(|problem| failed(cx, state::PORT_CREATE_FAILED, "creating ports", problem))?;
    if let Some(server) = subject.existing(cloud)? {
        return settle(cx, cloud, subject, &ports, &server);
    }
    let wanted = volumes::wanted(&subject.spec);
    let volumes = volumes::ensure(cx, cloud, subject.name, &wanted, &resolved.image_id)
        .map_err(|problem| failed(cx, state::CREATE_FAILED, "creating volumes", problem))?;
    let Some(volumes) = volumes else {
        let message = "Cinder is still making the volumes";
        cx.out.condition(INSTANCE_READY, Some(false), state::NOT_READY, message);
        return Err(Problem::waiting(state::NOT_READY, message));
    };
    let user_data = user_data(cx, subject)?;
    let description = subject.description();
    let boot = Boot {
        name: subject.name,
        description: &description,
        spec: &subject.spec,
        resolved,
        ports: &ports,
        volumes: &volumes,
        user_data: user_data.as_deref(),
    };
    boot_up(cx, cloud, &boot)
}

fn boot_up(cx: &mut Context<'_>, cloud: &Cloud<'_>, boot: &Boot<'_>) -> Result<(), Problem> {
    let created = match boot.microversion().map_or(Ok(()), |version| cloud.with_compute_microversion(version)) {
        Ok(()) => compute::create_server(cloud, &boot.body()),
        Err(failure) => Err(failure),
    };
    let id = created.map_err(|failure| {
        cx.out.warning("FailedCreateServer", format!("Failed to create server {}: {failure}", boot.name));
        if names_what_is_gone(&failure) {
            // One of the ports may be it: they are looked for by name again.
            cx.out.status(json!({"resources": {"ports": null}}));
        }
        failed(cx, state::CREATE_FAILED, "creating the server", failure.into())
    })?;
    cx.out.event("SuccessfulCreateServer", format!("Created server {} with id {id}", boot.name));
    cx.out.status(json!({"instanceID": id, "instanceState": "BUILD"}));
    cx.out.wake_after(FIRST_LOOK);
    let message = "Instance is building";
    cx.out.condition(INSTANCE_READY, Some(false), state::NOT_READY, message);
    Err(Problem::waiting(state::NOT_READY, message))
}

fn names_what_is_gone(failure: &Failure) -> bool {
    matches!(failure.status, Some(400 | 404))
}

/// The bytes of the Secret that `spec.userDataRef` names.
fn user_data(cx: &mut Context<'_>, subject: &Subject<'_>) -> Result<Option<Vec<u8>>, Problem> {
    let Some(reference) = subject.spec.user_data_ref.as_ref().filter(|reference| !reference.name.is_empty()) else {
        return Ok(None);
    };
    let found = match cx.host.bootstrap_data("value") {
        // A Secret that somebody made by hand needs a grant by name.
        Err(refused) if matches!(refused.refusal, Refusal::Denied | Refusal::Invalid) => {
            cx.host.secret(&reference.name, "value")
        }
        other => other,
    };
    found.map(Some).map_err(|refused| {
        let missing = refused.is_not_found();
        let problem = Problem::from(refused);
        let problem = if missing {
            let message = format!("the Secret {} has no user data yet", reference.name);
            Problem { reason: "WaitingForBootstrapData".to_owned(), message, ..problem }
        } else {
            problem
        };
        let reason = if missing { "WaitingForBootstrapData" } else { state::CREATE_FAILED };
        failed(cx, reason, "reading the user data", problem)
    })
}

/// Tells what Nova says of the server, and pushes what may change on one that runs.
fn settle(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    subject: &Subject<'_>,
    ports: &[PortId],
    server: &Server,
) -> Result<(), Problem> {
    let mut shown = addresses::of(server);
    let is_active = server.status == "ACTIVE";
    let mut pushed = Ok(());
    if is_active {
        pushed = push_pairs(cx, cloud, subject, ports);
        if let Some(pool) = &subject.spec.floating_ip_pool_ref
            && let Some(address) = floating::claim(cx, subject, pool)?
        {
            let was_led = object::is_true(subject.object, FLOATING_ADDRESS_READY);
            let led = if was_led { Ok(()) } else { floating::associate(cx, cloud, ports, &shown, &address) };
            if led.is_ok() {
                shown = addresses::with_floating(shown, &address);
            }
            pushed = pushed.and(led);
        }
    }
    cx.out.status(json!({"instanceID": server.id, "instanceState": server.status}));
    if !shown.is_empty() {
        cx.out.status(json!({"addresses": shown}));
    }
    if is_active && !subject.status.ready {
        cx.out.status(json!({"ready": true}));
    }
    let age = time::parse(&server.created).map_or(0, |created| (cx.host.now_ms() / 1_000).saturating_sub(created));
    told(cx, state::tell(server, subject.status.ready, age)).and(pushed)
}

fn told(cx: &mut Context<'_>, told: Told) -> Result<(), Problem> {
    cx.out.condition(INSTANCE_READY, told.status, told.reason, told.message);
    if let Some(wake) = told.wake {
        cx.out.wake_after(wake);
    }
    told.end
}

/// Allowed address pairs may change while a server runs: `status.resolved` says what Neutron was told last.
fn push_pairs(cx: &mut Context<'_>, cloud: &Cloud<'_>, subject: &Subject<'_>, ports: &[PortId]) -> Result<(), Problem> {
    let Some(resolved) = &subject.status.resolved else { return Ok(()) };
    let mut known = resolved.ports.clone();
    let mut result = Ok(());
    for ((known, wanted), port) in known.iter_mut().zip(&subject.spec.ports).zip(ports) {
        let wanted = &wanted.fields.allowed_address_pairs;
        if known.is_secured() && known.fields.allowed_address_pairs != *wanted {
            match ports::set_pairs(cloud, &port.id, wanted) {
                Ok(()) => known.fields.allowed_address_pairs.clone_from(wanted),
                Err(failure) => result = Err(Problem::from(failure)),
            }
        }
    }
    if known != resolved.ports {
        cx.out.status(json!({"resolved": {"ports": known}}));
    }
    result
}

/// Says in the condition what failed, and passes the problem on.
fn failed(cx: &mut Context<'_>, reason: &str, act: &str, problem: Problem) -> Problem {
    let message = format!("{act}: {}", problem.message);
    cx.out.condition(INSTANCE_READY, Some(false), reason, message);
    problem
}
