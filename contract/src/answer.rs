//! Typed answers of the roles' functions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Answer of a role's function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Of `infrastructure-cluster.provision`.
    Cluster(ClusterAnswer),
    /// Of `infrastructure-machine.provision`.
    Machine(MachineAnswer),
    /// Of `infrastructure-machine-pool.provision`.
    Pool(PoolAnswer),
    /// Of `bootstrap.generate`; `None` keeps the existing data.
    Bootstrap(Option<BootstrapData>),
    /// Of `control-plane.reconcile`.
    ControlPlane(ControlPlaneAnswer),
    /// Of `controller.reconcile`.
    Reconciled,
    /// Of every deletion: whether nothing is left.
    Gone(bool),
}

/// State of an infrastructure cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAnswer {
    /// Machines may be created. Latches: true is final.
    pub provisioned: bool,
    /// Endpoint of the API server. Latches.
    pub endpoint: Option<Endpoint>,
    /// Failure domains for machines; may be empty.
    pub failure_domains: Vec<FailureDomain>,
}

/// State of an infrastructure machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineAnswer {
    /// Whether the machine runs. Latches.
    pub provisioned: bool,
    /// `spec.providerID` of the Node. Latches.
    pub provider_id: Option<String>,
    /// Addresses of the machine; may be empty.
    pub addresses: Vec<Address>,
    /// Failure domain of the machine.
    pub failure_domain: Option<String>,
}

/// State of a pool of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolAnswer {
    /// Whether the pool exists. Latches.
    pub provisioned: bool,
    /// Provider IDs of the existing instances.
    pub provider_ids: Vec<String>,
    /// Number of existing instances.
    pub replicas: u32,
}

/// State of a control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneAnswer {
    /// Whether the first API server answers. Latches.
    pub initialized: bool,
    /// Endpoint of the API server, if the control plane provides it.
    pub endpoint: Option<Endpoint>,
    /// Lowest Kubernetes version of its machines, such as `v1.34.1`.
    pub version: Option<String>,
    /// Number of machines.
    pub replicas: u32,
    /// Number of ready machines.
    pub ready: u32,
    /// Number of available machines.
    pub available: u32,
    /// Number of machines that match the spec.
    pub up_to_date: u32,
    /// Label selector of the machines, as kubectl takes it.
    pub selector: String,
}

/// Endpoint of an API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// DNS name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Failure domain of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Name, unique in the cluster.
    pub name: String,
    /// Whether control plane machines may be placed there.
    pub control_plane: bool,
    /// Provider-specific names and values.
    pub attributes: Vec<(String, String)>,
}

/// Address of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// Type of the address.
    pub kind: AddressKind,
    /// DNS name or IP address.
    pub value: String,
}

/// Kinds of machine addresses, as Kubernetes names them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub enum AddressKind {
    Hostname,
    ExternalIp,
    InternalIp,
    ExternalDns,
    InternalDns,
    /// A type that Kubernetes does not know; an API server refuses it.
    Other(String),
}

impl AddressKind {
    /// Name in the Kubernetes API, such as `InternalIP`.
    pub fn as_str(&self) -> &str {
        match self {
            AddressKind::Hostname => "Hostname",
            AddressKind::ExternalIp => "ExternalIP",
            AddressKind::InternalIp => "InternalIP",
            AddressKind::ExternalDns => "ExternalDNS",
            AddressKind::InternalDns => "InternalDNS",
            AddressKind::Other(name) => name,
        }
    }
}

impl From<&str> for AddressKind {
    fn from(name: &str) -> AddressKind {
        match name {
            "Hostname" => AddressKind::Hostname,
            "ExternalIP" => AddressKind::ExternalIp,
            "InternalIP" => AddressKind::InternalIp,
            "ExternalDNS" => AddressKind::ExternalDns,
            "InternalDNS" => AddressKind::InternalDns,
            _ => AddressKind::Other(name.to_owned()),
        }
    }
}

impl From<String> for AddressKind {
    fn from(name: String) -> AddressKind {
        AddressKind::from(name.as_str())
    }
}

impl From<AddressKind> for String {
    fn from(kind: AddressKind) -> String {
        match kind {
            AddressKind::Other(name) => name,
            kind => kind.as_str().to_owned(),
        }
    }
}

/// Bootstrap data of a machine.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapData {
    /// Format of `value`.
    pub format: Format,
    /// The document, which is secret.
    #[serde(with = "crate::payload")]
    pub value: Vec<u8>,
}

impl fmt::Debug for BootstrapData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value has join tokens and keys: it must not reach a log by way of a Debug print.
        f.debug_struct("BootstrapData").field("format", &self.format).field("bytes", &self.value.len()).finish()
    }
}

/// Formats of bootstrap data.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Format {
    CloudConfig,
    Ignition,
    /// A format outside of the contract, passed on unchanged.
    Other(String),
}

impl Format {
    /// Name in the Secret, such as `cloud-config`.
    pub fn as_str(&self) -> &str {
        match self {
            Format::CloudConfig => "cloud-config",
            Format::Ignition => "ignition",
            Format::Other(name) => name,
        }
    }
}

impl From<&str> for Format {
    fn from(name: &str) -> Format {
        match name {
            "cloud-config" => Format::CloudConfig,
            "ignition" => Format::Ignition,
            _ => Format::Other(name.to_owned()),
        }
    }
}

impl From<String> for Format {
    fn from(name: String) -> Format {
        Format::from(name.as_str())
    }
}

impl From<Format> for String {
    fn from(format: Format) -> String {
        match format {
            Format::Other(name) => name,
            format => format.as_str().to_owned(),
        }
    }
}

impl Answer {
    /// Size of its variable parts in bytes. Each item of a list takes some, also an empty one.
    pub fn bytes(&self) -> usize {
        const PAIR: usize = size_of::<(String, String)>();
        let endpoint = |endpoint: &Option<Endpoint>| endpoint.as_ref().map_or(0, |e| e.host.len());
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Answer::Cluster(cluster) => {
                let attributes =
                    |d: &FailureDomain| d.attributes.iter().map(|(k, v)| PAIR + k.len() + v.len()).sum::<usize>();
                let domains = cluster
                    .failure_domains
                    .iter()
                    .map(|d| size_of::<FailureDomain>() + d.name.len() + attributes(d))
                    .sum::<usize>();
                endpoint(&cluster.endpoint) + domains
            }
            Answer::Machine(machine) => {
                let addresses = machine
                    .addresses
                    .iter()
                    .map(|a| size_of::<Address>() + a.kind.as_str().len() + a.value.len())
                    .sum::<usize>();
                text(&machine.provider_id) + text(&machine.failure_domain) + addresses
            }
            Answer::Pool(pool) => pool.provider_ids.iter().map(|id| size_of::<String>() + id.len()).sum::<usize>(),
            Answer::Bootstrap(data) => data.as_ref().map_or(0, |d| d.format.as_str().len() + d.value.len()),
            Answer::ControlPlane(state) => endpoint(&state.endpoint) + text(&state.version) + state.selector.len(),
            Answer::Reconciled | Answer::Gone(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn empty_items_of_a_list_take_memory() {
        let pool = Answer::Pool(PoolAnswer { provider_ids: vec![String::new(); 1_000], ..PoolAnswer::default() });
        let address = Address { kind: AddressKind::Other(String::new()), value: String::new() };
        let machine = Answer::Machine(MachineAnswer { addresses: vec![address; 1_000], ..MachineAnswer::default() });
        let attributes = vec![(String::new(), String::new()); 1_000];
        let domain = FailureDomain { name: String::new(), control_plane: true, attributes };
        let cluster = Answer::Cluster(ClusterAnswer { failure_domains: vec![domain], ..ClusterAnswer::default() });
        for answer in [pool, machine, cluster] {
            assert!(answer.bytes() >= 24_000, "{answer:?}");
        }
    }

    #[test]
    fn answers_are_written_by_role_with_the_names_of_the_api() {
        let rows = [
            (
                Answer::Cluster(ClusterAnswer {
                    provisioned: true,
                    endpoint: Some(Endpoint { host: "h".into(), port: 6443 }),
                    failure_domains: vec![FailureDomain {
                        name: "a".into(),
                        control_plane: true,
                        attributes: vec![("k".into(), "v".into())],
                    }],
                }),
                json!({"cluster": {
                    "provisioned": true, "endpoint": {"host": "h", "port": 6443},
                    "failureDomains": [{"name": "a", "controlPlane": true, "attributes": [["k", "v"]]}]}}),
            ),
            (
                Answer::Machine(MachineAnswer {
                    addresses: vec![Address { kind: AddressKind::InternalIp, value: "10.0.0.1".into() }],
                    ..MachineAnswer::default()
                }),
                json!({"machine": {"provisioned": false, "providerId": null, "failureDomain": null,
                    "addresses": [{"kind": "InternalIP", "value": "10.0.0.1"}]}}),
            ),
            (
                Answer::Bootstrap(Some(BootstrapData { format: Format::Ignition, value: vec![0xff] })),
                json!({"bootstrap": {"format": "ignition", "value": {"base64": "/w=="}}}),
            ),
            (Answer::Reconciled, json!("reconciled")),
            (Answer::Gone(true), json!({"gone": true})),
        ];
        for (answer, written) in rows {
            assert_eq!(serde_json::to_value(&answer).unwrap(), written);
            assert_eq!(serde_json::from_value::<Answer>(written).unwrap(), answer);
        }
    }

    #[test]
    fn a_kind_or_format_that_nobody_knows_is_handed_on() {
        for name in ["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS", "Carrier pigeon"] {
            assert_eq!(String::from(AddressKind::from(name.to_owned())), name);
        }
        for name in ["cloud-config", "ignition", "talos"] {
            assert_eq!(String::from(Format::from(name.to_owned())), name);
        }
    }
}
