//! Infrastructure clusters, machines and machine pools.

use capwasm_object::json;
use serde_json::{Map, Value};

use super::{Contract, Milestone, Report};
use crate::kinds::{Endpoint, FailureDomain, MachineAddress};

/// Report of a Cluster's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfrastructureCluster {
    /// Whether it is provisioned.
    pub provisioned: bool,
    /// Endpoint of the API server, if host and port are set.
    pub endpoint: Option<Endpoint>,
    /// Sorted by name.
    pub failure_domains: Vec<FailureDomain>,
}

impl Report for InfrastructureCluster {
    fn read(object: &Value, contract: Contract) -> InfrastructureCluster {
        InfrastructureCluster {
            provisioned: provisioned(object, contract),
            endpoint: endpoint(object),
            failure_domains: failure_domains(object, contract),
        }
    }
}

impl Milestone for InfrastructureCluster {
    fn flag(contract: Contract) -> &'static str {
        flag(contract)
    }
}

/// Report of a Machine's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfrastructureMachine {
    /// Whether it is provisioned.
    pub provisioned: bool,
    /// `spec.providerID`, equal to that of the Node.
    pub provider_id: Option<String>,
    /// `status.addresses`.
    pub addresses: Vec<MachineAddress>,
    /// The failure domain in which it is placed.
    pub failure_domain: Option<String>,
    /// Whether the failure domain is also in `spec.failureDomain`, where providers reported it before.
    pub failure_domain_in_spec: bool,
    /// Whether it may disappear at any time, as spot instances do.
    pub interruptible: bool,
}

impl Report for InfrastructureMachine {
    fn read(object: &Value, contract: Contract) -> InfrastructureMachine {
        let in_spec = json::text(object, "/spec/failureDomain");
        let failure_domain = json::text(object, "/status/failureDomain").or(in_spec);
        InfrastructureMachine {
            provisioned: provisioned(object, contract),
            provider_id: json::text(object, "/spec/providerID").map(str::to_owned),
            addresses: addresses(object),
            failure_domain: failure_domain.map(str::to_owned),
            failure_domain_in_spec: in_spec.is_some(),
            interruptible: json::flag(object, "/status/interruptible") == Some(true),
        }
    }
}

impl Milestone for InfrastructureMachine {
    fn flag(contract: Contract) -> &'static str {
        flag(contract)
    }
}

/// Report of a MachinePool's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfrastructurePool {
    /// Whether it is provisioned. Upstream's core reads the v1beta1 flag of pools of both contracts, so providers may
    /// report no other.
    pub provisioned: bool,
    /// `spec.providerIDList`.
    pub provider_ids: Vec<String>,
    /// Number of machines.
    pub replicas: Option<i64>,
    /// Kind of the infrastructure machines, if the provider shows them as objects.
    pub machine_kind: Option<String>,
}

impl Report for InfrastructurePool {
    fn read(object: &Value, contract: Contract) -> InfrastructurePool {
        let ids = json::items(object, "/spec/providerIDList").iter().filter_map(Value::as_str);
        InfrastructurePool {
            provisioned: provisioned(object, contract) || provisioned(object, Contract::V1Beta1),
            provider_ids: ids.map(str::to_owned).collect(),
            replicas: json::number(object, "/status/replicas"),
            machine_kind: json::text(object, "/status/infrastructureMachineKind").map(str::to_owned),
        }
    }
}

impl Milestone for InfrastructurePool {
    fn flag(contract: Contract) -> &'static str {
        flag(contract)
    }
}

fn flag(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta1 => "status.ready",
        Contract::V1Beta2 => "status.initialization.provisioned",
    }
}

/// Whether the infrastructure of a cluster or machine is provisioned. In v1beta2 `status.ready` does not count.
fn provisioned(object: &Value, contract: Contract) -> bool {
    match contract {
        Contract::V1Beta1 => json::flag(object, "/status/ready") == Some(true),
        Contract::V1Beta2 => json::flag(object, "/status/initialization/provisioned") == Some(true),
    }
}

/// The API server's endpoint, if host and port are set.
pub(super) fn endpoint(object: &Value) -> Option<Endpoint> {
    let host = json::text(object, "/spec/controlPlaneEndpoint/host")?;
    let port = i32::try_from(json::number(object, "/spec/controlPlaneEndpoint/port")?).ok()?;
    (port != 0).then(|| Endpoint { host: host.to_owned(), port })
}

/// Failure domains sorted by name: a map in v1beta1, a list in v1beta2.
fn failure_domains(object: &Value, contract: Contract) -> Vec<FailureDomain> {
    let read = |name: &str, entry: &Value| FailureDomain {
        name: name.to_owned(),
        control_plane: json::flag(entry, "/controlPlane"),
        attributes: entry
            .get("attributes")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
    };
    let mut domains: Vec<FailureDomain> = match contract {
        Contract::V1Beta1 => {
            let map = object.pointer("/status/failureDomains").and_then(Value::as_object);
            map.unwrap_or(&Map::new()).iter().map(|(name, entry)| read(name, entry)).collect()
        }
        Contract::V1Beta2 => json::items(object, "/status/failureDomains")
            .iter()
            .filter_map(|entry| Some(read(json::text(entry, "/name")?, entry)))
            .collect(),
    };
    domains.sort_by(|a, b| a.name.cmp(&b.name));
    domains.dedup_by(|a, b| a.name == b.name);
    domains
}

fn addresses(object: &Value) -> Vec<MachineAddress> {
    json::items(object, "/status/addresses")
        .iter()
        .filter_map(|entry| {
            Some(MachineAddress {
                kind: json::text(entry, "/type")?.to_owned(),
                address: json::text(entry, "/address")?.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_contracts_are_read_at_their_own_paths() {
        let old = json!({"status": {"ready": true, "failureDomains": {"b": {"controlPlane": true}, "a": {"attributes": {"k": "v"}}}}});
        let new = json!({"status": {"initialization": {"provisioned": true}, "failureDomains": [{"name": "b", "controlPlane": true}, {"name": "a", "attributes": {"k": "v"}}]}});
        assert!(provisioned(&old, Contract::V1Beta1) && !provisioned(&old, Contract::V1Beta2));
        assert!(provisioned(&new, Contract::V1Beta2) && !provisioned(&new, Contract::V1Beta1));
        assert_eq!(failure_domains(&old, Contract::V1Beta1), failure_domains(&new, Contract::V1Beta2));
        let names: Vec<_> = failure_domains(&new, Contract::V1Beta2).into_iter().map(|domain| domain.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn an_endpoint_needs_host_and_port() {
        assert_eq!(
            endpoint(&json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 6443}}})),
            Some(Endpoint { host: "h".into(), port: 6443 })
        );
        assert_eq!(endpoint(&json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 0}}})), None);
        assert_eq!(endpoint(&json!({"spec": {"controlPlaneEndpoint": {"host": "", "port": 6443}}})), None);
        assert_eq!(endpoint(&json!({})), None);
    }
}
