//! Every definition of this repository, and the conversion that is responsible for it.

use std::path::Path;

use serde_json::Value;

/// One kind with its definition.
pub struct Kind {
    pub group: String,
    pub kind: String,
    pub namespaced: bool,
    /// Name and schema of each version, the stored one first.
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
    for folder in ["api", "plugins/docker-infra", "plugins/kubeadm-bootstrap", "plugins/kubeadm-control-plane"] {
        for entry in std::fs::read_dir(root.join(folder).join("crds")).unwrap() {
            let crd: Value = serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            kinds.push(read(&crd));
        }
    }
    kinds.sort_by(|a, b| (&a.group, &a.kind).cmp(&(&b.group, &b.kind)));
    assert_eq!(kinds.len(), 23);
    kinds
}

fn read(crd: &Value) -> Kind {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().unwrap();
    assert_eq!(versions[0]["storage"], true);
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
