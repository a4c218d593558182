//! What a call answers: the typed answer of its role.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An answer, by role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Of `infrastructure-cluster.provision`.
    Cluster(ClusterAnswer),
    /// Of `infrastructure-machine.provision`.
    Machine(MachineAnswer),
    /// Of `infrastructure-machine-pool.provision`.
    Pool(PoolAnswer),
    /// Of `bootstrap.generate`; none leaves what is there.
    Bootstrap(Option<BootstrapData>),
    /// Of `control-plane.reconcile`.
    ControlPlane(ControlPlaneAnswer),
    /// Of `controller.reconcile`: it is as it should be.
    Reconciled,
    /// Of every deletion: true when nothing is left.
    Gone(bool),
}

/// What an infrastructure cluster looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAnswer {
    /// Machines may be made. Latches.
    pub provisioned: bool,
    /// Of the API server. Latches.
    pub endpoint: Option<Endpoint>,
    /// Where machines may stand; may be empty.
    pub failure_domains: Vec<FailureDomain>,
}

/// What a machine looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineAnswer {
    /// The machine runs. Latches.
    pub provisioned: bool,
    /// Equal to the Node's. Latches.
    pub provider_id: Option<String>,
    /// Where it is reached; may be empty.
    pub addresses: Vec<Address>,
    /// The failure domain in which it stands.
    pub failure_domain: Option<String>,
}

/// What a pool of machines looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolAnswer {
    /// The pool stands. Latches.
    pub provisioned: bool,
    /// Of the instances that there are, each equal to its Node's.
    pub provider_ids: Vec<String>,
    /// How many instances there are.
    pub replicas: u32,
}

/// What a control plane looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneAnswer {
    /// The first API server answers. Latches.
    pub initialized: bool,
    /// Of the API server, where the control plane provides it.
    pub endpoint: Option<Endpoint>,
    /// The lowest Kubernetes version of all machines: `v1.34.1`.
    pub version: Option<String>,
    /// How many machines there are.
    pub replicas: u32,
    /// How many of them are ready.
    pub ready: u32,
    /// How many of them are available.
    pub available: u32,
    /// How many of them are as the spec wants them.
    pub up_to_date: u32,
    /// Label selector of the machines, as kubectl takes it.
    pub selector: String,
}

/// Where an API server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// Where machines can be placed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Unique in the cluster.
    pub name: String,
    /// Whether control-plane machines may be placed there.
    pub control_plane: bool,
    /// Names and values that the provider alone understands.
    pub attributes: Vec<(String, String)>,
}

/// Where a machine is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// From where, and whether `value` is a name.
    pub kind: AddressKind,
    /// Name or IP address.
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
    /// What no Kubernetes knows; an API server refuses it.
    Other(String),
}

impl AddressKind {
    /// As the API spells it.
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

/// What a machine runs to become a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootstrapData {
    /// What `value` is written in.
    pub format: Format,
    /// The document; secret.
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
    /// None of the contract's; it is handed on as it is.
    Other(String),
}

impl Format {
    /// As it stands in the Secret.
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
    /// Bytes of everything of variable size in it.
    pub fn bytes(&self) -> usize {
        let endpoint = |endpoint: &Option<Endpoint>| endpoint.as_ref().map_or(0, |e| e.host.len());
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Answer::Cluster(cluster) => {
                let attributes = |d: &FailureDomain| d.attributes.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
                let domains = cluster.failure_domains.iter().map(|d| d.name.len() + attributes(d)).sum::<usize>();
                endpoint(&cluster.endpoint) + domains
            }
            Answer::Machine(machine) => {
                let addresses = machine.addresses.iter().map(|a| a.kind.as_str().len() + a.value.len()).sum::<usize>();
                text(&machine.provider_id) + text(&machine.failure_domain) + addresses
            }
            Answer::Pool(pool) => pool.provider_ids.iter().map(String::len).sum::<usize>(),
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
