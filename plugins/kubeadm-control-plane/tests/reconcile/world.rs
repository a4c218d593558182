//! A management cluster and a workload cluster on a test host, with the parts of the core, of the other providers and of
//! kubeadm played by the test.

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use capwasm_sdk::test::{self, TestHost, write_back};
use capwasm_sdk::{ControlPlaneAnswer, EtcdMember, Host, ObjectRef, Operation, Outcome, Place, Problem, object};
use kubeadm_control_plane::KubeadmControlPlane;
use serde_json::{Value, json};

pub const START: u64 = 1_700_000_000_000;
pub const HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/kcp-cleanup";
const CORE: &str = "cluster.x-k8s.io/v1beta2";

pub struct World {
    pub host: TestHost,
    pub plane: Value,
    /// Milliseconds since 1970; ten seconds more with each pass.
    pub clock: u64,
    pub external_etcd: bool,
    /// Machines that are drained stay in that state.
    pub drains_forever: bool,
    /// New machines get no Node.
    pub nobody_joins: bool,
    pub failures: Vec<String>,
}

impl World {
    /// A cluster whose infrastructure and endpoint are there.
    pub fn new(spec: Value) -> World {
        World::of(spec, cluster())
    }

    pub fn of(spec: Value, cluster: Value) -> World {
        let mut plane = json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "quick-cp", "namespace": "default", "uid": "plane-uid", "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
            "spec": {
                "replicas": 1, "version": "v1.36.0",
                "machineTemplate": {"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DockerMachineTemplate", "name": "tmpl"}}},
            },
        });
        object::merge(&mut plane, &json!({"spec": spec}));
        let host = TestHost::new().related("cluster", cluster).object(Place::Management, template("tmpl"));
        World {
            external_etcd: plane.pointer("/spec/kubeadmConfigSpec/clusterConfiguration/etcd/external").is_some(),
            host,
            plane,
            clock: START,
            drains_forever: false,
            nobody_joins: false,
            failures: Vec::new(),
        }
    }

    /// Settled with so many machines.
    pub fn running(spec: Value) -> World {
        let mut world = World::new(spec);
        world.settle();
        world
    }

    pub fn call(&self) -> (Result<ControlPlaneAnswer, Problem>, Outcome) {
        test::reconcile::<KubeadmControlPlane>(&self.host, &self.plane)
    }

    /// One pass of which only the first `operations` take effect.
    pub fn pass_cut(&mut self, operations: usize) -> Result<ControlPlaneAnswer, Problem> {
        self.host.set_now_ms(self.clock);
        self.clock += 10_000;
        let (result, outcome) = self.call();
        self.carry_out(&outcome, operations);
        if result.as_ref().is_ok_and(|answer| answer.initialized) {
            object::merge(&mut self.plane, &json!({"status": {"initialization": {"controlPlaneInitialized": true}}}));
        }
        result
    }

    pub fn pass(&mut self) -> Result<ControlPlaneAnswer, Problem> {
        self.pass_cut(usize::MAX)
    }

    /// Own fields, operations and status, as the host does it; a Machine is deleted as one with a finalizer is.
    pub fn carry_out(&mut self, outcome: &Outcome, most: usize) {
        write_back(outcome, &mut self.plane);
        for operation in outcome.operations.iter().take(most) {
            match operation {
                Operation::Delete { target, .. } if target.kind == "Machine" => self.delete_machine(&target.name),
                other => {
                    self.host.carry_out(&Outcome { operations: vec![other.clone()], ..Outcome::default() });
                    let failed = self.host.results().into_iter().find_map(|(key, result)| Some((key, result.err()?)));
                    if let Some((key, refused)) = failed {
                        self.failures.push(format!("{key}: {refused}"));
                        break;
                    }
                }
            }
        }
        for secret in self.objects("Secret") {
            for (key, value) in secret["data"].as_object().into_iter().flatten() {
                let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
                self.host = std::mem::take(&mut self.host).secret(object::name(&secret), key, bytes);
            }
        }
        for mut machine in self.objects("Machine") {
            if machine["metadata"].get("creationTimestamp").is_none() {
                machine["metadata"]["creationTimestamp"] = json!(self.time());
                self.host.put(Place::Management, machine);
            }
        }
    }

    /// RFC 3339.
    pub fn time(&self) -> String {
        jiff::Timestamp::from_millisecond(self.clock as i64).unwrap().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub fn objects(&self, kind: &str) -> Vec<Value> {
        self.host.objects(Place::Management).into_iter().filter(|object| object["kind"] == kind).collect()
    }

    pub fn names(&self, kind: &str) -> BTreeSet<String> {
        self.objects(kind).iter().map(|object| object::name(object).to_owned()).collect()
    }

    pub fn machine(&self, name: &str) -> Value {
        self.objects("Machine").into_iter().find(|machine| object::name(machine) == name).unwrap()
    }

    /// Names of machines, oldest first.
    pub fn by_age(&self) -> Vec<String> {
        let mut machines = self.objects("Machine");
        machines.sort_by_key(|machine| object::text(machine, "/metadata/creationTimestamp").to_owned());
        machines.iter().map(|machine| object::name(machine).to_owned()).collect()
    }

    pub fn patch_machine(&self, name: &str, patch: &Value) {
        let mut machine = self.machine(name);
        object::merge(&mut machine, patch);
        self.host.put(Place::Management, machine);
    }

    /// Sets a condition as a health check does.
    pub fn condition_of(&self, name: &str, kind: &str, status: &str) {
        let mut machine = self.machine(name);
        let list = machine["status"]["conditions"].as_array_mut().unwrap();
        list.retain(|one| one["type"] != kind);
        list.push(json!({"type": kind, "status": status, "reason": "Test", "message": ""}));
        self.host.put(Place::Management, machine);
    }

    /// A health check finds a machine unhealthy and asks its owner to act.
    pub fn fail(&self, name: &str) {
        self.condition_of(name, "HealthCheckSucceeded", "False");
        self.condition_of(name, "OwnerRemediated", "False");
    }

    pub fn members(&self) -> BTreeSet<String> {
        self.host.etcd().unwrap_or_default().into_iter().map(|member| member.name).collect()
    }

    /// Members of these Nodes do not answer any more.
    pub fn kill_members(&self, nodes: &[&str]) {
        let mut members = self.host.etcd().unwrap();
        for member in members.iter_mut().filter(|member| nodes.contains(&member.name.as_str())) {
            member.healthy = false;
            member.message = "no answer".to_owned();
        }
        self.host.set_etcd(Some(members));
    }

    pub fn delete_machine(&self, name: &str) {
        let deleting = json!([{"type": "Deleting", "status": "True", "reason": "DrainingNode"}]);
        if self.names("Machine").contains(name) {
            let machine = self.machine(name);
            let mut conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.extend(deleting.as_array().unwrap().clone());
            let patch = json!({"metadata": {"deletionTimestamp": self.time()}, "status": {"conditions": conditions}});
            self.patch_machine(name, &patch);
        }
    }

    /// Core's part: drained machines wait for hooks, and go when there is none.
    pub fn core(&mut self) {
        for machine in self.objects("Machine") {
            if !object::is_deleting(&machine) || self.drains_forever {
                continue;
            }
            let name = object::name(&machine).to_owned();
            if object::annotation(&machine, HOOK).is_some() {
                let mut machine = machine.clone();
                for one in machine["status"]["conditions"].as_array_mut().unwrap() {
                    if one["type"] == "Deleting" {
                        one["reason"] = json!("WaitingForPreTerminateHook");
                    }
                }
                self.host.put(Place::Management, machine);
            } else {
                self.lose(&name);
            }
        }
    }

    /// A machine and all of it are gone, except its member of etcd.
    pub fn lose(&self, name: &str) {
        for (version, kind) in [
            (CORE, "Machine"),
            ("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig"),
            ("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachine"),
        ] {
            self.host.remove(Place::Management, &ObjectRef::new(version, kind, name));
        }
        self.host.remove(Place::Workload, &ObjectRef::new("v1", "Node", name));
        for component in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"] {
            let pod = ObjectRef::new("v1", "Pod", format!("{component}-{name}")).in_namespace("kube-system");
            self.host.remove(Place::Workload, &pod);
        }
    }

    /// What the other providers and kubeadm do: every machine whose parts are there gets a Node, the first one initializes.
    pub fn machines_join(&mut self) {
        let (configs, clones) = (self.names("KubeadmConfig"), self.names("DockerMachine"));
        for mut machine in self.objects("Machine") {
            let name = object::name(&machine).to_owned();
            let has_parts = configs.contains(&name) && clones.contains(&name);
            let joined = !object::text(&machine, "/status/nodeRef/name").is_empty();
            if joined || !has_parts || object::is_deleting(&machine) || self.nobody_joins {
                continue;
            }
            let version = object::text(&machine, "/spec/version").to_owned();
            let mut conditions =
                machine.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
            conditions
                .extend([json!({"type": "Ready", "status": "True"}), json!({"type": "Available", "status": "True"})]);
            object::merge(
                &mut machine,
                &json!({
                    "spec": {"providerID": format!("docker:////{name}"), "bootstrap": {"dataSecretName": name}},
                    "status": {
                        "nodeRef": {"name": name}, "nodeInfo": {"kubeletVersion": version}, "conditions": conditions,
                        "initialization": {"infrastructureProvisioned": true},
                    },
                }),
            );
            self.host.put(Place::Management, machine);
            self.kubeadm(&name, &version);
        }
    }

    /// What `kubeadm` leaves in the workload cluster.
    pub fn kubeadm(&mut self, name: &str, version: &str) {
        self.host.put(
            Place::Workload,
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"node-role.kubernetes.io/control-plane": ""}, "creationTimestamp": self.time()},
                "spec": {"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}], "providerID": format!("docker:////{name}")},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }),
        );
        let components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];
        for component in components.iter().filter(|component| !self.external_etcd || **component != "etcd") {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{component}-{name}"), "namespace": "kube-system", "labels": {"component": component, "tier": "control-plane"}},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            self.host.put(Place::Workload, pod);
        }
        let end = START + 365 * 86_400_000;
        let pem = format!("-----BEGIN CERTIFICATE-----\nnot-after-ms: {}\n", end + (self.clock - START));
        self.host = std::mem::take(&mut self.host).serving_certificate(
            "kube-system",
            &format!("kube-apiserver-{name}"),
            6443,
            &pem,
        );
        if !self.external_etcd {
            let mut members = self.host.etcd().unwrap_or_default();
            members.push(EtcdMember {
                id: members.iter().map(|member| member.id).max().unwrap_or(0) + 1,
                name: name.to_owned(),
                leader: members.is_empty(),
                healthy: true,
                ..EtcdMember::default()
            });
            self.host.set_etcd(Some(members));
        }
        let target = ObjectRef::new("v1", "ConfigMap", "kubeadm-config").in_namespace("kube-system");
        if self.host.workload(&target).is_err() {
            let text = format!(
                "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: {version}\n"
            );
            for object in [
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeadm-config", "namespace": "kube-system", "resourceVersion": "1"}, "data": {"ClusterConfiguration": text}}),
                json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "kube-proxy", "namespace": "kube-system", "resourceVersion": "1"},
                    "spec": {"template": {"spec": {"containers": [{"name": "kube-proxy", "image": format!("registry.k8s.io/kube-proxy:{version}")}]}}}}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coredns", "namespace": "kube-system", "resourceVersion": "1"},
                    "spec": {"template": {"spec": {"containers": [{"name": "coredns", "image": "registry.k8s.io/coredns/coredns:v1.11.3"}]}}}}),
            ] {
                self.host.put(Place::Workload, object);
            }
        }
    }

    pub fn workload(&self, api_version: &str, kind: &str, name: &str) -> Value {
        self.host.workload(&ObjectRef::new(api_version, kind, name).in_namespace("kube-system")).unwrap()
    }

    /// One round of everybody; whether anything changed.
    pub fn round(&mut self) -> bool {
        let before = (
            self.host.objects(Place::Management),
            self.host.objects(Place::Workload),
            self.host.etcd(),
            self.plane.clone(),
        );
        let _ = self.pass();
        self.core();
        self.machines_join();
        before
            != (
                self.host.objects(Place::Management),
                self.host.objects(Place::Workload),
                self.host.etcd(),
                self.plane.clone(),
            )
    }

    /// Rounds until nothing is left to do.
    pub fn settle(&mut self) {
        self.settle_watched(|_| {});
    }

    /// The same, with a look at each round.
    pub fn settle_watched(&mut self, mut look: impl FnMut(&World)) {
        for _ in 0..80 {
            let changed = self.round();
            assert_eq!(self.failures, [""; 0]);
            look(self);
            if !changed {
                return;
            }
        }
        panic!("no end in 80 rounds: {}", self.plane["status"]);
    }
}

pub fn template(name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DockerMachineTemplate",
        "metadata": {"name": name, "namespace": "default", "uid": format!("{name}-uid")},
        "spec": {"template": {"metadata": {"labels": {"from": "template"}}, "spec": {"customImage": "x"}}},
    })
}

pub fn cluster() -> Value {
    json!({
        "apiVersion": CORE, "kind": "Cluster",
        "metadata": {"name": "quick", "namespace": "default", "uid": "cluster-uid"},
        "spec": {"controlPlaneEndpoint": {"host": "172.18.0.3", "port": 6443}},
        "status": {
            "initialization": {"infrastructureProvisioned": true},
            "failureDomains": [
                {"name": "fd1", "controlPlane": true}, {"name": "fd2", "controlPlane": true}, {"name": "fd3", "controlPlane": true},
                {"name": "fd4", "controlPlane": false},
            ],
        },
    })
}

pub fn condition(object: &Value, name: &str) -> (String, String) {
    let found = object::condition(object, name).unwrap_or_else(|| panic!("no condition {name}"));
    (object::text(found, "/status").to_owned(), object::text(found, "/reason").to_owned())
}
