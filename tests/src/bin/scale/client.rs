//! What a user does: creates clusters, waits for them, deletes them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use capwasm_sim_openstack::{Nodes, OpenStack, Options};
use capwasm_tests::openstack::{Access, manifests};
use capwasm_tests::sample::VERSION;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::{LONGEST, Shape};

/// The clusters of a shape on the simulated engine, as YAML.
pub struct Manifests(Vec<String>);

impl Manifests {
    /// From `capwasm generate cluster`, which is asked once: clusters differ in their names only.
    pub fn of(binary: &Path, shape: Shape) -> Result<Self> {
        const NAME: &str = "name-of-a-cluster";
        let (planes, workers) = (shape.control_planes.to_string(), shape.workers.to_string());
        let generated = Command::new(binary)
            .args(["generate", "cluster", NAME, "--control-plane-machine-count", &planes])
            .args(["--worker-machine-count", &workers])
            .output()?;
        let text = String::from_utf8(generated.stdout)?;
        Ok(Self((0..shape.clusters).map(|index| text.replace(NAME, &format!("c{index}"))).collect()))
    }

    /// Creates them by `processes` kubectl at the same time.
    pub async fn create(&self, processes: usize, folder: &Path) -> Result<()> {
        let processes = processes.min(self.0.len());
        let mut running = Vec::new();
        for process in 0..processes {
            let file = folder.join(format!("manifests-{process}.yaml"));
            let share: Vec<&str> = self.0.iter().skip(process).step_by(processes).map(String::as_str).collect();
            std::fs::write(&file, share.join("\n---\n"))?;
            let mut kubectl = tokio::process::Command::new("kubectl");
            kubectl.arg("--kubeconfig").arg(folder.join("kubeconfig")).args(["create", "-f"]).arg(file);
            running.push(kubectl.stdout(Stdio::null()).spawn().context("unable to start kubectl")?);
        }
        for mut kubectl in running {
            if !kubectl.wait().await?.success() {
                bail!("kubectl create failed");
            }
        }
        Ok(())
    }
}

/// A client of the host's API server.
pub struct Client {
    client: kube::Client,
    clusters: Api<DynamicObject>,
    machines: Api<DynamicObject>,
}

impl Client {
    pub async fn of(kubeconfig: &Path) -> Result<Self> {
        let config = Kubeconfig::read_from(kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        let all = |kind: &str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", kind));
            Api::namespaced_with(client.clone(), "default", &resource)
        };
        Ok(Self { clusters: all("Cluster"), machines: all("Machine"), client })
    }

    pub async fn apply(&self, manifests: &Manifests) -> Result<()> {
        for text in manifests.0.iter().flat_map(|cluster| cluster.split("\n---\n")) {
            self.apply_one(&serde_saphyr::from_str(text)?).await?;
        }
        Ok(())
    }

    /// As [`Client::apply`], of clusters on OpenStack.
    pub async fn apply_openstack(&self, shape: Shape) -> Result<()> {
        for index in 0..shape.clusters {
            let (name, spec) = (format!("c{index}"), manifests::cluster_spec());
            for document in manifests::kubeadm("default", &name, VERSION, shape.control_planes, shape.workers, spec) {
                self.apply_one(&document).await?;
            }
        }
        Ok(())
    }

    async fn apply_one(&self, document: &Value) -> Result<()> {
        let api_version = document["apiVersion"].as_str().context("no apiVersion")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, document["kind"].as_str().unwrap_or_default());
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = if kind.kind == "WasmProvider" {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), "default", &resource)
        };
        let name = document["metadata"]["name"].as_str().context("no name")?;
        api.patch(name, &PatchParams::apply("scale").force(), &Patch::Apply(document)).await?;
        Ok(())
    }

    /// A fake OpenStack whose servers become nodes of the host's simulated engine, which the provider may reach.
    pub async fn openstack(&self, folder: &Path) -> Result<OpenStack> {
        let nodes = Nodes { engine: folder.join("sim.sock"), version: VERSION.to_owned() };
        let cloud = OpenStack::start(Options { nodes: Some(nodes), ..Options::default() }).await?;
        let access = Access::of(&cloud.clouds_yaml(), "ost-demo");
        self.apply_one(&manifests::identity("default", &access.clouds_yaml(), None)).await?;
        let origin = format!("http://{}", cloud.address());
        let grants = json!({
            "apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "openstack-infra"},
            "spec": {"grants": {"origins": [origin]}},
        });
        self.apply_one(&grants).await?;
        Ok(cloud)
    }

    /// Whether every Cluster is Available and every Machine Running.
    pub async fn is_provisioned(&self, shape: Shape) -> Result<bool> {
        Ok(self.available().await? == shape.clusters
            && count(&self.machines, |data| data["status"]["phase"] == "Running").await? == shape.machines())
    }

    pub async fn available(&self) -> Result<usize> {
        count(&self.clusters, is_available).await
    }

    /// Deletes all Clusters, and waits until nothing is left of them.
    pub async fn delete_all(&self, shape: Shape) -> Result<Duration> {
        let started = Instant::now();
        self.clusters.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        for kind in [&self.machines, &self.clusters] {
            while !kind.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty() {
                if started.elapsed() > LONGEST {
                    bail!("{} clusters are left after {LONGEST:?}", count(&self.clusters, |_| true).await?);
                }
                tokio::time::sleep(shape.interval()).await;
            }
        }
        Ok(started.elapsed())
    }
}

async fn count(api: &Api<DynamicObject>, is: fn(&Value) -> bool) -> Result<usize> {
    Ok(api.list(&ListParams::default()).await?.items.iter().filter(|object| is(&object.data)).count())
}

fn is_available(data: &Value) -> bool {
    let conditions = data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|list| {
        list.iter().any(|condition| condition["type"] == "Available" && condition["status"] == "True")
    })
}
