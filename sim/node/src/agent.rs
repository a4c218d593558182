//! What runs on a node besides the commands: its kubelet with the static pods that it starts. The same in the simulated engine
//! and in a real container.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::etcd::{MemberState, Running};
use crate::files::Files;
use crate::kubeadm::paths;
use crate::kubelet::mirror::{self, Host, Mirrored};
use crate::kubelet::{NODES, Registration, lease, lifecycle};
use crate::rest::{Rest, RestError};
use crate::workload::{EtcdPod, Serving, StaticPod, Workloads};
use capwasm_sim_service::faults::NodeFault;

/// Static pods that the agent itself runs.
const API_SERVER: &str = "kube-apiserver";
const ETCD: &str = "etcd";

/// A node as its agent sees it.
pub struct Surroundings<'a> {
    /// Name of the node among the servers of its cluster.
    pub id: &'a str,
    /// Address that the API server and etcd of the node listen on.
    pub bind: IpAddr,
    /// The node's files: manifests, kubeconfigs, certificates.
    pub files: &'a dyn Files,
    /// Failures that are in force on it.
    pub faults: &'a [NodeFault],
    /// Where its static pods run; nowhere on a worker of its own.
    pub workloads: Option<&'a Arc<Workloads>>,
}

impl Surroundings<'_> {
    fn has(&self, fault: &NodeFault) -> bool {
        self.faults.contains(fault)
    }

    /// Whether a static pod that the agent runs is to be stopped.
    fn stops_static_pods(&self) -> bool {
        self.has(&NodeFault::EtcdLost) || self.is_unhealthy(ETCD) || self.is_unhealthy(API_SERVER)
    }

    /// Whether a static pod is to be unhealthy.
    fn is_unhealthy(&self, pod: &str) -> bool {
        self.faults.iter().any(|fault| matches!(fault, NodeFault::Unhealthy(name) if name == pod))
    }
}

/// The kubelet of a node.
#[derive(Default)]
pub struct Agent {
    /// The listener of the API server, and what it was started from.
    serving: Option<(Serving, StaticPod)>,
    /// The member of etcd that runs: keyspace and pod.
    member: Option<(String, EtcdPod)>,
    /// How the node registers itself, when it has to do so anew.
    registration: Option<Registration>,
    /// Whether the API server was told that the node is not ready.
    not_ready: bool,
    mirrored: Mirrored,
    /// Digests of the files from which static pods were run, and of those that were mirrored.
    ran: Option<[u8; 32]>,
    shown: Option<[u8; 32]>,
}

impl Agent {
    /// Registers the node anew when it is told next.
    pub fn register(&mut self, registration: Registration) {
        self.registration = Some(registration);
    }

    /// Cluster whose control plane this node is part of.
    pub fn keyspace(&self) -> Option<&str> {
        self.serving.as_ref().map(|(serving, _)| serving.keyspace.as_str())
    }

    /// Name of its member of etcd.
    pub fn member(&self) -> Option<&str> {
        self.member.as_ref().map(|(_, pod)| pod.name.as_str())
    }

    /// Whether the member of etcd of this node answers; true for a node without one.
    fn etcd_runs(&self, workloads: &Workloads) -> bool {
        self.member
            .as_ref()
            .is_none_or(|(keyspace, pod)| workloads.etcd().state(keyspace, &pod.name) == MemberState::Running)
    }

    /// Starts and stops static pods as files and faults say.
    ///
    /// # Errors
    /// Why one cannot run; the others were looked after.
    pub async fn run_pods(&mut self, around: &Surroundings<'_>) -> Result<(), String> {
        let Some(workloads) = around.workloads else { return Ok(()) };
        let digest = digest(around.files);
        let well = self.serving.is_some() && self.etcd_runs(workloads);
        if well && digest == self.ran && !around.stops_static_pods() {
            return Ok(());
        }
        self.ran = digest;
        let wanted = StaticPod::read(around.files);
        let keyspace = wanted.as_ref().ok().and_then(|pod| pod.as_ref()).map(|pod| pod.keyspace.clone());
        let etcd = match (EtcdPod::read(around.files), keyspace) {
            (Ok(pod), keyspace) => self.run_etcd(around, workloads, pod.zip(keyspace)).await,
            (Err(problem), _) => Err(problem),
        };
        let may_run = etcd.is_ok() && self.etcd_runs(workloads) && !around.is_unhealthy(API_SERVER);
        let wanted = wanted?.filter(|_| may_run);
        if self.serving.as_ref().map(|(_, pod)| pod) != wanted.as_ref() {
            if let Some((serving, _)) = self.serving.take() {
                serving.stop.cancel();
                workloads.leave(&serving.keyspace, around.id).await;
            }
            if let Some(pod) = wanted {
                let serving = workloads.serve(around.id, &pod, around.bind).await?;
                self.serving = Some((serving, pod));
            }
        }
        etcd
    }

    async fn run_etcd(
        &mut self,
        around: &Surroundings<'_>,
        workloads: &Workloads,
        wanted: Option<(EtcdPod, String)>,
    ) -> Result<(), String> {
        let etcd = workloads.etcd();
        let Some((pod, keyspace)) = wanted else {
            if let Some((keyspace, pod)) = self.member.take() {
                etcd.stop(&keyspace, &pod.name).await;
            }
            return Ok(());
        };
        if !pod.joins {
            etcd.initialize(&keyspace, &pod.name, &pod.peer_url)?;
        }
        let lost = around.has(&NodeFault::EtcdLost);
        if lost && etcd.state(&keyspace, &pod.name) != MemberState::Lost {
            etcd.lose_data(&keyspace, &pod.name);
        }
        let same = self.member.as_ref() == Some(&(keyspace.clone(), pod.clone()));
        self.member = Some((keyspace.clone(), pod.clone()));
        if lost || around.is_unhealthy(ETCD) {
            etcd.stop(&keyspace, &pod.name).await;
            return Ok(());
        }
        match etcd.state(&keyspace, &pod.name) {
            MemberState::Running if same => return Ok(()),
            MemberState::Running => etcd.stop(&keyspace, &pod.name).await,
            MemberState::Removed | MemberState::Lost => return Ok(()),
            MemberState::Stopped | MemberState::None => {}
        }
        let EtcdPod { name, certificate, key, authority, .. } = pod;
        etcd.start(Running { keyspace, name, address: around.bind, certificate, key, authority }).await
    }

    /// Whether a static pod is ready.
    fn health(&self, around: &Surroundings<'_>, pod: &str) -> bool {
        let Some(workloads) = around.workloads else { return !around.is_unhealthy(pod) };
        let serving = self.serving.as_ref();
        let served = serving.is_some_and(|(serving, _)| workloads.etcd().has_quorum(&serving.keyspace));
        let runs = match pod {
            ETCD => self.etcd_runs(workloads),
            API_SERVER | "kube-controller-manager" | "kube-scheduler" => served,
            _ => true,
        };
        runs && !around.is_unhealthy(pod)
    }

    /// Tells the API server how the node is: its Lease, its Ready condition, its static pods. `check`: also looks whether what
    /// it told before is still there. `controllers`: makes a client of the same cluster's, for what follows from the Ready
    /// condition.
    ///
    /// # Errors
    /// See [`RestError`]; told again the next time.
    pub async fn tell(
        &mut self,
        around: &Surroundings<'_>,
        registration: &Registration,
        rest: &Rest,
        controllers: &(dyn Fn() -> Option<Rest> + Sync),
        check: bool,
    ) -> Result<(), RestError> {
        if around.has(&NodeFault::Silent) {
            return Ok(());
        }
        let mut settle = false;
        match &self.registration {
            Some(registration) => {
                registration.register(rest).await?;
                self.registration = None;
                // Registration says ready.
                self.not_ready = false;
                settle = true;
            }
            None => lease::renew(rest, &registration.name).await?,
        }
        let not_ready = around.has(&NodeFault::NotReady);
        if not_ready != self.not_ready {
            let patch = json!({ "status": { "conditions": with_ready(rest, &registration.name, !not_ready).await? } });
            match rest.merge(&format!("{NODES}/{}/status", registration.name), &patch).await {
                // Deleted while its kubelet runs: it comes back with a restart.
                Err(error) if error.code() == Some(404) => {}
                other => drop(other?),
            }
            self.not_ready = not_ready;
            settle = true;
        }
        if settle && let Some(controllers) = controllers() {
            lifecycle::settle(&controllers, &registration.name).await?;
        }
        self.mirror(around, registration, rest, check).await
    }

    async fn mirror(
        &mut self,
        around: &Surroundings<'_>,
        registration: &Registration,
        rest: &Rest,
        check: bool,
    ) -> Result<(), RestError> {
        let host = Host { name: &registration.name, address: registration.address() };
        let digest = mirror::digest(around.files);
        let told =
            |(own, (_, ready)): (&String, &(String, bool))| self.health(around, mirror::name_at(own, &host)) == *ready;
        if digest == self.shown
            && self.mirrored.iter().all(told)
            && (!check || mirror::intact(rest, &self.mirrored).await?)
        {
            return Ok(());
        }
        let manifests = match mirror::manifests(around.files) {
            Ok(manifests) => manifests,
            Err(problem) => {
                tracing::warn!(problem, "a node's static pods cannot be read");
                return Ok(());
            }
        };
        let healths: Vec<(String, bool)> =
            manifests.iter().map(|manifest| (manifest.name.clone(), self.health(around, &manifest.name))).collect();
        let health = |name: &str| healths.iter().any(|(pod, ready)| pod == name && *ready);
        mirror::sync(rest, &host, &manifests, &health, &mut self.mirrored, check).await?;
        // Those that wait for their Node are looked at again.
        self.shown = digest.filter(|_| self.mirrored.len() == manifests.len());
        Ok(())
    }

    /// Ends the static pods; nothing is removed in the workload cluster.
    pub async fn stop(&mut self, id: &str, workloads: &Workloads) {
        if let Some((serving, _)) = self.serving.take() {
            serving.stop.cancel();
            workloads.leave(&serving.keyspace, id).await;
        }
        if let Some((keyspace, pod)) = self.member.take() {
            workloads.etcd().stop(&keyspace, &pod.name).await;
        }
    }
}

/// A digest of what static pods are run from: manifests and certificates.
fn digest(files: &dyn Files) -> Option<[u8; 32]> {
    let mut digest = Sha256::new();
    digest.update(mirror::digest(files)?);
    for directory in [paths::PKI.to_owned(), format!("{}/etcd", paths::PKI)] {
        for name in files.list(&directory).unwrap_or_default() {
            digest.update(name.as_bytes());
            // What is a directory is no certificate.
            digest.update(files.read(&format!("{directory}/{name}")).unwrap_or_default());
        }
    }
    Some(digest.finalize().into())
}

/// The conditions of a node with another Ready.
async fn with_ready(rest: &Rest, node: &str, ready: bool) -> Result<serde_json::Value, RestError> {
    let found = rest.get(&format!("{NODES}/{node}")).await?.unwrap_or_default();
    let mut conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "Ready");
    conditions.push(Registration::ready_condition(ready));
    Ok(json!(conditions))
}
