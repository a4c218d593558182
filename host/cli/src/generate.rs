//! `capwasm generate cluster`: the manifests of a cluster on Docker with kubeadm.

use clap::Args;

/// Options of `capwasm generate cluster`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Name of the Cluster.
    pub name: String,
    /// Namespace of everything.
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// Kubernetes version of the machines.
    #[arg(long, default_value = "v1.34.0")]
    pub kubernetes_version: String,
    /// Control-plane machines.
    #[arg(long, default_value_t = 1)]
    pub control_plane_machine_count: u32,
    /// Worker machines.
    #[arg(long, default_value_t = 2)]
    pub worker_machine_count: u32,
    /// A command that control-plane machines run after kubeadm, such as the installation of a CNI.
    #[arg(long)]
    pub post_init_command: Option<String>,
}

/// The manifests, as YAML documents.
pub fn cluster(options: &Options) -> String {
    let post = options.post_init_command.as_ref().map_or_else(String::new, |command| {
        format!("    postKubeadmCommands:\n    - {}\n", serde_json::Value::from(command.as_str()))
    });
    TEMPLATE
        .replace("{name}", &options.name)
        .replace("{namespace}", &options.namespace)
        .replace("{version}", &options.kubernetes_version)
        .replace("{control_planes}", &options.control_plane_machine_count.to_string())
        .replace("{workers}", &options.worker_machine_count.to_string())
        .replace("{post}\n", &post)
}

const TEMPLATE: &str = include_str!("generate/docker.yaml");

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_document_is_yaml_and_nothing_is_left_to_fill_in() {
        let mut options = Options {
            name: "c1".into(),
            namespace: "ns".into(),
            kubernetes_version: "v1.34.0".into(),
            control_plane_machine_count: 3,
            worker_machine_count: 5,
            post_init_command: None,
        };
        for command in [None, Some("kubectl apply -f \"x: y\"".to_owned())] {
            options.post_init_command.clone_from(&command);
            let text = cluster(&options);
            assert!(
                !["{name}", "{namespace}", "{version}", "{post}", "{workers}", "{control_planes}"]
                    .iter()
                    .any(|hole| text.contains(hole)),
                "{text}"
            );
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            let kinds: Vec<_> = documents.iter().map(|document| document["kind"].as_str().unwrap()).collect();
            assert_eq!(
                kinds,
                [
                    "DockerCluster",
                    "Cluster",
                    "DockerMachineTemplate",
                    "KubeadmControlPlane",
                    "DockerMachineTemplate",
                    "KubeadmConfigTemplate",
                    "MachineDeployment"
                ]
            );
            assert_eq!(documents[3]["spec"]["replicas"], 3);
            assert_eq!(
                documents[3]["spec"]["kubeadmConfigSpec"]["postKubeadmCommands"][0].as_str(),
                command.as_deref()
            );
            assert_eq!(documents[6]["spec"]["replicas"], 5);
        }
    }
}
