//! `kubeadm.k8s.io/v1beta3`, which kubeadm v1.22 to v1.30 write and later ones still read: flags are maps, timeouts stand
//! where they are used, and some fields do not exist yet. Pure.

use serde_json::{Value, json};

pub(super) const GROUP_VERSION: &str = "kubeadm.k8s.io/v1beta3";

/// Where flags are, from a document's root.
const FLAGS: [&str; 5] = [
    "/apiServer/extraArgs",
    "/controllerManager/extraArgs",
    "/scheduler/extraArgs",
    "/etcd/local/extraArgs",
    "/nodeRegistration/kubeletExtraArgs",
];
/// Fields that came with v1beta4: parent and name.
const LATER: [(&str, &str); 11] = [
    ("", "timeouts"),
    ("", "encryptionAlgorithm"),
    ("", "certificateValidityPeriod"),
    ("", "caCertificateValidityPeriod"),
    ("", "proxy"),
    ("/apiServer", "extraEnvs"),
    ("/controllerManager", "extraEnvs"),
    ("/scheduler", "extraEnvs"),
    ("/etcd/local", "extraEnvs"),
    ("/dns", "disabled"),
    ("/nodeRegistration", "imagePullSerial"),
];

/// What a document says in terms of v1beta4.
pub(super) struct Read {
    /// The document as v1beta4 has it.
    pub document: Value,
    /// Fields that this version does not have.
    pub warnings: Vec<String>,
    /// `apiServer.timeoutForControlPlane`, which belongs to another document now.
    pub control_plane_timeout: Option<String>,
}

/// Reads a document of this version.
///
/// # Errors
/// When flags are no map of texts.
pub(super) fn read(mut document: Value) -> Result<Read, String> {
    let kind = document["kind"].as_str().unwrap_or_default().to_owned();
    let mut warnings = Vec::new();
    for (parent, name) in LATER {
        let fields = document.pointer_mut(parent).and_then(Value::as_object_mut);
        if fields.is_some_and(|fields| fields.remove(name).is_some()) {
            warnings.push(format!(
                "error unmarshaling configuration {kind}: strict decoding error: unknown field \"{name}\""
            ));
        }
    }
    for path in FLAGS {
        if let Some(flags) = document.pointer_mut(path) {
            *flags = list(flags, path)?;
        }
    }
    let control_plane_timeout = take(&mut document, "/apiServer", "timeoutForControlPlane");
    if let Some(discovery) = take(&mut document, "/discovery", "timeout") {
        document["timeouts"] = json!({ "discovery": discovery, "tlsBootstrap": discovery });
    }
    document["apiVersion"] = json!(super::GROUP_VERSION);
    Ok(Read { document, warnings, control_plane_timeout })
}

fn take(document: &mut Value, parent: &str, name: &str) -> Option<String> {
    let found = document.pointer_mut(parent)?.as_object_mut()?.remove(name)?;
    found.as_str().map(str::to_owned)
}

fn list(flags: &Value, path: &str) -> Result<Value, String> {
    let broken = || format!("error unmarshaling configuration: {}: a map of texts is expected", &path[1..]);
    let map = flags.as_object().ok_or_else(broken)?;
    let argument = |(name, value): (&String, &Value)| {
        value.as_str().map(|value| json!({ "name": name, "value": value })).ok_or_else(broken)
    };
    map.iter().map(argument).collect::<Result<Vec<Value>, String>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::time::Duration;

    use crate::kubeadm::config::{Argument, Documents, duration};

    #[test]
    fn an_older_file_means_what_it_meant() {
        let text = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\napiServer:\n  timeoutForControlPlane: 7m0s\n  \
                    extraArgs: {v: '4', a: b}\netcd: {local: {extraArgs: {x: z}, serverCertSANs: [s]}}\ncertificateValidityPeriod: 1h\n---\n\
                    apiVersion: kubeadm.k8s.io/v1beta3\nkind: InitConfiguration\nnodeRegistration:\n  kubeletExtraArgs: {provider-id: 'docker:////a'}\n";
        let read = Documents::parse(text).unwrap();
        let (cluster, _) = read.cluster.unwrap();
        let argument = |name: &str, value: &str| Argument { name: name.into(), value: value.into() };
        assert_eq!(cluster.api_server.extra_args, [argument("a", "b"), argument("v", "4")]);
        assert_eq!(cluster.etcd.local.unwrap().extra_args, [argument("x", "z")]);
        assert_eq!(cluster.certificate_validity_period, None);
        assert!(
            read.warnings.iter().any(|warning| warning.contains("certificateValidityPeriod")),
            "{:?}",
            read.warnings
        );
        let init = read.init.unwrap();
        assert_eq!(init.node_registration.kubelet_argument("provider-id"), Some("docker:////a"));
        let patience = init.timeouts.control_plane_component_health_check.as_deref().and_then(duration);
        assert_eq!(patience, Some(Duration::from_secs(420)));
    }

    #[test]
    fn discovery_has_one_timeout_for_all_and_flags_are_no_list() {
        let join = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery: {timeout: 3s}\n";
        let timeouts = Documents::parse(join).unwrap().join.unwrap().timeouts;
        assert_eq!((timeouts.discovery.as_deref(), timeouts.tls_bootstrap.as_deref()), (Some("3s"), Some("3s")));
        let list = "apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nscheduler: {extraArgs: [{name: a, value: b}]}\n";
        assert!(Documents::parse(list).unwrap_err().contains("scheduler/extraArgs: a map of texts"));
    }
}
