//! Static pod manifests of a control plane, written as JSON (which is YAML). Only the API server's is interpreted by the node;
//! the others are there for tools that look for them.

use serde_json::{Value, json};

use crate::files::{Files, reason};
use crate::kubeadm::config::{Argument, ClusterConfiguration};
use crate::kubeadm::paths;

/// Writes the manifests of a control plane.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(
    files: &dyn Files,
    cluster: &ClusterConfiguration,
    pki: &str,
    address: &str,
    port: u16,
) -> Result<(), String> {
    let flag = |name: &str, value: String| (name.to_owned(), value);
    let api_server = vec![
        flag("advertise-address", address.to_owned()),
        flag("secure-port", port.to_string()),
        flag("service-cluster-ip-range", cluster.networking.service_subnet.clone()),
        flag("client-ca-file", format!("{pki}/ca.crt")),
        flag("tls-cert-file", format!("{pki}/apiserver.crt")),
        flag("tls-private-key-file", format!("{pki}/apiserver.key")),
        flag("service-account-key-file", format!("{pki}/sa.pub")),
        flag("service-account-signing-key-file", format!("{pki}/sa.key")),
    ];
    let controller_manager = vec![
        flag("cluster-signing-cert-file", format!("{pki}/ca.crt")),
        flag("cluster-signing-key-file", format!("{pki}/ca.key")),
        flag("cluster-name", cluster.cluster_name.clone()),
    ];
    pod(files, cluster, "kube-apiserver", api_server, &cluster.api_server.extra_args)?;
    pod(files, cluster, "kube-controller-manager", controller_manager, &cluster.controller_manager.extra_args)?;
    pod(files, cluster, "kube-scheduler", Vec::new(), &cluster.scheduler.extra_args)?;
    if cluster.etcd.external.is_none() {
        pod(files, cluster, "etcd", vec![flag("data-dir", "/var/lib/etcd".to_owned())], &[])?;
    }
    Ok(())
}

fn pod(
    files: &dyn Files,
    cluster: &ClusterConfiguration,
    name: &str,
    flags: Vec<(String, String)>,
    extra: &[Argument],
) -> Result<(), String> {
    let mut command = vec![name.to_owned()];
    let overridden = |flag: &str| extra.iter().any(|argument| argument.name == flag);
    command.extend(flags.iter().filter(|(flag, _)| !overridden(flag)).map(|(flag, value)| format!("--{flag}={value}")));
    command.extend(extra.iter().map(|argument| format!("--{}={}", argument.name, argument.value)));
    let image = format!("{}/{name}:{}", cluster.image_repository, cluster.kubernetes_version);
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "kube-system", "labels": { "component": name, "tier": "control-plane" } },
        "spec": { "hostNetwork": true, "containers": [{ "name": name, "image": image, "command": command }] },
    });
    let path = format!("{}/{name}.yaml", paths::MANIFESTS);
    files
        .install(&path, format!("{manifest:#}\n"), 0o600)
        .map_err(|error| format!("couldn't write {path}: {}", reason(&error)))
}

/// The value of a flag in a static pod's command.
pub(crate) fn flag<'a>(manifest: &'a Value, name: &str) -> Option<&'a str> {
    let command = manifest["spec"]["containers"][0]["command"].as_array()?;
    let prefix = format!("--{name}=");
    command.iter().rev().filter_map(Value::as_str).find_map(|argument| argument.strip_prefix(&prefix))
}
