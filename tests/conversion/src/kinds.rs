//! Every definition of this repository that has several versions, and the conversion that is responsible for it.

use capwasm_sdk::{Conversion, Problem};
use capwasm_test_support::guests;
use docker_infra::Docker;
use kubeadm_bootstrap::KubeadmBootstrap;
use kubeadm_control_plane::KubeadmControlPlane;
use openstack_infra::OpenStack;
use serde_json::Value;

/// One kind with its definition.
pub struct Kind {
    pub group: String,
    pub kind: String,
    pub namespaced: bool,
    /// Name and schema of each version, the hub first.
    pub versions: Vec<(String, Value)>,
}

impl Kind {
    pub fn hub(&self) -> &(String, Value) {
        &self.versions[0]
    }

    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }
}

pub fn all() -> Vec<Kind> {
    let mut kinds = Vec::new();
    let folders = [
        "api",
        "plugins/docker-infra",
        "plugins/kubeadm-bootstrap",
        "plugins/kubeadm-control-plane",
        "plugins/openstack-infra",
    ];
    for folder in folders {
        for entry in std::fs::read_dir(guests::root().join(folder).join("crds")).unwrap() {
            let crd: Value = serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            if crd["spec"]["versions"].as_array().unwrap().len() > 1 {
                kinds.push(read(&crd));
            }
        }
    }
    kinds.sort_by(|a, b| (&a.group, &a.kind).cmp(&(&b.group, &b.kind)));
    assert_eq!(kinds.len(), 27);
    kinds
}

fn read(crd: &Value) -> Kind {
    let spec = &crd["spec"];
    let mut versions = spec["versions"].as_array().unwrap().clone();
    // Where upstream stores another version than the hub, so do we.
    versions.sort_by_key(|version| version["name"] != capwasm_api::conversion::HUB);
    assert_eq!(versions[0]["name"], capwasm_api::conversion::HUB);
    Kind {
        group: spec["group"].as_str().unwrap().to_owned(),
        kind: spec["names"]["kind"].as_str().unwrap().to_owned(),
        namespaced: spec["scope"] == "Namespaced",
        versions: versions
            .iter()
            .map(|version| (version["name"].as_str().unwrap().to_owned(), version["schema"]["openAPIV3Schema"].clone()))
            .collect(),
    }
}

/// As the host converts: core's kinds by itself, a provider's by the provider.
pub fn convert(object: &Value, to: &str) -> Result<Value, String> {
    let object = object.clone();
    let provider: fn(Value, &str) -> Result<Value, Problem> = match capwasm_object::meta::group(&object) {
        "infrastructure.cluster.x-k8s.io" if capwasm_object::meta::kind(&object).starts_with("OpenStack") => {
            OpenStack::convert
        }
        "infrastructure.cluster.x-k8s.io" => Docker::convert,
        "bootstrap.cluster.x-k8s.io" => KubeadmBootstrap::convert,
        "controlplane.cluster.x-k8s.io" => KubeadmControlPlane::convert,
        _ => return capwasm_api::conversion::convert_core(object, to),
    };
    provider(object, to).map_err(|problem| problem.message)
}
