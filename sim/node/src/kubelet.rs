//! The simulated kubelet: what its node says about itself, its heartbeat, and its static pods.

pub mod lease;
pub mod lifecycle;
pub mod mirror;

use std::fmt::Write;
use std::sync::OnceLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::files::reason;
use crate::kubeadm::config::{NodeRegistration, Taint};
use crate::kubeadm::paths;
use crate::node::Node;
use crate::rest::{Rest, RestError};

/// Label that tells users what they look at.
pub const SIMULATED_LABEL: &str = "capwasm.dev/simulated";
/// Collection of Nodes.
pub const NODES: &str = "/api/v1/nodes";
/// Socket of the container runtime unless the configuration says otherwise.
const CONTAINERD: &str = "unix:///var/run/containerd/containerd.sock";
/// Annotation with the socket of the container runtime.
const CRI_SOCKET: &str = "kubeadm.alpha.kubernetes.io/cri-socket";

/// The time as Kubernetes writes it.
pub fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// How a node registers itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Name of the Node.
    pub name: String,
    hostname: String,
    address: String,
    version: String,
    provider_id: String,
    cri_socket: String,
    labels: Vec<(String, String)>,
    taints: Vec<Taint>,
}

/// Writes the kubelet's flags as kubeadm does; [`Registration::read`] reads them back.
///
/// # Errors
/// When the file cannot be written.
pub fn write_flags(
    node: &dyn Node,
    name: &str,
    registration: &NodeRegistration,
    taints: &[Taint],
    version: &str,
) -> Result<(), String> {
    let mut flags = String::new();
    let mut add = |flag: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = write!(flags, "{}--{flag}={value}", if flags.is_empty() { "" } else { " " });
    };
    add("hostname-override", name);
    let socket = if registration.cri_socket.is_empty() { CONTAINERD } else { &registration.cri_socket };
    add("container-runtime-endpoint", socket);
    if !taints.is_empty() {
        let taints: Vec<String> =
            taints.iter().map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect)).collect();
        add("register-with-taints", &taints.join(","));
    }
    for argument in &registration.kubelet_extra_args {
        if argument.name != "hostname-override" {
            add(&argument.name, &argument.value);
        }
    }
    let install = |path: &str, content: String| {
        node.files().install(path, content, 0o644).map_err(|error| format!("couldn't write {path}: {}", reason(&error)))
    };
    install(paths::KUBELET_VERSION, format!("{version}\n"))?;
    install(paths::KUBELET_FLAGS, format!("KUBELET_KUBEADM_ARGS=\"{flags}\"\n"))
}

impl Registration {
    /// What the kubelet's flags on this node say; `None` before kubeadm wrote them.
    pub fn read(node: &dyn Node) -> Option<Registration> {
        let text = node.files().read_text(paths::KUBELET_FLAGS).ok()?;
        let flags = text.trim().strip_prefix("KUBELET_KUBEADM_ARGS=\"")?.strip_suffix('"')?;
        let version = node
            .version()
            .or_else(|| node.files().read_text(paths::KUBELET_VERSION).ok().map(|text| text.trim().to_owned()))
            .unwrap_or_default();
        let mut found = Registration {
            name: node.hostname(),
            hostname: node.hostname(),
            address: node.address().to_string(),
            version,
            provider_id: String::new(),
            cri_socket: String::new(),
            labels: Vec::new(),
            taints: Vec::new(),
        };
        let mut external = false;
        for flag in flags.split(" --").map(|flag| flag.trim_start_matches("--")) {
            let Some((name, value)) = flag.split_once('=') else { continue };
            match name {
                "hostname-override" => found.name = value.to_owned(),
                "container-runtime-endpoint" => found.cri_socket = value.to_owned(),
                "provider-id" => found.provider_id = value.to_owned(),
                "cloud-provider" => external = value == "external",
                "node-ip" => found.address = value.split(',').next().unwrap_or_default().to_owned(),
                "node-labels" => found.labels.extend(value.split(',').filter_map(|label| {
                    let (key, value) = label.split_once('=').unwrap_or((label, ""));
                    (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
                })),
                "register-with-taints" => found.taints.extend(value.split(',').filter_map(parse_taint)),
                _ => {}
            }
        }
        if external && found.provider_id.is_empty() {
            // No controller manager of the cloud runs: the node says itself what that would find out.
            let text = node.files().read_text(paths::PROVIDER_ID).unwrap_or_default();
            found.provider_id = text.trim().to_owned();
        }
        Some(found)
    }

    /// The Node as a kubelet first posts it.
    pub fn object(&self) -> Value {
        let mut labels = json!({
            "kubernetes.io/arch": architecture(),
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": self.hostname,
            "beta.kubernetes.io/arch": architecture(),
            "beta.kubernetes.io/os": "linux",
            SIMULATED_LABEL: "true",
        });
        for (key, value) in &self.labels {
            labels[key] = json!(value);
        }
        let taints: Vec<Value> = self
            .taints
            .iter()
            .map(|taint| {
                let mut object = json!({ "key": taint.key, "effect": taint.effect });
                if !taint.value.is_empty() {
                    object["value"] = json!(taint.value);
                }
                object
            })
            .collect();
        let mut spec = json!({});
        if !taints.is_empty() {
            spec["taints"] = json!(taints);
        }
        if !self.provider_id.is_empty() {
            spec["providerID"] = json!(self.provider_id);
        }
        let annotations =
            json!({ "volumes.kubernetes.io/controller-managed-attach-detach": "true", CRI_SOCKET: self.cri_socket });
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": self.name, "labels": labels, "annotations": annotations },
            "spec": spec, "status": self.status(),
        })
    }

    /// What the Ready condition says.
    pub fn ready_condition(ready: bool) -> Value {
        let time = now();
        let (status, reason, message) = if ready {
            ("True", "KubeletReady", "capwasm simulated kubelet is posting ready status")
        } else {
            ("False", "KubeletNotReady", "simulated failure: container runtime network not ready")
        };
        json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time, "lastTransitionTime": time,
        })
    }

    fn status(&self) -> Value {
        let time = now();
        let condition = |kind: &str, status: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastHeartbeatTime": time, "lastTransitionTime": time,
            })
        };
        let capacity =
            json!({ "cpu": processors().to_string(), "memory": memory(), "pods": "110", "ephemeral-storage": "20Gi" });
        json!({
            "addresses": [{ "type": "InternalIP", "address": self.address }, { "type": "Hostname", "address": self.hostname }],
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                Self::ready_condition(true),
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "nodeInfo": {
                "architecture": architecture(),
                "bootID": "",
                "containerRuntimeVersion": concat!("capwasm-sim://", env!("CARGO_PKG_VERSION")),
                "kernelVersion": "simulated",
                "kubeProxyVersion": "",
                "kubeletVersion": self.version,
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "capwasm simulated node",
                "systemUUID": "",
            },
        })
    }

    /// The address that it registers with.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Registers the node: creates it, or says that it is back.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn register(&self, rest: &Rest) -> Result<(), RestError> {
        let object = self.object();
        let path = format!("{NODES}/{}", self.name);
        match rest.create(NODES, &object).await {
            // Status is a subresource: a server may drop it on create.
            Ok(created) if created["status"]["nodeInfo"]["kubeletVersion"].is_null() => {}
            Ok(_) => return self.first_beat(rest).await,
            Err(error) if error.code() == Some(409) => {
                // A kubelet that comes back leaves spec and foreign labels alone.
                rest.merge(&path, &json!({ "metadata": { "labels": object["metadata"]["labels"] } })).await?;
            }
            Err(error) => return Err(error),
        }
        rest.merge(&format!("{path}/status"), &json!({ "status": object["status"] })).await?;
        self.first_beat(rest).await
    }

    async fn first_beat(&self, rest: &Rest) -> Result<(), RestError> {
        lease::renew(rest, &self.name).await
    }
}

fn parse_taint(text: &str) -> Option<Taint> {
    let (rest, effect) = text.rsplit_once(':')?;
    let (key, value) = rest.split_once('=').unwrap_or((rest, ""));
    Some(Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Memory of this machine as a quantity.
fn memory() -> &'static str {
    static TOTAL: OnceLock<String> = OnceLock::new();
    TOTAL.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kilobytes = text
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.split_whitespace().next());
        format!("{}Ki", kilobytes.unwrap_or("1048576"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use capwasm_apiserver::{Identity, Server, ServerConfig, Store};

    use super::*;

    fn registration() -> Registration {
        Registration {
            name: "node-1".into(),
            hostname: "node-1".into(),
            address: "127.64.0.2".into(),
            version: "v1.34.0".into(),
            provider_id: String::new(),
            cri_socket: CONTAINERD.into(),
            labels: vec![("tier".into(), "gold".into())],
            taints: vec![parse_taint("a=b:NoSchedule").unwrap()],
        }
    }

    fn ready(node: &Value) -> String {
        let conditions = node["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|c| c["type"] == "Ready").unwrap()["status"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_silent_node_becomes_unknown_and_one_that_comes_back_keeps_what_others_wrote() {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("c")).await.unwrap();
        let admin = Rest::of(server.client(Identity::admin("controller")));
        let kubelet = Rest::of(server.client(Identity::new("system:node:node-1", &["system:nodes"])));
        registration().register(&kubelet).await.unwrap();
        let path = "/api/v1/nodes/node-1";
        let node = admin.get(path).await.unwrap().unwrap();
        assert_eq!(ready(&node), "True");
        assert_eq!(node["metadata"]["labels"]["tier"], "gold");
        assert_eq!(node["spec"]["taints"], json!([{ "key": "a", "value": "b", "effect": "NoSchedule" }]));
        assert!(admin.get(&format!("{}/node-1", lease::LEASES)).await.unwrap().is_some());

        admin.merge(path, &json!({ "spec": { "taints": null, "providerID": "docker:////node-1" } })).await.unwrap();
        lifecycle::mark_unknown(&admin, "node-1").await.unwrap();
        let node = admin.get(path).await.unwrap().unwrap();
        assert_eq!(ready(&node), "Unknown");
        let effects: Vec<&str> =
            node["spec"]["taints"].as_array().unwrap().iter().map(|taint| taint["effect"].as_str().unwrap()).collect();
        assert_eq!(effects, ["NoSchedule", "NoExecute"]);

        registration().register(&kubelet).await.unwrap();
        lifecycle::settle(&admin, "node-1").await.unwrap();
        let node = admin.get(path).await.unwrap().unwrap();
        assert_eq!(ready(&node), "True");
        assert_eq!(node["spec"], json!({ "providerID": "docker:////node-1" }));
        server.shutdown().await;
    }
}
