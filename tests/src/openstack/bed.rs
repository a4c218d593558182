//! Everything that a test of the provider needs: a management cluster with the provider, services, a proxy in between, a project.

use std::time::Duration;

use capwasm_sim_openstack::{Nodes, OpenStack, Options};
use serde_json::{Value, json};

use super::{Access, Hypervisor, Project, Proxy, manifests};
use crate::management::Management;
use crate::objects::{Objects, is, text};
use crate::{sample, wait};

/// How often it is looked whether the end is reached.
const GLANCE: Duration = Duration::from_millis(100);
const PROVIDER: &str = "openstack-infra";

/// A management cluster in front of real services or of a fake.
pub struct Bed {
    /// `capwasm up`, with the provider.
    pub management: Management,
    /// The OpenStack project in which its clusters are made.
    pub project: Project,
    /// The proxy through which the provider reaches OpenStack.
    pub proxy: Proxy,
    /// Objects of the namespace that is named for the test.
    pub objects: Objects,
    fake: Option<OpenStack>,
    hypervisor: Option<Hypervisor>,
}

impl Bed {
    /// On a fake whose servers become simulated nodes.
    pub async fn fake(test: &str) -> Bed {
        Bed::fake_under(Management::start(), test).await
    }

    /// The same under a management cluster that was started already.
    pub async fn fake_under(management: Management, test: &str) -> Bed {
        let options = Options { nodes: Some(nodes(&management)), ..Options::default() };
        let fake = OpenStack::start(options).await.expect("the fake starts");
        let admin = Access::of(&fake.clouds_yaml(), "ost-admin");
        Bed::on(management, &admin, test, Some(fake)).await
    }

    /// A bed on real services.
    pub async fn real(admin: &Access, test: &str) -> Bed {
        Bed::real_under(Management::start(), admin, test).await
    }

    /// The same under a management cluster that was started already.
    pub async fn real_under(management: Management, admin: &Access, test: &str) -> Bed {
        Bed::on(management, admin, test, None).await
    }

    /// On real services whose servers become simulated nodes.
    pub async fn real_with_nodes(admin: &Access, test: &str) -> Bed {
        let mut bed = Bed::real(admin, test).await;
        let nodes = nodes(&bed.management);
        let project = &bed.project;
        let started = Hypervisor::start(nodes, &project.admin, &project.cloud, &project.name, &bed.proxy).await;
        bed.hypervisor = Some(started);
        bed
    }

    /// Whether it is on real services.
    pub fn is_real(&self) -> bool {
        self.fake.is_none()
    }

    /// `spec` of an OpenStackCluster whose endpoint is reached where servers become nodes.
    pub fn cluster_spec(&self) -> Value {
        let mut spec = manifests::cluster_spec();
        if let Some(hypervisor) = &self.hypervisor {
            spec["externalNetwork"]["filter"]["name"] = hypervisor.external_network().into();
            // Not the one that fails every build.
            spec["controlPlaneAvailabilityZones"] = json!(["az1", "az2", "az3"]);
        }
        spec
    }

    async fn on(management: Management, admin: &Access, test: &str, fake: Option<OpenStack>) -> Bed {
        let project = Project::new(admin, test).await;
        let proxy = Proxy::start(&project.access.auth_url);
        let objects = management.objects(test).await;
        let bed = Bed { management, project, proxy, objects, fake, hypervisor: None };
        bed.grant(&[&bed.proxy.origin()], json!({})).await;
        let clouds = bed.project.access.at(bed.proxy.auth_url()).clouds_yaml();
        bed.objects.create(&manifests::identity(test, &clouds, None)).await;
        bed
    }

    /// Lets the provider reach these origins and no other, with more in `spec.grants`.
    pub async fn grant(&self, origins: &[&str], more: Value) {
        let mut grants = json!({"origins": origins});
        for (key, value) in more.as_object().into_iter().flatten() {
            grants[key] = value.clone();
        }
        self.objects.merge("WasmProvider", PROVIDER, json!({"spec": {"grants": grants}})).await;
        let serves = |provider: &Value| {
            is(provider, "Ready") && provider["status"]["observedGeneration"] == provider["metadata"]["generation"]
        };
        self.objects.until("WasmProvider", PROVIDER, "it serves with its grants", serves).await;
    }

    /// Creates objects, one after the other.
    pub async fn create(&self, documents: impl IntoIterator<Item = Value>) {
        for document in documents {
            self.objects.create(&document).await;
        }
    }

    /// Waits until an OpenStackCluster is Ready.
    pub async fn cluster_ready(&self, name: &str) -> Value {
        let ready = |object: &Value| is(object, "Ready") && sample::is_provisioned(object);
        self.objects.until("OpenStackCluster", name, "it is ready", ready).await
    }

    /// Waits until an OpenStackMachine is Ready.
    pub async fn machine_ready(&self, name: &str) -> Value {
        let ready = |object: &Value| is(object, "Ready") && sample::is_provisioned(object);
        self.objects.until("OpenStackMachine", name, "it is ready", ready).await
    }

    /// Waits until all Machines of a cluster run and the Cluster is Available.
    pub async fn available(&self, name: &str, machines: usize) -> Value {
        wait::until(&format!("cluster {name} is available"), async || {
            let all = self.objects.list("Machine").await;
            let ours = all.iter().filter(|machine| text(machine, "/spec/clusterName") == name);
            let phases: Vec<&str> = ours.map(|machine| text(machine, "/status/phase")).collect();
            let cluster = self.objects.get("Cluster", name).await;
            let running = phases.len() == machines && phases.iter().all(|phase| *phase == "Running");
            if running && is(&cluster, "Available") {
                Ok(cluster)
            } else {
                Err(format!("{phases:?}, {}", cluster["status"]))
            }
        })
        .await
    }

    /// Deletes Clusters and waits until nothing is left of them: no object but given Secrets, no resource in the project.
    pub async fn delete(&self, clusters: &[&str]) {
        for name in clusters {
            self.objects.delete("Cluster", name).await;
        }
        self.nothing_is_left().await;
    }

    /// Waits until there is no object but those Secrets that a test gave, and no resource in the project.
    pub async fn nothing_is_left(&self) {
        wait::until("no object is left", async || {
            let mut left: Vec<String> = self.objects.versions().await.into_iter().map(|(name, _)| name).collect();
            left.retain(|name| name != "Secret/cloud-config" && !is_bootstrap_of_a_test(name));
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        self.project.empty().await;
    }

    /// Kills the host after each call, whose answer it never sees, and starts it again until the end is reached; how often. See
    /// [`Proxy::cut_after_every_call`], which has to have been called before that begins.
    pub async fn killed_after_every_call(&self, mut is_done: impl AsyncFnMut() -> bool) -> usize {
        let mut times = 0;
        loop {
            tokio::select! {
                () = self.proxy.cut() => {
                    self.management.kill();
                    times += 1;
                    assert!(times < 500, "the same calls again and again: {:?}", self.proxy.counts());
                    self.proxy.reopen();
                    self.management.restart();
                }
                () = done(&mut is_done) => {
                    self.proxy.pass();
                    return times;
                }
                () = tokio::time::sleep(wait::patience()) => {
                    panic!("neither a call nor the end after {times} kills: {:?}", self.proxy.calls().last());
                }
            }
        }
    }

    /// The end of it all; a project of real services is removed.
    pub async fn end(self) {
        self.management.kill();
        if let Some(hypervisor) = self.hypervisor {
            hypervisor.end(&self.project.admin).await;
        }
        self.project.remove().await;
        if let Some(fake) = self.fake {
            fake.stop().await;
        }
    }
}

/// Servers become nodes of its simulated engine.
fn nodes(management: &Management) -> Nodes {
    Nodes { engine: management.data_dir().join("sim.sock"), version: sample::VERSION.to_owned() }
}

fn is_bootstrap_of_a_test(name: &str) -> bool {
    name.starts_with("Secret/") && name.ends_with(manifests::BOOTSTRAP)
}

async fn done(is_done: &mut impl AsyncFnMut() -> bool) {
    while !is_done().await {
        tokio::time::sleep(GLANCE).await;
    }
}
