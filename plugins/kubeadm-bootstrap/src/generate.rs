//! Makes the bootstrap data of one machine: observes, asks [`decide`](crate::decide) for the stage, assembles.

use capwasm_api::names::reason;
use capwasm_sdk::{BootstrapData, Context, Fault, Format, Level, Optional, Problem};
use serde_json::{Map, Value, json};

use crate::certificates::{Certificates, Purpose, Settings};
use crate::cloud_config::{self, CloudConfig, WriteFile};
use crate::config::{Cluster, Config, Machine};
use crate::decide::{Stage, stage};
use crate::discovery::{self, Plan};
use crate::kubeadm::{self, Member};
use crate::{config, files, lock, token};

/// The data Secret exists.
pub const DATA_SECRET_AVAILABLE: &str = "DataSecretAvailable";
/// The cluster's certificates exist.
pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";

const INIT_CONFIG: &str = "/run/kubeadm/kubeadm.yaml";
const JOIN_CONFIG: &str = "/run/kubeadm/kubeadm-join-config.yaml";

/// The whole observation of one pass.
struct Subject {
    config: Config,
    machine: Machine,
    cluster: Cluster,
}

/// One pass over a KubeadmConfig.
pub fn generate(cx: &mut Context<'_>, object: &Value) -> Result<Option<BootstrapData>, Problem> {
    let result = Config::read(object).and_then(|config| pass(cx, config));
    match result {
        Ok(None) => Ok(None),
        Ok(Some(data)) => {
            cx.out.condition(DATA_SECRET_AVAILABLE, Some(true), reason::AVAILABLE, "");
            Ok(Some(data))
        }
        // The data was handed out: whatever is wrong with the rest, or becomes so, does not take it back.
        Err(problem) if config::has_data(object) => {
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
        Err(problem) => {
            cx.out.condition(DATA_SECRET_AVAILABLE, Some(false), reason::NOT_AVAILABLE, problem.message.clone());
            Err(problem)
        }
    }
}

fn pass(cx: &mut Context<'_>, config: Config) -> Result<Option<BootstrapData>, Problem> {
    if !matches!(config.spec.format.as_str(), "" | "cloud-config") {
        return Err(Problem::invalid(
            "UnsupportedFormat",
            format!("format {} is not supported yet; use cloud-config", config.spec.format),
        ));
    }
    let (Some(machine), Some(cluster)) = (cx.related_one("machine"), cx.related_one("cluster")) else {
        return Err(Problem::waiting("WaitingForMachine", "no Machine of a Cluster uses this configuration yet"));
    };
    let subject = Subject { config, machine: Machine::read(&machine), cluster: Cluster::read(&cluster) };
    match stage(&subject.config, &subject.machine, &subject.cluster) {
        Stage::Settled => Ok(None),
        Stage::KeepToken => keep_token(cx, &subject).map(|()| None),
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
    let Subject { config, machine, cluster } = subject;
    kubeadm::check_version(&machine.version)?;
    lock::acquire(cx, cluster, machine)?;
    let certificates = certificates(cx, subject)?;
    let mut written = files::of_certificates(&certificates, &config.spec);
    written.extend(files::of_user(cx.host, &config.spec)?);
    written.push(WriteFile::of_root(INIT_CONFIG, "0640", kubeadm::init(&config.spec, cluster, &machine.version)));
    render(cx, config, written, cloud_config::kubeadm("init", INIT_CONFIG, config.spec.verbosity))
}

/// Data of a machine that joins an initialized control plane.
fn join(cx: &mut Context<'_>, subject: &Subject, member: Member) -> Result<BootstrapData, Problem> {
    let Subject { config, machine, cluster } = subject;
    kubeadm::check_version(&machine.version)?;
    lock::release(cx, cluster)?;
    let Some(endpoint) = cluster.endpoint.as_deref() else {
        return Err(Problem::waiting("WaitingForEndpoint", "the Cluster has no control plane endpoint yet"));
    };
    let mut written = match member {
        Member::ControlPlane => files::of_certificates(&certificates(cx, subject)?, &config.spec),
        Member::Worker => Vec::new(),
    };
    let discovery = config.discovery();
    let ca = if discovery::wants_ca(&discovery) { Some(cluster_ca(cx, cluster)?) } else { None };
    let hash = ca.as_deref().map(|ca| cx.host.public_key_hash(ca)).transpose()?;
    match discovery::decide(&discovery, endpoint, hash.as_deref(), || token::random(cx.host)) {
        Plan::Persist(token) => {
            cx.out
                .own(json!({"spec": {"joinConfiguration": {"discovery": {"bootstrapToken": token}}}}))
                .wake_when_applied();
            return Err(Problem::waiting(
                "PersistingToken",
                "a bootstrap token is written into the KubeadmConfig before it is used",
            ));
        }
        Plan::Complete => {}
    }
    written.extend(files::of_user(cx.host, &config.spec)?);
    written.extend(discovery::kubeconfig(&discovery, endpoint, ca.as_deref())?);
    written.push(WriteFile::of_root(JOIN_CONFIG, "0640", kubeadm::join(&config.spec, &discovery, member)));
    // Last of what may fail, so that no token is let in for data that cannot be made.
    if let Some(token) = discovery::token(&discovery) {
        token::ensure(cx, token)?;
        cx.out.wake_after(token::REFRESH);
    }
    render(cx, config, written, cloud_config::kubeadm("join", JOIN_CONFIG, config.spec.verbosity))
}

/// Prolongs the token of a machine that has not joined.
fn keep_token(cx: &mut Context<'_>, subject: &Subject) -> Result<(), Problem> {
    cx.out.wake_after(token::REFRESH);
    match discovery::token(&subject.config.discovery()) {
        Some(token) => token::ensure(cx, token),
        None => Ok(()),
    }
}

fn render(
    cx: &Context<'_>,
    config: &Config,
    mut files: Vec<WriteFile>,
    kubeadm: String,
) -> Result<BootstrapData, Problem> {
    files.push(WriteFile::placeholder());
    let spec = &config.spec;
    let users = files::users(cx.host, spec)?;
    let run_commands =
        spec.pre_kubeadm_commands.iter().cloned().chain([kubeadm]).chain(spec.post_kubeadm_commands.iter().cloned());
    let document = CloudConfig {
        boot_commands: &spec.boot_commands,
        disk_setup: Some(&spec.disk_setup),
        mounts: &spec.mounts,
        ntp: spec.ntp.as_ref(),
        users: &users,
        files,
        run_commands: run_commands.collect(),
    };
    Ok(BootstrapData { format: Format::CloudConfig, value: document.render().into_bytes() })
}

/// All pairs of the control plane, waited for where a provider makes them, made here where nobody else does.
fn certificates(cx: &mut Context<'_>, subject: &Subject) -> Result<Certificates, Problem> {
    let cluster = &subject.cluster;
    let settings = Settings::of(&subject.config.spec.cluster_configuration);
    let certificates = Certificates::read(cx.host, &cluster.name, settings)?;
    if certificates.is_complete() {
        cx.out.condition(CERTIFICATES_AVAILABLE, Some(true), reason::AVAILABLE, "");
        return Ok(certificates);
    }
    let missing = format!("waiting for the Secrets {}", certificates.missing_names(&cluster.name));
    cx.out.condition(CERTIFICATES_AVAILABLE, Some(false), reason::NOT_AVAILABLE, missing.clone());
    // A member that joins must bring what the first one has: new pairs would be another cluster's.
    if !cluster.has_control_plane_provider && !cluster.initialized {
        certificates.create_missing(cx, (&cluster.namespace, &cluster.name), settings, &cluster.owner())?;
    }
    Err(Problem::waiting("WaitingForCertificates", missing))
}

/// The certificate of the cluster's CA.
fn cluster_ca(cx: &mut Context<'_>, cluster: &Cluster) -> Result<String, Problem> {
    let name = Purpose::ClusterCa.secret_name(&cluster.name);
    match cx.host.secret(&name, "tls.crt").optional()? {
        Some(pem) => {
            cx.out.condition(CERTIFICATES_AVAILABLE, Some(true), reason::AVAILABLE, "");
            String::from_utf8(pem)
                .map_err(|_| Problem::invalid("NotPem", format!("tls.crt of Secret {name} is not PEM text")))
        }
        None => {
            let missing = format!("waiting for the Secret {name}");
            cx.out.condition(CERTIFICATES_AVAILABLE, Some(false), reason::NOT_AVAILABLE, missing.clone());
            Err(Problem::waiting("WaitingForCertificates", missing))
        }
    }
}

impl Config {
    /// `spec.joinConfiguration.discovery`.
    pub fn discovery(&self) -> Map<String, Value> {
        self.spec.join_configuration.get("discovery").and_then(Value::as_object).cloned().unwrap_or_default()
    }
}
