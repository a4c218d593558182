//! A KubeadmConfig on a test host, pass after pass, and its data as cloud-init reads them.

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::test::{self, TestHost, write_back};
use capwasm_sdk::{BootstrapData, Outcome, Place, Problem, object};
use kubeadm_bootstrap::KubeadmBootstrap;
use serde_json::{Value, json};

/// How much of a pass's outcome takes effect before the host dies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// Nothing is lost.
    Nothing,
    /// Everything is lost.
    Everything,
    /// Only what is written into the object.
    Operations,
    /// The object and the first operation, but not the data Secret.
    Data,
}

pub struct World {
    pub host: TestHost,
    pub config: Value,
}

impl World {
    pub fn new(config: Value, machine: Value, cluster: Value) -> World {
        let host = TestHost::new()
            .related("machine", machine.clone())
            .related("cluster", cluster)
            .object(Place::Management, machine);
        World { host, config }
    }

    pub fn with_certificates(mut self) -> World {
        for name in ["ca", "etcd", "proxy", "sa"] {
            let certificate = format!("-----BEGIN CERTIFICATE-----\n{name}\n-----END CERTIFICATE-----\n");
            let key = format!("-----BEGIN PRIVATE KEY-----\n{name}\n-----END PRIVATE KEY-----\n");
            self.host = self.host.secret(&format!("quick-{name}"), "tls.crt", certificate).secret(
                &format!("quick-{name}"),
                "tls.key",
                key,
            );
        }
        self
    }

    pub fn call(&self) -> (Result<Option<BootstrapData>, Problem>, Outcome) {
        test::generate::<KubeadmBootstrap>(&self.host, &self.config)
    }

    /// One pass, of which `cut` is lost; the data, when it was stored.
    pub fn pass(&mut self, cut: Cut) -> Option<String> {
        let (result, mut outcome) = self.call();
        if cut == Cut::Everything {
            return None;
        }
        write_back(&outcome, &mut self.config);
        match cut {
            Cut::Operations => outcome.operations.clear(),
            Cut::Data => outcome.operations.truncate(1),
            Cut::Nothing | Cut::Everything => {}
        }
        self.host.carry_out(&outcome);
        self.publish_secrets();
        let data = result.ok().flatten().filter(|_| cut == Cut::Nothing)?;
        object::merge(
            &mut self.config,
            &json!({"status": {"dataSecretName": "c", "initialization": {"dataSecretCreated": true}}}),
        );
        Some(String::from_utf8(data.value).unwrap())
    }

    /// What was created becomes readable as a live Secret.
    fn publish_secrets(&mut self) {
        for secret in self.objects(Place::Management, "Secret") {
            for (key, value) in secret["data"].as_object().unwrap() {
                let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
                self.host = std::mem::take(&mut self.host).secret(object::name(&secret), key, bytes);
            }
        }
    }

    pub fn objects(&self, place: Place, kind: &str) -> Vec<Value> {
        self.host.objects(place).into_iter().filter(|object| object["kind"] == kind).collect()
    }

    pub fn until_data(&mut self) -> String {
        (0..8).find_map(|_| self.pass(Cut::Nothing)).expect("data after a few passes")
    }
}

pub fn config(spec: Value) -> Value {
    let api_version = "bootstrap.cluster.x-k8s.io/v1beta2";
    json!({"apiVersion": api_version, "kind": "KubeadmConfig", "metadata": {"name": "c", "namespace": "default", "uid": "config-uid", "generation": 2}, "spec": spec})
}

pub fn machine(name: &str, control_plane: bool) -> Value {
    let labels = if control_plane { json!({"cluster.x-k8s.io/control-plane": ""}) } else { json!({}) };
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "labels": labels},
        "spec": {"clusterName": "quick", "version": "v1.36.0"},
    })
}

pub fn cluster(initialized: bool) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "quick", "namespace": "default", "uid": "cluster-uid"},
        "spec": {
            "clusterNetwork": {"services": {"cidrBlocks": ["10.128.0.0/12"]}, "pods": {"cidrBlocks": ["192.168.0.0/16", "fd00::/48"]}, "serviceDomain": "cluster.local"},
            "controlPlaneEndpoint": {"host": "172.18.0.3", "port": 6443},
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": "quick"},
        },
        "status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": initialized}},
    })
}

/// A cluster that no provider runs the control plane of.
pub fn without_provider(mut cluster: Value) -> Value {
    object::merge(&mut cluster, &json!({"spec": {"controlPlaneRef": null}}));
    cluster
}

/// Cloud-config as cloud-init reads it.
pub fn read(data: &str) -> Value {
    assert!(data.starts_with("## template: jinja\n#cloud-config\n"));
    serde_saphyr::from_str(data).unwrap()
}

/// Paths and modes of the files that are written.
pub fn paths(data: &Value) -> Vec<(&str, &str)> {
    let files = data["write_files"].as_array().unwrap();
    files.iter().map(|file| (object::text(file, "/path"), object::text(file, "/permissions"))).collect()
}

pub fn content<'a>(data: &'a Value, path: &str) -> &'a str {
    let files = data["write_files"].as_array().unwrap();
    object::text(files.iter().find(|file| file["path"] == path).unwrap(), "/content")
}

/// The YAML documents in a file.
pub fn documents(text: &str) -> Vec<Value> {
    text.split("---\n").skip(1).map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}
