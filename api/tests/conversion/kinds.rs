//! Every definition of this repository that has several versions, and the conversion that is responsible for it.

use std::path::Path;

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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut kinds = Vec::new();
    let folders = [
        "api",
        "plugins/docker-infra",
        "plugins/kubeadm-bootstrap",
        "plugins/kubeadm-control-plane",
        "plugins/openstack-infra",
    ];
    for folder in folders {
        for entry in std::fs::read_dir(root.join(folder).join("crds")).unwrap() {
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

pub fn convert(object: &Value, to: &str) -> Result<Value, String> {
    let object = object.clone();
    match capwasm_api::json::group(&object) {
        "infrastructure.cluster.x-k8s.io" if capwasm_api::json::kind(&object).starts_with("OpenStack") => {
            super::openstack::convert(object, to).map_err(|error| error.to_string())
        }
        "infrastructure.cluster.x-k8s.io" => super::docker::convert(object, to).map_err(|error| error.to_string()),
        "bootstrap.cluster.x-k8s.io" => {
            super::kubeadm_bootstrap::convert(object, to).map_err(|error| error.to_string())
        }
        "controlplane.cluster.x-k8s.io" => {
            super::kubeadm_control_plane::convert(object, to).map_err(|error| error.to_string())
        }
        _ => capwasm_api::conversion::convert_core(object, to),
    }
}
