//! What is read of a KubeadmControlPlane and of its Cluster.

use std::time::Duration;

use capwasm_api::conditions::{self, Status};
use capwasm_api::names::{annotations, condition};
use capwasm_kubeadm::cluster;
use capwasm_object::json;
use capwasm_sdk::{ObjectRef, Problem, object};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::names;

/// A KubeadmControlPlane, as far as it is read.
#[derive(Clone, Debug, Default)]
pub struct ControlPlane {
    /// The object as the host handed it over.
    pub object: Value,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `apiVersion`, for owner references.
    pub api_version: String,
    /// How many machines there should be.
    pub replicas: u32,
    /// Whether `spec.replicas` says so.
    pub has_replicas: bool,
    /// Kubernetes version of new machines, `v1.36.0`.
    pub version: String,
    /// `spec.kubeadmConfigSpec`.
    pub config: Map<String, Value>,
    /// `spec.machineTemplate`.
    pub template: Value,
    /// `spec.machineNaming.template`; empty for the default.
    pub naming: String,
    /// `spec.rollout`.
    pub rollout: Rollout,
    /// `spec.remediation`.
    pub remediation: Remediation,
    /// The first API server has answered before.
    pub initialized: bool,
    /// The first slot that was never used, as recorded.
    pub next_slot: Option<String>,
    /// The record of a remediation whose replacement is not there yet.
    pub remediating: Option<String>,
}

/// When machines are replaced, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Machines older than this are replaced once it has passed.
    pub after: Option<Timestamp>,
    /// Machines whose certificates end within this time are replaced.
    pub before_expiry: Option<Duration>,
    /// One machine more (true), or one fewer, during a rollout.
    pub no_surge: bool,
}

/// How often unhealthy machines are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remediation {
    /// The limit of tries; none is no limit.
    pub max_retry: Option<i64>,
    /// Least time between two tries.
    pub retry_period: Duration,
    /// A machine that was well for this long starts a new count.
    pub min_healthy_period: Duration,
}

impl Default for Remediation {
    fn default() -> Remediation {
        Remediation { max_retry: None, retry_period: Duration::ZERO, min_healthy_period: Duration::from_secs(3600) }
    }
}

impl ControlPlane {
    /// Reads a KubeadmControlPlane; one of the wrong shape is `invalid`.
    pub fn read(object: &Value) -> Result<ControlPlane, Problem> {
        let replicas = match json::at(object, "/spec/replicas") {
            None | Some(Value::Null) => Some(1),
            Some(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        let seconds = |pointer: &str| json::at(object, pointer).and_then(Value::as_u64).map(Duration::from_secs);
        let default = Remediation::default();
        Ok(ControlPlane {
            name: object::name(object).to_owned(),
            namespace: object::namespace(object).to_owned(),
            uid: object::uid(object).to_owned(),
            api_version: object::text(object, "/apiVersion").to_owned(),
            replicas: replicas
                .ok_or_else(|| Problem::invalid("InvalidReplicas", "spec.replicas must be a whole number"))?,
            has_replicas: json::at(object, "/spec/replicas").is_some_and(|replicas| !replicas.is_null()),
            version: with_v(object::text(object, "/spec/version")),
            config: match json::at(object, "/spec/kubeadmConfigSpec") {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(config)) => config.clone(),
                Some(_) => {
                    return Err(Problem::invalid("InvalidConfiguration", "spec.kubeadmConfigSpec must be an object"));
                }
            },
            template: json::at(object, "/spec/machineTemplate").cloned().unwrap_or_default(),
            naming: object::text(object, "/spec/machineNaming/template").to_owned(),
            rollout: Rollout {
                after: object::text(object, "/spec/rollout/after").parse().ok(),
                before_expiry: json::at(object, "/spec/rollout/before/certificatesExpiryDays")
                    .and_then(Value::as_u64)
                    .filter(|days| *days > 0)
                    .map(|days| Duration::from_secs(days.saturating_mul(86_400))),
                no_surge: surge(object) == Some(0),
            },
            remediation: Remediation {
                max_retry: json::at(object, "/spec/remediation/maxRetry").and_then(Value::as_i64),
                retry_period: seconds("/spec/remediation/retryPeriodSeconds").unwrap_or(default.retry_period),
                min_healthy_period: seconds("/spec/remediation/minHealthyPeriodSeconds")
                    .unwrap_or(default.min_healthy_period),
            },
            initialized: flag(object, "/status/initialization/controlPlaneInitialized"),
            next_slot: object::annotation(object, annotations::NEXT_SLOT).map(str::to_owned),
            remediating: object::annotation(object, names::REMEDIATION_IN_PROGRESS).map(str::to_owned),
            object: object.clone(),
        })
    }

    /// An owner reference that controls.
    pub fn owner(&self) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": "KubeadmControlPlane", "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// `clusterConfiguration` of its kubeadm configuration.
    pub fn cluster_configuration(&self) -> Map<String, Value> {
        self.config.get("clusterConfiguration").and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// Whether it carries an annotation.
    pub fn is_annotated(&self, name: &str) -> bool {
        object::annotation(&self.object, name).is_some()
    }

    /// Since when it counts as initialized.
    pub fn initialized_since(&self) -> Option<Timestamp> {
        conditions::get(&self.object, names::INITIALIZED)
            .filter(|condition| condition.status == Status::True)
            .and_then(|condition| condition.since())
    }
}

/// `maxSurge` as a number, however it was written.
pub fn surge(object: &Value) -> Option<i64> {
    let value = json::at(object, "/spec/rollout/strategy/rollingUpdate/maxSurge")?;
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Machines carry versions with a `v`, whatever the user wrote.
fn with_v(version: &str) -> String {
    if version.starts_with(|c: char| c.is_ascii_digit()) { format!("v{version}") } else { version.to_owned() }
}

/// `spec.machineTemplate.spec.infrastructureRef`.
#[derive(Clone, Debug, Default)]
pub struct TemplateRef {
    /// API group.
    pub group: String,
    /// Kind, ending in `Template`.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl TemplateRef {
    /// That of a control plane; empty names when it has none.
    pub fn of(plane: &ControlPlane) -> TemplateRef {
        let part = |name: &str| object::text(&plane.template, &format!("/spec/infrastructureRef/{name}")).to_owned();
        TemplateRef { group: part("apiGroup"), kind: part("kind"), name: part("name") }
    }

    /// `Kind.group`, as annotations of clones have it.
    pub fn group_kind(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }

    /// Kind of the infrastructure machines that are cloned from it.
    pub fn machine_kind(&self) -> &str {
        self.kind.strip_suffix("Template").unwrap_or(&self.kind)
    }

    /// To look it up in the version that the host knows.
    pub fn target(&self) -> ObjectRef {
        ObjectRef::new(format!("{}/", self.group), &self.kind, &self.name)
    }
}

/// The Cluster, as far as it is read.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// It is being deleted.
    pub deleting: bool,
    /// `status.initialization.infrastructureProvisioned`: machines may be made.
    pub infrastructure_provisioned: bool,
    /// `https://host:port` of the API server, once it is known.
    pub server: Option<String>,
    /// Names of the failure domains for control-plane machines.
    pub failure_domains: Vec<String>,
    /// The version that its topology is at, where it has one.
    pub topology_version: Option<String>,
    /// Since when its API server does not answer.
    pub down_since: Option<Timestamp>,
}

impl Cluster {
    /// Reads a Cluster.
    pub fn read(object: &Value) -> Cluster {
        let domains = json::items(object, "/status/failureDomains");
        let domains = domains.iter().filter(|domain| flag(domain, "/controlPlane"));
        let topology = object::text(object, "/spec/topology/version");
        Cluster {
            name: object::name(object).to_owned(),
            uid: object::uid(object).to_owned(),
            deleting: object::is_deleting(object),
            infrastructure_provisioned: flag(object, "/status/initialization/infrastructureProvisioned"),
            server: cluster::endpoint(object).map(|endpoint| format!("https://{endpoint}")),
            failure_domains: domains
                .map(|domain| object::text(domain, "/name").to_owned())
                .filter(|name| !name.is_empty())
                .collect(),
            topology_version: (!topology.is_empty())
                .then(|| with_v(object::annotation(object, names::TOPOLOGY_UPGRADE_STEP).unwrap_or(topology))),
            down_since: conditions::get(object, condition::REMOTE_CONNECTION_PROBE)
                .filter(|probe| probe.status == Status::False)
                .and_then(|probe| probe.since()),
        }
    }

    /// An owner reference to it.
    pub fn owner(&self) -> Value {
        cluster::owner(&self.name, &self.uid)
    }
}

fn flag(object: &Value, pointer: &str) -> bool {
    json::at(object, pointer).and_then(Value::as_bool).unwrap_or_default()
}
