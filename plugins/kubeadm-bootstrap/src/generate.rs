//! Makes the bootstrap data of one machine, or of a pool: observes, asks [`decide`](crate::decide) for the stage, assembles.

use std::time::Duration;

use capwasm_api::names::reason;
use capwasm_kubeadm::certificates::{self, Certificates, Purpose, Settings};
use capwasm_kubeadm::{discovery, kubeconfig};
use capwasm_sdk::{BootstrapData, Context, Fault, Format, Level, Optional, Problem, object};
use serde_json::{Map, Value, json};

use crate::conditions;
use crate::config::{Cluster, Config, Machine};
use crate::decide::{Stage, stage};
use crate::kubeadm::{self, Member};
use crate::token::{Holder, Lifetime, Step};
use crate::userdata::{self, Payload, Subcommand};
use crate::version::Version;
use crate::{config, discovery_file, files, lock, template, token};

/// The whole observation of one pass.
struct Subject {
    config: Config,
    machine: Machine,
    cluster: Cluster,
    lifetime: Lifetime,
}

/// One pass over a KubeadmConfig.
pub fn generate(cx: &mut Context<'_>, object: &Value) -> Result<Option<BootstrapData>, Problem> {
    let handed_out = config::has_data(object);
    let cluster = cx.related_one("cluster").map(|cluster| Cluster::read(&cluster));
    let joins = cluster.as_ref().is_some_and(|cluster| cluster.initialized);
    let result = Config::read(object).and_then(|config| pass(cx, config, cluster));
    if let Err(problem) = &result
        && !handed_out
    {
        conditions::data_missing(&mut cx.out, problem);
    } else if handed_out || matches!(result, Ok(Some(_))) {
        conditions::data_available(&mut cx.out);
        conditions::certificates_available(&mut cx.out);
    }
    let now = cx.host.now_ms();
    conditions::deprecate(&mut cx.out, object, result.as_ref().err().filter(|_| !handed_out), joins, now);
    if let (Ok(_), Some(generation)) = (&result, object.pointer("/metadata/generation").and_then(Value::as_i64)) {
        // What is written into the spec just before the status is a generation more, and no news.
        cx.out.status(json!({"observedGeneration": generation + i64::from(!cx.out.own.is_empty())}));
    }
    match result {
        // The data was handed out: whatever is wrong with the rest, or becomes so, does not take it back.
        Err(problem) if handed_out => {
            cx.host.log(
                Level::Warn,
                "unable to look after bootstrap data that was handed out",
                &[("problem", &problem.to_string())],
            );
            if matches!(problem.fault, Fault::Waiting | Fault::Transient) {
                cx.out.wake_after(token::RETRY);
            }
            Ok(None)
        }
        result => result,
    }
}

fn pass(cx: &mut Context<'_>, config: Config, cluster: Option<Cluster>) -> Result<Option<BootstrapData>, Problem> {
    let machine = cx.related_one("machine").map(|machine| Machine::read(&machine));
    let machine = machine.or_else(|| cx.related_one("machine-pool").map(|pool| Machine::read_pool(&pool)));
    let (Some(machine), Some(cluster)) = (machine, cluster) else {
        return Err(Problem::waiting("WaitingForMachine", "no Machine of a Cluster uses this configuration yet"));
    };
    let lifetime = Lifetime::configured(&cx.host.configuration())?;
    let subject = Subject { config, machine, cluster, lifetime };
    match stage(&subject.config, &subject.machine, &subject.cluster) {
        Stage::Settled => settled(cx, &subject).map(|()| None),
        Stage::KeepToken => keep_token(cx, &subject).map(|()| None),
        Stage::KeepPool => keep_pool(cx, &subject),
        Stage::Restored => restored(cx, &subject),
        Stage::AwaitControlPlane => Err(Problem::waiting(
            reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED,
            "the machine joins once the control plane is initialized",
        )),
        Stage::Init => init(cx, &subject).map(Some),
        Stage::Join(member) => join(cx, &subject, member).map(Some),
    }
}

/// Data of the machine that makes the cluster.
fn init(cx: &mut Context<'_>, subject: &Subject) -> Result<BootstrapData, Problem> {
    let Subject { config, machine, cluster, .. } = subject;
    // Whatever only the user can mend is found before the lock is taken, so that it holds nobody else up.
    let version = Version::parse(&machine.version)?;
    let configuration = kubeadm::init(&config.spec, cluster, &version, cx.host.now_ms())?;
    userdata::check(&config.spec)?;
    lock::acquire(cx, cluster, machine)?;
    let certificates = certificates(cx, subject)?;
    keep_kubeconfig(cx, subject)?;
    let mut written = files::of_certificates(&certificates, &config.spec);
    written.extend(files::of_user(cx.host, &config.spec, &template::Data::new(&machine.version))?);
    render(cx, config, Payload { subcommand: Subcommand::Init, configuration, files: written })
}

/// Data of a machine that joins an initialized control plane, with a token that lets it in.
fn join(cx: &mut Context<'_>, subject: &Subject, member: Member) -> Result<BootstrapData, Problem> {
    lock::release(cx, &subject.cluster)?;
    let discovery = complete_discovery(cx, subject)?;
    let data = join_data(cx, subject, member, &discovery)?;
    if discovery != subject.config.discovery() {
        // Written before the operations, so that no token is let in that would be forgotten.
        cx.out.own(json!({"spec": {"joinConfiguration": {"discovery": discovery}}}));
    }
    // Last of what may fail, so that no token is let in for data that cannot be made.
    if let Some(token) = discovery::token(&discovery) {
        keep_alive(cx, token, subject.lifetime)?;
    }
    Ok(data)
}

/// The data of a join whose `discovery` is complete.
fn join_data(
    cx: &mut Context<'_>,
    subject: &Subject,
    member: Member,
    discovery: &Map<String, Value>,
) -> Result<BootstrapData, Problem> {
    let Subject { config, machine, cluster, .. } = subject;
    let version = Version::parse(&machine.version)?;
    let configuration = kubeadm::join(&config.spec, discovery, member, &version)?;
    userdata::check(&config.spec)?;
    let mut written = match member {
        Member::ControlPlane => files::of_certificates(&certificates(cx, subject)?, &config.spec),
        Member::Worker => Vec::new(),
    };
    let offered = match member {
        Member::ControlPlane => machine.version.clone(),
        Member::Worker => control_plane_version(cx),
    };
    written.extend(files::of_user(cx.host, &config.spec, &template::Data::new(&offered))?);
    let described = discovery.get("file").is_some_and(|file| file.get("kubeConfig").is_some_and(Value::is_object));
    if described {
        let ca = if discovery::wants_ca(discovery) { Some(cluster_ca(cx, cluster)?) } else { None };
        let endpoint = cluster.endpoint.as_deref().unwrap_or_default();
        written.extend(discovery_file::kubeconfig(discovery, endpoint, ca.as_deref())?);
    }
    render(cx, config, Payload { subcommand: Subcommand::Join, configuration, files: written })
}

/// `discovery` with everything in it; a new token is only drawn.
fn complete_discovery(cx: &mut Context<'_>, subject: &Subject) -> Result<Map<String, Value>, Problem> {
    let given = subject.config.discovery();
    let endpoint = subject.cluster.endpoint.as_deref().unwrap_or_default();
    if endpoint.is_empty() && discovery::wants_endpoint(&given) {
        return Err(Problem::waiting("WaitingForEndpoint", "the Cluster has no control plane endpoint yet"));
    }
    let hash = match given.contains_key("file") || !discovery::wants_ca(&given) {
        true => None,
        false => Some(cx.host.public_key_hash(&cluster_ca(cx, &subject.cluster)?)?),
    };
    let host = cx.host;
    Ok(discovery::complete(&given, endpoint, hash.as_deref(), || discovery::new_token(host)))
}

/// Nothing to do for the machine; a cluster that nobody else looks after keeps its kubeconfig fresh.
fn settled(cx: &mut Context<'_>, subject: &Subject) -> Result<(), Problem> {
    keep_kubeconfig(cx, subject)
}

/// Prolongs the token of a machine that has not joined.
fn keep_token(cx: &mut Context<'_>, subject: &Subject) -> Result<(), Problem> {
    cx.out.wake_after(subject.lifetime.look());
    match discovery::token(&subject.config.discovery()) {
        Some(token) => keep_alive(cx, token, subject.lifetime),
        None => Ok(()),
    }
}

/// Makes the token, or prolongs it, and looks again in time.
fn keep_alive(cx: &mut Context<'_>, token: &str, lifetime: Lifetime) -> Result<(), Problem> {
    cx.out.wake_after(lifetime.look());
    match token::observe(cx.host, token, Holder::Waiting, lifetime)? {
        Step::Create => token::create(cx, token, lifetime),
        Step::Prolong => token::prolong(cx, token, lifetime),
        Step::Keep | Step::Replace => Ok(()),
    }
}

/// Keeps the token of a pool good, and its data up to the token. The data is made anew in every pass, so that a pass that
/// was lost halfway leaves nothing behind.
fn keep_pool(cx: &mut Context<'_>, subject: &Subject) -> Result<Option<BootstrapData>, Problem> {
    let lifetime = subject.lifetime;
    cx.out.wake_after(lifetime.look());
    let mut discovery = subject.config.discovery();
    let holder = if subject.machine.has_node { Holder::SettledPool } else { Holder::Waiting };
    let token = discovery::token(&discovery).unwrap_or_default().to_owned();
    let step = token::observe(cx.host, &token, holder, lifetime)?;
    // First, because the data that was handed out has to stay good whatever became of the spec since.
    match step {
        Step::Create => token::create(cx, &token, lifetime)?,
        Step::Prolong => token::prolong(cx, &token, lifetime)?,
        Step::Keep | Step::Replace => {}
    }
    let fresh = (step == Step::Replace).then(|| discovery::new_token(cx.host));
    if let Some(fresh) = &fresh {
        discovery = discovery::with_token(discovery, fresh);
    }
    let data = join_data(cx, subject, Member::Worker, &discovery)?;
    if let Some(fresh) = &fresh {
        cx.out.own(json!({"spec": {"joinConfiguration": {"discovery": discovery}}}));
        token::create(cx, fresh, lifetime)?;
        cx.out.event("TokenRotated", "machines of the pool join with a new bootstrap token from now on");
    }
    let stored = cx.host.secret(&subject.config.data_secret, "value").optional()?;
    Ok((stored.as_ref() != Some(&data.value)).then_some(data))
}

/// Hands out once more what the machine was given, so that a lost status says so again.
fn restored(cx: &mut Context<'_>, subject: &Subject) -> Result<Option<BootstrapData>, Problem> {
    let name = &subject.machine.data_secret;
    let missing =
        || Problem::waiting("SecretNotFound", format!("the machine uses the Secret {name}, which is not there"));
    let keys = cx.host.secret_keys(name, &["value", "format"]).optional()?.ok_or_else(missing)?;
    let mut keys = keys.into_iter();
    let value = keys.next().flatten().ok_or_else(missing)?;
    let format = match keys.next().flatten().as_deref() {
        Some(b"ignition") => Format::Ignition,
        _ => Format::CloudConfig,
    };
    Ok(Some(BootstrapData { format, value }))
}

fn render(cx: &Context<'_>, config: &Config, payload: Payload) -> Result<BootstrapData, Problem> {
    let users = files::users(cx.host, &config.spec)?;
    let (data, warnings) = userdata::render(&config.spec, &users, payload)?;
    for warning in warnings {
        cx.host.log(Level::Warn, "spec.ignition.containerLinuxConfig.additionalConfig", &[("warning", &warning)]);
    }
    Ok(data)
}

/// All pairs of the control plane, waited for where a provider makes them, made here where nobody else does.
fn certificates(cx: &mut Context<'_>, subject: &Subject) -> Result<Certificates, Problem> {
    let cluster = &subject.cluster;
    let settings = Settings::of(&subject.config.spec.cluster_configuration);
    let certificates = Certificates::read(cx.host, &cluster.name, settings).inspect_err(|problem| {
        if problem.fault == Fault::Invalid {
            conditions::certificates_broken(&mut cx.out, &problem.message);
        }
    })?;
    if certificates.is_complete() {
        conditions::certificates_available(&mut cx.out);
        return Ok(certificates);
    }
    let missing = format!("waiting for the Secrets {}", certificates.missing_names(&cluster.name));
    conditions::certificates_missing(&mut cx.out, &missing);
    // A member that joins must bring what the first one has: new pairs would be another cluster's.
    if !cluster.has_control_plane_provider && !cluster.initialized {
        certificates.create_missing(cx, (&cluster.namespace, &cluster.name), settings, &cluster.owner())?;
    }
    Err(Problem::waiting("WaitingForCertificates", missing))
}

/// The certificate of the cluster's CA.
fn cluster_ca(cx: &mut Context<'_>, cluster: &Cluster) -> Result<String, Problem> {
    let name = Purpose::ClusterCa.secret_name(&cluster.name);
    let found = certificates::find(cx.host, &name).inspect_err(|problem| {
        if problem.fault == Fault::Invalid {
            conditions::certificates_broken(&mut cx.out, &problem.message);
        }
    })?;
    match found {
        Some(found) => {
            conditions::certificates_available(&mut cx.out);
            Ok(found.certificate_pem)
        }
        None => {
            let missing = format!("waiting for the Secret {name}");
            conditions::certificates_missing(&mut cx.out, &missing);
            Err(Problem::waiting("WaitingForCertificates", missing))
        }
    }
}

/// The Secret `<cluster>-kubeconfig`, where no control plane provider makes it.
fn keep_kubeconfig(cx: &mut Context<'_>, subject: &Subject) -> Result<(), Problem> {
    let Subject { config, machine, cluster, .. } = subject;
    let Some(endpoint) = cluster.endpoint.as_deref() else { return Ok(()) };
    if cluster.has_control_plane_provider || !machine.control_plane {
        return Ok(());
    }
    let server = format!("https://{endpoint}");
    let step = kubeconfig::observe(cx.host, &cluster.name, Some(&server))?;
    if let kubeconfig::Step::Keep(due) = step {
        if let Some(due) = due {
            cx.out.wake_after(Duration::from_millis(due));
        }
        return Ok(());
    }
    let settings = Settings::of(&config.spec.cluster_configuration);
    let certificates = Certificates::read(cx.host, &cluster.name, settings)?;
    let Some(authority) = certificates.get(Purpose::ClusterCa) else { return Ok(()) };
    let target = kubeconfig::Target { namespace: &cluster.namespace, cluster: &cluster.name, server: &server };
    Ok(kubeconfig::write(cx, step, target, authority, settings.algorithm, &cluster.owner())?)
}

/// What the control plane is to run, for templates; empty when nobody says so.
fn control_plane_version(cx: &Context<'_>) -> String {
    cx.related_one("control-plane").map(|it| object::text(&it, "/spec/version").to_owned()).unwrap_or_default()
}

impl Config {
    /// `spec.joinConfiguration.discovery`; empty when it is absent.
    pub fn discovery(&self) -> Map<String, Value> {
        self.spec.join_configuration.get("discovery").and_then(Value::as_object).cloned().unwrap_or_default()
    }
}
