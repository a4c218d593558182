//! What a call returns: the typed answer of its role, or why it did not finish.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bindings::{exports, types};
use crate::outcome::Outcome;

/// A finished call. What `outcome` collected counts also when `answer` is a problem.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The role's answer.
    pub answer: Result<Answer, Problem>,
    /// What should be, besides.
    pub outcome: Outcome,
    /// What it cost.
    pub stats: CallStats,
}

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// From instantiation to answer, waits on others included.
    pub duration: Duration,
    /// CPU time of guest and host calls, less `cpu_outside`.
    pub cpu: Duration,
    /// CPU time of what it asked of others: HTTP, etcd, workload clusters, Secrets.
    pub cpu_outside: Duration,
    /// Largest linear memory, bytes.
    pub peak_memory: usize,
    /// Bytes of answer and outcome.
    pub result_bytes: usize,
}

/// An answer, by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// Of `infrastructure-cluster.provision`.
    Cluster {
        /// Latches.
        provisioned: bool,
        /// Of the API server; latches.
        endpoint: Option<Endpoint>,
        /// Where machines may stand.
        failure_domains: Vec<FailureDomain>,
    },
    /// Of `infrastructure-machine.provision`.
    Machine {
        /// Latches.
        provisioned: bool,
        /// Latches.
        provider_id: Option<String>,
        /// Addresses of the machine.
        addresses: Vec<Address>,
        /// Where it stands.
        failure_domain: Option<String>,
    },
    /// Of `infrastructure-machine-pool.provision`.
    Pool {
        /// Latches.
        provisioned: bool,
        /// Of the instances that there are.
        provider_ids: Vec<String>,
        /// Instances.
        replicas: u32,
    },
    /// Of `bootstrap.generate`; none leaves what is there.
    Bootstrap(Option<BootstrapData>),
    /// Of `control-plane.reconcile`.
    ControlPlane(ControlPlane),
    /// Of `controller.reconcile`: it is as it should be.
    Reconciled,
    /// Of every deletion: true when nothing is left.
    Gone(bool),
}

/// Where an API server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A failure domain of an infrastructure cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name.
    pub name: String,
    /// Whether control-plane machines may stand here.
    pub control_plane: bool,
    /// Anything else, for the provider.
    pub attributes: Vec<(String, String)>,
}

/// An address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// `Hostname`, `ExternalIP`, `InternalIP`, `ExternalDNS` or `InternalDNS`.
    pub kind: String,
    /// The address.
    pub value: String,
}

/// What a machine runs to become a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapData {
    /// `cloud-config` or `ignition`.
    pub format: String,
    /// The data; secret.
    #[serde(with = "crate::record::payload")]
    pub value: Vec<u8>,
}

impl std::fmt::Debug for BootstrapData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value has join tokens and keys: it must not reach a log by way of a Debug print.
        f.debug_struct("BootstrapData").field("format", &self.format).field("bytes", &self.value.len()).finish()
    }
}

/// State of a control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// Latches: the first API server answers.
    pub initialized: bool,
    /// Of the API server.
    pub endpoint: Option<Endpoint>,
    /// The lowest of all machines.
    pub version: Option<String>,
    /// Machines.
    pub replicas: u32,
    /// Ready ones.
    pub ready: u32,
    /// Available ones.
    pub available: u32,
    /// Those that match the spec.
    pub up_to_date: u32,
    /// Label selector of the machines.
    pub selector: String,
}

/// Why a provider did not finish; decides retry, event and severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// Somebody else has to act first. Not an error.
    Waiting,
    /// Try again with backoff.
    Transient,
    /// The object asks for what cannot be.
    Invalid,
    /// As invalid, and needs a person.
    Terminal,
    /// This provider does not do that.
    Unsupported,
}

/// An unfinished call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{reason}: {message}")]
pub struct Problem {
    /// Decides what happens next.
    pub fault: Fault,
    /// CamelCase: reason of the condition and of the event.
    pub reason: String,
    /// For a person.
    pub message: String,
    /// When to try again, if the provider knows.
    pub retry_after: Option<Duration>,
}

impl Answer {
    /// Bytes of everything of variable size in it.
    pub(crate) fn bytes(&self) -> usize {
        let endpoint = |endpoint: &Option<Endpoint>| endpoint.as_ref().map_or(0, |e| e.host.len());
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Answer::Cluster { endpoint: e, failure_domains, .. } => {
                let attributes = |d: &FailureDomain| d.attributes.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
                endpoint(e) + failure_domains.iter().map(|d| d.name.len() + attributes(d)).sum::<usize>()
            }
            Answer::Machine { provider_id, addresses, failure_domain, .. } => {
                text(provider_id)
                    + text(failure_domain)
                    + addresses.iter().map(|a| a.kind.len() + a.value.len()).sum::<usize>()
            }
            Answer::Pool { provider_ids, .. } => provider_ids.iter().map(String::len).sum::<usize>(),
            Answer::Bootstrap(data) => data.as_ref().map_or(0, |d| d.format.len() + d.value.len()),
            Answer::ControlPlane(state) => endpoint(&state.endpoint) + text(&state.version) + state.selector.len(),
            Answer::Reconciled | Answer::Gone(_) => 0,
        }
    }
}

impl Problem {
    /// Bytes of everything of variable size in it.
    pub(crate) fn bytes(&self) -> usize {
        self.reason.len() + self.message.len()
    }
}

impl From<types::Endpoint> for Endpoint {
    fn from(endpoint: types::Endpoint) -> Self {
        Endpoint { host: endpoint.host, port: endpoint.port }
    }
}

impl From<exports::infrastructure_cluster::Cluster> for Answer {
    fn from(cluster: exports::infrastructure_cluster::Cluster) -> Self {
        Answer::Cluster {
            provisioned: cluster.provisioned,
            endpoint: cluster.endpoint.map(Endpoint::from),
            failure_domains: cluster
                .failure_domains
                .into_iter()
                .map(|d| FailureDomain { name: d.name, control_plane: d.control_plane, attributes: d.attributes })
                .collect(),
        }
    }
}

impl From<exports::infrastructure_machine::Machine> for Answer {
    fn from(machine: exports::infrastructure_machine::Machine) -> Self {
        Answer::Machine {
            provisioned: machine.provisioned,
            provider_id: machine.provider_id,
            addresses: machine.addresses.into_iter().map(|a| Address { kind: a.kind, value: a.value }).collect(),
            failure_domain: machine.failure_domain,
        }
    }
}

impl From<exports::infrastructure_machine_pool::Pool> for Answer {
    fn from(pool: exports::infrastructure_machine_pool::Pool) -> Self {
        Answer::Pool { provisioned: pool.provisioned, provider_ids: pool.provider_ids, replicas: pool.replicas }
    }
}

impl From<Option<exports::bootstrap::BootstrapData>> for Answer {
    fn from(data: Option<exports::bootstrap::BootstrapData>) -> Self {
        Answer::Bootstrap(data.map(|d| BootstrapData { format: d.format, value: d.value }))
    }
}

impl From<exports::control_plane::State> for Answer {
    fn from(state: exports::control_plane::State) -> Self {
        Answer::ControlPlane(ControlPlane {
            initialized: state.initialized,
            endpoint: state.endpoint.map(Endpoint::from),
            version: state.version,
            replicas: state.replicas,
            ready: state.ready,
            available: state.available,
            up_to_date: state.up_to_date,
            selector: state.selector,
        })
    }
}

impl From<()> for Answer {
    fn from((): ()) -> Self {
        Answer::Reconciled
    }
}

impl From<types::Problem> for Problem {
    fn from(problem: types::Problem) -> Self {
        Problem {
            fault: match problem.fault {
                types::Fault::Waiting => Fault::Waiting,
                types::Fault::Transient => Fault::Transient,
                types::Fault::Invalid => Fault::Invalid,
                types::Fault::Terminal => Fault::Terminal,
                types::Fault::Unsupported => Fault::Unsupported,
            },
            reason: problem.reason,
            message: problem.message,
            retry_after: problem.retry_after_ms.map(Duration::from_millis),
        }
    }
}
