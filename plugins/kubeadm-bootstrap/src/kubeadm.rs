//! kubeadm's configuration documents, in the API version that the machine's kubeadm reads.
//!
//! A KubeadmConfig speaks a language of its own: close to kubeadm's v1beta4, but with durations as `…Seconds` and
//! `…Days`, and with the kubeconfig inside of `discovery.file`. [`fields`] makes kubeadm's v1beta4 of it and [`v1beta3`]
//! what older versions read. What belongs to the Cluster or the Machine (name, networking, endpoint, version) is filled
//! in from there. Nothing that the user asked for is dropped silently: what a version lacks is `invalid`.

pub mod fields;
pub mod v1beta3;

use capwasm_api::names::UNINITIALIZED_TAINT;
use capwasm_sdk::Problem;
use serde_json::{Map, Value, json};

use crate::config::{Cluster, ConfigSpec};
use crate::version::{Api, Version};
use capwasm_yaml::write;

/// kubeadm's own `certificatesDir`.
pub const CERTIFICATES_DIR: &str = "/etc/kubernetes/pki";

/// Where the machine's certificates go.
pub fn certificates_dir(spec: &ConfigSpec) -> &str {
    match spec.cluster_configuration.get("certificatesDir").and_then(Value::as_str) {
        None | Some("") => CERTIFICATES_DIR,
        Some(dir) => dir,
    }
}

/// ClusterConfiguration and InitConfiguration, as one file of two documents. `now_ms` is when the machine is made.
pub fn init(spec: &ConfigSpec, cluster: &Cluster, version: &Version, now_ms: u64) -> Result<String, Problem> {
    let mut configuration = spec.cluster_configuration.clone();
    let mut init = spec.init_configuration.clone();
    fields::check(&configuration, version)?;
    if version.api() == Api::V1Beta3 {
        v1beta3::cluster(&mut configuration, &mut init, version)?;
        v1beta3::init(&mut init, version)?;
    }
    fields::cluster(&mut configuration);
    fields::init(&mut init, now_ms)?;
    from_cluster(&mut configuration, cluster, version);
    Ok(format!(
        "---\n{}---\n{}",
        document("ClusterConfiguration", configuration, version),
        document("InitConfiguration", init, version)
    ))
}

/// Whether a joining machine becomes a worker or a member of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// Runs workloads.
    Worker,
    /// Runs an API server.
    ControlPlane,
}

/// JoinConfiguration with a complete `discovery`.
pub fn join(
    spec: &ConfigSpec,
    discovery: &Map<String, Value>,
    member: Member,
    version: &Version,
) -> Result<String, Problem> {
    let mut join = spec.join_configuration.clone();
    let mut discovery = discovery.clone();
    if let Some(Value::Object(file)) = discovery.get_mut("file") {
        file.remove("kubeConfig");
    }
    join.insert("discovery".into(), Value::Object(discovery));
    match member {
        Member::ControlPlane => {
            join.entry("controlPlane").or_insert_with(|| json!({}));
        }
        Member::Worker if join.contains_key("controlPlane") => {
            return Err(Problem::invalid(
                "InvalidConfiguration",
                "spec.joinConfiguration.controlPlane is set, but the machine is a worker",
            ));
        }
        Member::Worker => add_uninitialized_taint(&mut join),
    }
    if version.api() == Api::V1Beta3 {
        v1beta3::join(&mut join, version)?;
    }
    fields::join(&mut join);
    Ok(format!("---\n{}", document("JoinConfiguration", join, version)))
}

/// What a ClusterConfiguration says about the Cluster and the Machine; only the endpoint may be the user's own.
fn from_cluster(configuration: &mut Map<String, Value>, cluster: &Cluster, version: &Version) {
    configuration.insert("clusterName".into(), json!(cluster.name));
    if !version.text().is_empty() {
        configuration.insert("kubernetesVersion".into(), json!(version.text()));
    }
    if !cluster.networking.is_empty() {
        configuration.insert("networking".into(), Value::Object(cluster.networking.clone()));
    }
    if let Some(endpoint) = &cluster.endpoint {
        configuration.entry("controlPlaneEndpoint").or_insert_with(|| json!(endpoint));
    }
}

/// Core takes this taint away once the Node has the Machine's labels, so that nothing is scheduled before.
fn add_uninitialized_taint(join: &mut Map<String, Value>) {
    let registration = join.entry("nodeRegistration").or_insert_with(|| json!({}));
    let Some(registration) = registration.as_object_mut() else {
        return;
    };
    if let Value::Array(taints) = registration.entry("taints").or_insert_with(|| json!([]))
        && !taints.iter().any(|taint| taint["key"] == UNINITIALIZED_TAINT)
    {
        taints.push(json!({"key": UNINITIALIZED_TAINT, "effect": "NoSchedule"}));
    }
}

fn document(kind: &str, mut fields: Map<String, Value>, version: &Version) -> String {
    fields.insert("apiVersion".into(), json!(version.api().as_str()));
    fields.insert("kind".into(), json!(kind));
    write::document(&Value::Object(fields))
}

#[cfg(test)]
mod tests;
