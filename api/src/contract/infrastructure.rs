//! Infrastructure clusters and machines.

use serde_json::{Map, Value};

use super::Contract;
use crate::json;
use crate::kinds::{Endpoint, FailureDomain, MachineAddress};

/// Whether the infrastructure (of a cluster or a machine) is there. What a v1beta1 object calls `ready` also counts for
/// a v1beta2 one only where the contract says so: it does not.
pub fn provisioned(object: &Value, contract: Contract) -> bool {
    match contract {
        Contract::V1Beta1 => json::flag(object, "/status/ready") == Some(true),
        Contract::V1Beta2 => json::flag(object, "/status/initialization/provisioned") == Some(true),
    }
}

/// Path of [`provisioned`], for messages.
pub fn provisioned_path(contract: Contract) -> &'static str {
    match contract {
        Contract::V1Beta1 => "status.ready",
        Contract::V1Beta2 => "status.initialization.provisioned",
    }
}

/// The API server's endpoint, when host and port are there.
pub fn endpoint(object: &Value) -> Option<Endpoint> {
    let host = json::text(object, "/spec/controlPlaneEndpoint/host")?;
    let port = i32::try_from(json::number(object, "/spec/controlPlaneEndpoint/port")?).ok()?;
    (port != 0).then(|| Endpoint { host: host.to_owned(), port })
}

/// Failure domains by name: a map in v1beta1, a list in v1beta2.
pub fn failure_domains(object: &Value, contract: Contract) -> Vec<FailureDomain> {
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

/// The machine's identity at the provider, equal to `spec.providerID` of its Node.
pub fn provider_id(object: &Value) -> Option<&str> {
    json::text(object, "/spec/providerID")
}

/// The machine's addresses, as reported.
pub fn addresses(object: &Value) -> Vec<MachineAddress> {
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

/// The failure domain that the machine was placed in. `spec.failureDomain` is how providers reported it before.
pub fn failure_domain(object: &Value) -> Option<&str> {
    json::text(object, "/status/failureDomain").or_else(|| json::text(object, "/spec/failureDomain"))
}

/// Whether the machine may be taken away at any time.
pub fn interruptible(object: &Value) -> bool {
    json::flag(object, "/status/interruptible") == Some(true)
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
