//! The real kubeadm as judge of what the providers write: `kubeadm config validate` of the oldest and newest versions, and a
//! real control plane that it makes of our bootstrap data.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::process::Command;

use capwasm_sim::docker::Docker;
use capwasm_tests::engine::Engine;
use capwasm_tests::folder::Folder;
use capwasm_tests::management::{Management, client_of};
use capwasm_tests::objects::{condition, is, name_of, text};
use capwasm_tests::sample::Sample;
use capwasm_tests::{binary, real, skip, wait};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

/// Removes the containers of a cluster when it is dropped, however the test ends.
struct Containers {
    cluster: &'static str,
}

impl Drop for Containers {
    fn drop(&mut self) {
        let listed = Command::new("docker")
            .args(["ps", "--all", "--quiet", "--filter"])
            .arg(format!("label=io.x-k8s.kind.cluster={}", self.cluster))
            .output();
        for container in String::from_utf8_lossy(&listed.map(|out| out.stdout).unwrap_or_default()).lines() {
            let _ = Command::new("docker").args(["rm", "--force", "--volumes", container]).output();
        }
    }
}

/// The workload cluster's client, once its kubeconfig is there.
async fn workload(objects: &capwasm_tests::objects::Objects, cluster: &str) -> kube::Client {
    let name = format!("{cluster}-kubeconfig");
    let secret =
        objects.until("Secret", &name, "it holds a kubeconfig", |secret| !text(secret, "/data/value").is_empty());
    let secret: Secret = serde_json::from_value(secret.await).unwrap();
    client_of(&String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap()).await
}

/// Every combination of fields that the bootstrap provider's example renders is read by the kubeadm of its version.
#[test]
fn the_real_kubeadm_accepts_every_configuration_that_the_bootstrap_provider_writes() {
    let test = "the_real_kubeadm_accepts_every_configuration_that_the_bootstrap_provider_writes";
    let folder = Folder::new();
    let documents = folder.join("documents");
    binary::example("kubeadm-bootstrap", "render", &[documents.to_str().unwrap()]);
    let mut refused = Vec::new();
    for version in ["v1.30", "v1.31", "v1.36"] {
        let Some(kubeadm) = real::kubeadm(version, test) else { return };
        let of_version = |name: &str| name.ends_with(".yaml") && name.contains(&format!(".{version}."));
        let mut judged = 0;
        for entry in std::fs::read_dir(&documents).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if !of_version(&name) {
                continue;
            }
            judged += 1;
            let answer =
                Command::new(&kubeadm).args(["config", "validate", "--config"]).arg(entry.path()).output().unwrap();
            if !answer.status.success() {
                refused.push(format!("{name}: {}", String::from_utf8_lossy(&answer.stderr)));
            }
        }
        assert!(judged >= 60, "only {judged} documents of {version}");
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    // It does judge: what kubeadm does not know is refused.
    let wrong = documents.join("wrong.yaml");
    std::fs::write(
        &wrong,
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nnodeRegistration:\n  nome: x\n",
    )
    .unwrap();
    let kubeadm = real::kubeadm("v1.36", test).unwrap();
    assert!(
        !Command::new(kubeadm).args(["config", "validate", "--config"]).arg(&wrong).output().unwrap().status.success()
    );
}

#[tokio::test]
async fn the_real_kubeadm_makes_a_real_control_plane_of_our_bootstrap_data_which_grows_and_shrinks() {
    let test = "the_real_kubeadm_makes_a_real_control_plane_of_our_bootstrap_data_which_grows_and_shrinks";
    let Some(program) = real::kubeadm("v1.36", test) else { return };
    if !skip::docker(test) || !skip::busybox(test) {
        return;
    }
    let docker = Docker::unix(skip::DOCKER_SOCKET);
    real::load(&docker, &program, Path::new(skip::BUSYBOX)).await;
    let _containers = Containers { cluster: "real" };
    let management = Management::start_on_docker(real::VERSION);
    let objects = management.objects("real").await;
    let mut sample = Sample::of(real::VERSION, "real", 1, 1);
    for document in sample.documents.iter_mut().filter(|document| document["kind"] == "DockerMachineTemplate") {
        document["spec"]["template"]["spec"] = json!({"customImage": real::IMAGE});
    }
    sample.create(&objects).await;
    sample.provisioned(&objects).await;

    // A real API server of the wanted version answers, and kubeadm has written what the control plane rests on.
    let client = workload(&objects, "real").await;
    assert_eq!(client.apiserver_version().await.unwrap().git_version, real::VERSION);
    let config: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let config = config.get("kubeadm-config").await.unwrap().data.unwrap()["ClusterConfiguration"].clone();
    let config: Value = serde_saphyr::from_str(&config).unwrap();
    assert_eq!(text(&config, "/clusterName"), "real");
    assert_eq!(text(&config, "/kubernetesVersion"), real::VERSION);
    assert_eq!(text(&config, "/networking/podSubnet"), "192.168.0.0/16");
    let info: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    let info = info.get("cluster-info").await.unwrap().data.unwrap();
    assert!(info.keys().any(|key| key.starts_with("jws-kubeconfig-")), "signed with our token: {info:?}");
    let nodes: Api<Node> = Api::all(client.clone());
    let all = nodes.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(all.len(), 2);
    for node in &all {
        let spec = node.spec.clone().unwrap();
        assert_eq!(spec.provider_id.unwrap(), format!("docker:////{}", node.metadata.name.clone().unwrap()));
        let taints: Vec<String> = spec.taints.unwrap_or_default().into_iter().map(|taint| taint.key).collect();
        assert!(!taints.contains(&"node.cluster.x-k8s.io/uninitialized".to_owned()), "{taints:?}");
    }

    // Real members of etcd join one after the other, and leave again.
    for replicas in [3, 1] {
        objects.merge("KubeadmControlPlane", "real-control-plane", json!({"spec": {"replicas": replicas}})).await;
        let plane = objects
            .until("KubeadmControlPlane", "real-control-plane", &format!("{replicas} available"), |plane| {
                plane["status"]["availableReplicas"] == replicas
                    && plane["status"]["replicas"] == replicas
                    && is(plane, "EtcdClusterHealthy")
            })
            .await;
        assert_eq!(condition(&plane, "Available").0, "True", "{}", plane["status"]["conditions"]);
        let left = nodes.list(&ListParams::default().labels("node-role.kubernetes.io/control-plane")).await.unwrap();
        assert_eq!(left.items.len(), replicas);
    }
    for machine in objects.list("Machine").await.iter().filter(|machine| !name_of(machine).contains("md-0")) {
        for name in [
            "APIServerPodHealthy",
            "ControllerManagerPodHealthy",
            "SchedulerPodHealthy",
            "EtcdPodHealthy",
            "EtcdMemberHealthy",
        ] {
            assert_eq!(condition(machine, name).0, "True", "{name}: {:?}", condition(machine, name));
        }
    }

    sample.delete(&objects).await;
    let engine = Engine::on(Path::new(skip::DOCKER_SOCKET));
    wait::until("no container is left", async || match engine.containers("real").await {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await;
}
