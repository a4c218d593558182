//! The parts of the objects that this provider reads, and the names that it gives to containers.

use capwasm_sdk::Problem;
use serde::{Deserialize, Serialize};

/// Which cluster a container belongs to.
pub const CLUSTER_LABEL: &str = "io.x-k8s.kind.cluster";
/// What a container is in its cluster.
pub const ROLE_LABEL: &str = "io.x-k8s.kind.role";
/// Uid of the DockerCluster or DockerMachine that a container was made for.
pub const UID_LABEL: &str = "capwasm.dev/uid";
/// Kind, namespace and name of that object.
pub const OBJECT_LABEL: &str = "capwasm.dev/object";
/// On networks that this provider made.
pub const NETWORK_LABEL: &str = "capwasm.dev/network";
/// Annotation of a DockerMachine and label of its container: what a simulated node should do wrong.
pub const SIMULATE: &str = "capwasm.dev/simulate";
/// Annotation of a pool's DockerMachine: the version of Kubernetes that it was made for.
pub const VERSION: &str = "capwasm.dev/version";
/// Where a machine pretends to be: a container's label, and an annotation of a pool's DockerMachine.
pub const FAILURE_DOMAIN_LABEL: &str = "capwasm.dev/failure-domain";
/// On every object of a cluster.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// On every machine of a pool.
pub const POOL_NAME_LABEL: &str = "cluster.x-k8s.io/pool-name";
/// On control-plane machines.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Linux' limit for a host name, which the container's name also is.
const LONGEST_HOST_NAME: usize = 63;

/// `spec` of a DockerCluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Set by the user, or by the host from an earlier answer.
    pub control_plane_endpoint: EndpointSpec,
    /// Copied to the answer.
    pub failure_domains: Vec<FailureDomainSpec>,
    /// The load balancer's container.
    pub load_balancer: LoadBalancerSpec,
}

/// An endpoint; empty when it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointSpec {
    /// Name or address.
    pub host: String,
    /// 0 when not given.
    pub port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureDomainSpec {
    pub name: String,
    /// Whether control-plane machines may be placed there.
    pub control_plane: bool,
    /// Passed on.
    pub attributes: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadBalancerSpec {
    /// Instead of the configured one.
    pub image_repository: String,
    /// Instead of the configured one.
    pub image_tag: String,
    /// A ConfigMap with a Go template.
    #[serde(rename = "customHAProxyConfigTemplateRef")]
    pub custom_template: TemplateRef,
}

/// Names a ConfigMap; empty when there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TemplateRef {
    /// In the object's own namespace.
    pub name: String,
}

/// `spec` of a DockerMachine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// Set by the host from an answer.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Instead of the configured one.
    pub custom_image: String,
    pub extra_mounts: Vec<Mount>,
    /// Images that should be in the machine from the start.
    pub pre_load_images: Vec<String>,
    /// A Go duration.
    pub bootstrap_timeout: String,
}

/// A mount from the engine's host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mount {
    /// In the container.
    pub container_path: String,
    /// On the engine's host.
    pub host_path: String,
    /// Whether it is read-only.
    pub read_only: bool,
}

pub fn load_balancer_name(cluster: &str) -> Result<String, Problem> {
    host_name(format!("{cluster}-lb"))
}

/// Name of a machine's container, host and Node.
pub fn machine_name(cluster: &str, machine: &str) -> Result<String, Problem> {
    let is_prefixed = machine.strip_prefix(cluster).is_some_and(|rest| rest.starts_with('-'));
    host_name(if is_prefixed { machine.to_owned() } else { format!("{cluster}-{machine}") })
}

/// The provider's identity of a machine.
pub fn provider_id(container: &str) -> String {
    format!("docker:////{container}")
}

fn host_name(name: String) -> Result<String, Problem> {
    if name.len() > LONGEST_HOST_NAME {
        let message =
            format!("{name} would be a host name of more than {LONGEST_HOST_NAME} letters: use shorter names");
        return Err(Problem::invalid("NameTooLong", message));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::object;
    use serde_json::json;

    #[test]
    fn containers_are_named_for_their_cluster_once() {
        assert_eq!(machine_name("quick", "quick-md-0-x").unwrap(), "quick-md-0-x");
        assert_eq!(machine_name("quick", "quickest").unwrap(), "quick-quickest");
        assert_eq!(machine_name("quick", "md-0").unwrap(), "quick-md-0");
        assert_eq!(load_balancer_name("quick").unwrap(), "quick-lb");
        assert!(machine_name("quick", &"m".repeat(60)).is_err());
    }

    #[test]
    fn a_spec_of_another_shape_is_refused() {
        assert_eq!(object::spec::<MachineSpec>(&json!({})).unwrap(), MachineSpec::default());
        assert!(object::spec::<MachineSpec>(&json!({"spec": {"extraMounts": "x"}})).is_err());
        assert!(object::spec::<ClusterSpec>(&json!({"spec": {"controlPlaneEndpoint": {"port": 70000}}})).is_err());
    }
}
