//! Clusters as their users write them for upstream: Ignition, keys of their own, an etcd elsewhere, files and accounts, large
//! pools, machines that time or misfortune replaces. Each test has a cluster in a namespace of its own on the simulator, and
//! looks in the end that nothing is left of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_pki::{Algorithm, Authority, Validity};
use capwasm_sim_service::faults::{Client as Faults, Fault, NodeFault};
use capwasm_tests::history::History;
use capwasm_tests::management::Management;
use capwasm_tests::objects::{Objects, condition, flag, is, name_of, owner, secret_text, text};
use capwasm_tests::sample::{Sample, VERSION};
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

const NEWER: &str = "v1.35.0";
/// Machines of another patch version may join without an upgrade of the control plane.
const PATCHED: &str = "v1.34.1";
const KCP: &str = "KubeadmControlPlane";
const POOL: &str = "MachineDeployment";
const CORE: &str = "cluster.x-k8s.io/v1beta2";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
const EXPIRY: &str = "machine.cluster.x-k8s.io/certificates-expiry";

/// A cluster on the shared simulator, and what its user has made besides its manifests.
struct Cluster {
    management: &'static Management,
    objects: Objects,
    sample: Sample,
    plane: String,
    users: Vec<String>,
    external_etcd: bool,
}

impl Cluster {
    async fn new(name: &str, control_planes: usize, workers: usize) -> Cluster {
        let management = Management::shared();
        let objects = management.objects(name).await;
        let sample = Sample::new(name, control_planes, workers);
        let plane = format!("{name}-control-plane");
        Cluster { management, objects, sample, plane, users: Vec::new(), external_etcd: false }
    }

    /// The control plane's KubeadmConfigSpec, to be changed before it is created.
    fn config(&mut self) -> &mut Value {
        &mut self.sample.document(KCP)["spec"]["kubeadmConfigSpec"]
    }

    async fn create(&self) {
        self.sample.create(&self.objects).await;
    }

    async fn provisioned(&self) {
        self.create().await;
        self.sample.provisioned(&self.objects).await;
    }

    /// A Secret that is the user's: it stays when the cluster goes.
    async fn secret(&mut self, name: &str, kind: &str, data: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
        self.users.push(format!("Secret/{name}"));
        let metadata = json!({"name": name, "namespace": self.sample.name});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data});
        self.objects.create(&secret).await
    }

    async fn change(&self, patch: Value) {
        self.objects.merge(KCP, &self.plane, patch).await;
    }

    async fn machines(&self, control_plane: bool) -> Vec<Value> {
        let mut machines = self.objects.list("Machine").await;
        machines.retain(|machine| is_control_plane(machine) == control_plane);
        machines
    }

    async fn names(&self, control_plane: bool) -> BTreeSet<String> {
        self.machines(control_plane).await.iter().map(|machine| name_of(machine).to_owned()).collect()
    }

    /// Waits until there are just so many control-plane Machines of a version, and all is well.
    async fn settled(&self, replicas: usize, version: &str) -> BTreeSet<String> {
        wait::until(&format!("{} settles at {replicas} of {version}", self.plane), async || {
            let plane = self.objects.get(KCP, &self.plane).await;
            let machines = self.machines(true).await;
            let is_well = |name: &&str| is(&plane, name) || (self.external_etcd && *name == "EtcdClusterHealthy");
            let conditions = ["Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady"];
            let right = machines.len() == replicas
                && machines.iter().all(|machine| text(machine, "/spec/version") == version && is(machine, "Available"))
                && plane["status"]["upToDateReplicas"] == replicas
                && plane["status"]["observedGeneration"] == plane["metadata"]["generation"]
                && conditions.iter().all(is_well);
            if right { Ok(()) } else { Err(format!("{} Machines, {}", machines.len(), plane["status"])) }
        })
        .await;
        self.names(true).await
    }

    /// Waits until there are just so many workers, all of a version, available, and Nodes.
    async fn pool_settled(&self, replicas: usize, version: &str) -> BTreeSet<String> {
        let nodes: Api<Node> = Api::all(self.workload().await);
        wait::until(&format!("{} workers of {version}", replicas), async || {
            let machines = self.machines(false).await;
            let well = machines.iter().filter(|machine| is(machine, "Available")).count();
            let nodes = nodes.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let is_right = |node: &&Node| {
                let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
                let labels = node.metadata.labels.clone().unwrap_or_default();
                !labels.contains_key("node-role.kubernetes.io/control-plane")
                    && info.is_some_and(|info| info.kubelet_version == version)
            };
            let right = nodes.items.iter().filter(is_right).count();
            if (machines.len(), well, right, nodes.items.len()) == (replicas, replicas, replicas, replicas + 1) {
                return Ok(machines.iter().map(|machine| name_of(machine).to_owned()).collect());
            }
            Err(format!("{} Machines, {well} available, {right} Nodes of {}", machines.len(), nodes.items.len()))
        })
        .await
    }

    async fn workload(&self) -> kube::Client {
        self.objects.workload(&self.sample.name).await
    }

    /// A file of a container: content, mode and owner.
    async fn file(&self, container: &str, path: &str) -> (String, u32, u64) {
        let archive = self.management.engine().archive(container, path).await;
        let mut archive = tar::Archive::new(archive.as_slice());
        let entry = archive.entries().unwrap().next();
        let mut entry = entry.unwrap_or_else(|| panic!("{path} is not in {container}")).unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        (content, entry.header().mode().unwrap() & 0o7777, entry.header().uid().unwrap())
    }

    async fn inject(&self, container: &str, fault: NodeFault) {
        let faults = Faults::unix(self.management.data_dir().join("sim.sock"));
        faults.inject(&Fault::node(container, fault)).await.expect("the fault is taken");
    }

    /// A MachineHealthCheck of the Machines with a label.
    async fn check_health(&self, label: &str, value: &str, checks: Value) {
        let name = &self.sample.name;
        self.objects
            .create(&json!({
                "apiVersion": CORE, "kind": "MachineHealthCheck", "metadata": {"name": "check", "namespace": name},
                "spec": {"clusterName": name, "selector": {"matchLabels": {label: value}}, "checks": checks},
            }))
            .await;
    }

    /// Deletes the cluster: neither containers nor objects are left of it, but those of its user.
    async fn delete(self) {
        self.sample.delete(&self.objects).await;
        assert_eq!(self.management.engine().containers(&self.sample.name).await, Vec::<String>::new());
        wait::until(&format!("nothing is left of {}", self.sample.name), async || {
            let all = self.objects.versions().await.into_iter().map(|(object, _)| object);
            let left: Vec<String> = all.filter(|object| !self.users.contains(object)).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        for object in &self.users {
            let (kind, name) = object.split_once('/').unwrap();
            assert!(self.objects.find(kind, name).await.is_some(), "{object} was the user's");
            self.objects.delete(kind, name).await;
        }
    }
}

fn is_control_plane(machine: &Value) -> bool {
    machine["metadata"]["labels"].get(CONTROL_PLANE_LABEL).is_some()
}

/// A self-signed authority: certificate and key as PEM.
fn authority(name: &str) -> (String, String) {
    let decade = Validity::of(SystemTime::now(), Duration::from_secs(3650 * 24 * 3600));
    let pair = Authority::new(name, Algorithm::EcdsaP256, decade, None).unwrap().pair();
    (pair.certificate, pair.key)
}

/// So many days from now.
fn in_days(days: i64) -> String {
    let now = Timestamp::now() + SignedDuration::from_hours(24 * days);
    format!("{}Z", now.strftime("%Y-%m-%dT%H:%M:%S"))
}

/// Ignition: machines of both roles boot from it, with a user's drop-in merged into kubeadm's unit.
#[tokio::test]
async fn ignition_makes_a_control_plane_and_workers() {
    let mut cluster = Cluster::new("ignition", 1, 2).await;
    let config = "systemd:\n  units:\n  - name: kubeadm.service\n    dropins:\n    - {name: 10-flatcar.conf, contents: \"[Unit]\\nAfter=containerd.service\\n\"}\n";
    let ignition = json!({"containerLinuxConfig": {"strict": true, "additionalConfig": config}});
    cluster.config()["format"] = json!("ignition");
    cluster.config()["ignition"] = ignition.clone();
    cluster.sample.document("KubeadmConfigTemplate")["spec"] =
        json!({"template": {"spec": {"format": "ignition", "ignition": ignition}}});
    cluster.provisioned().await;
    cluster.settled(1, VERSION).await;
    for machine in cluster.objects.list("Machine").await {
        let secret = cluster.objects.get("Secret", text(&machine, "/spec/bootstrap/dataSecretName")).await;
        assert_eq!(secret_text(&secret, "format"), "ignition");
        let data: Value = serde_json::from_str(&secret_text(&secret, "value")).expect("Ignition is JSON");
        assert!(text(&data, "/ignition/version").starts_with("2."), "{data}");
        let drop_in = "/etc/systemd/system/kubeadm.service.d/10-flatcar.conf";
        assert!(cluster.file(name_of(&machine), drop_in).await.0.contains("After=containerd.service"));
        assert!(cluster.file(name_of(&machine), "/etc/kubeadm.sh").await.0.contains("kubeadm"));
    }
    cluster.delete().await;
}

/// Custom CA: the user's `<cluster>-ca` is used as it is, stays the user's, and is what API servers are verified with.
#[tokio::test]
async fn a_users_own_authority_is_used_and_stays_the_users() {
    let mut cluster = Cluster::new("custom-ca", 3, 1).await;
    let (certificate, key) = authority("the user's own");
    let made =
        cluster.secret("custom-ca-ca", "kubernetes.io/tls", &[("tls.crt", &certificate), ("tls.key", &key)]).await;
    cluster.provisioned().await;
    cluster.settled(3, VERSION).await;
    assert_eq!(cluster.objects.get("Secret", "custom-ca-ca").await, made, "not even a resourceVersion is another");
    assert!(cluster.objects.kubeconfig(&cluster.sample.name).await.contains(&STANDARD.encode(&certificate)));
    let nodes: Api<Node> = Api::all(cluster.workload().await);
    assert_eq!(nodes.list(&ListParams::default()).await.expect("served with the user's authority").items.len(), 4);
    for machine in cluster.objects.list("Machine").await {
        assert_eq!(cluster.file(name_of(&machine), "/etc/kubernetes/pki/ca.crt").await.0.trim(), certificate.trim());
    }
    cluster.delete().await;
}

/// External etcd: its pairs are the user's, nothing looks for members, and an even number of machines is allowed.
#[tokio::test]
async fn a_control_plane_with_an_etcd_elsewhere_scales_to_an_even_number() {
    let mut cluster = Cluster::new("external", 1, 1).await;
    cluster.external_etcd = true;
    let pki = "/etc/kubernetes/pki";
    cluster.config()["clusterConfiguration"]["etcd"] = json!({"external": {
        "endpoints": ["https://etcd-0.example.org:2379", "https://etcd-1.example.org:2379"],
        "caFile": format!("{pki}/etcd/ca.crt"),
        "certFile": format!("{pki}/apiserver-etcd-client.crt"), "keyFile": format!("{pki}/apiserver-etcd-client.key"),
    }});
    let (ca, _) = authority("etcd elsewhere");
    let (certificate, key) = authority("client of etcd");
    cluster.create().await;
    let lacking = |plane: &Value| condition(plane, "CertificatesAvailable").2.contains("external-etcd");
    cluster.objects.until(KCP, &cluster.plane, "the user's pairs are waited for", lacking).await;
    cluster.secret("external-etcd", "Opaque", &[("tls.crt", &ca)]).await;
    let client = [("tls.crt", certificate.as_str()), ("tls.key", key.as_str())];
    cluster.secret("external-apiserver-etcd-client", "Opaque", &client).await;
    cluster.sample.provisioned(&cluster.objects).await;
    cluster.settled(1, VERSION).await;
    cluster.change(json!({"spec": {"replicas": 2}})).await;
    let names = cluster.settled(2, VERSION).await;
    assert_eq!(condition(&cluster.objects.get(KCP, &cluster.plane).await, "EtcdClusterHealthy").0, "");
    for machine in cluster.machines(true).await {
        assert_eq!(condition(&machine, "APIServerPodHealthy").0, "True");
        for absent in ["EtcdPodHealthy", "EtcdMemberHealthy"] {
            assert_eq!(condition(&machine, absent).0, "", "{absent}");
        }
    }
    for name in &names {
        assert_eq!(cluster.file(name, &format!("{pki}/etcd/ca.crt")).await.0.trim(), ca.trim());
        assert_eq!(cluster.file(name, &format!("{pki}/apiserver-etcd-client.key")).await.0.trim(), key.trim());
        let key = cluster.management.engine().archive(name, &format!("{pki}/etcd/ca.key")).await;
        assert!(key.is_empty(), "nobody made a key for the user's authority");
    }
    let pods: Api<Pod> = Api::namespaced(cluster.workload().await, "kube-system");
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    assert!(pods.iter().all(|pod| !pod.metadata.name.as_deref().unwrap_or_default().starts_with("etcd-")));
    cluster.delete().await;
}

/// kube-vip files: every way in which a file, an account and a command may be given reaches the machine.
#[tokio::test]
async fn files_accounts_and_commands_of_a_kube_vip_manifest_reach_the_machine() {
    let mut cluster = Cluster::new("kube-vip", 1, 0).await;
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-vip, namespace: kube-system}\nspec:\n  hostNetwork: true\n  containers:\n  - name: kube-vip\n    image: ghcr.io/kube-vip/kube-vip:v1.0.0\n    args: [manager]\n";
    let hash = "$6$salt$not.a.real.hash";
    cluster.secret("node-secrets", "Opaque", &[("token", "t0p secret\n"), ("password", hash)]).await;
    let from = |key: &str| json!({"secret": {"name": "node-secrets", "key": key}});
    let config = cluster.config();
    config["files"] = json!([
        {"path": "/etc/kubernetes/manifests/kube-vip.yaml", "owner": "root:root", "permissions": "0644", "content": manifest},
        {"path": "/etc/pre.d/encoded", "permissions": "0600", "encoding": "base64", "content": STANDARD.encode("encoded\n")},
        // `zipped` and a new line.
        {"path": "/etc/pre.d/zipped", "encoding": "gzip+base64", "content": "H4sIAAAAAAAAA6vKLChITeECAKwAOscHAAAA"},
        {"path": "/etc/pre.d/token", "owner": "vip:vip", "permissions": "0400", "contentFrom": from("token")},
        // Each path once, as upstream wants it: what is added to was there before.
        {"path": "/etc/pre.d/lines", "append": true, "content": "two\n"},
        {"path": "/etc/pre.d/version", "contentFormat": "Template", "content": "{{ .controlPlane.version }}"},
    ]);
    config["users"] = json!([{
        "name": "vip", "gecos": "Virtual IP", "groups": "operators", "homeDir": "/srv/vip", "shell": "/bin/sh",
        "lockPassword": false, "passwdFrom": from("password"), "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "sshAuthorizedKeys": ["ssh-ed25519 AAAA vip@example.org"],
    }]);
    config["ntp"] = json!({"enabled": true, "servers": ["time.example.org"]});
    config["mounts"] = json!([["LABEL=data", "/var/lib/data", "ext4", "defaults,noatime"]]);
    config["bootCommands"] = json!(["mkdir -p /etc/pre.d && echo one > /etc/pre.d/lines"]);
    config["preKubeadmCommands"] = json!([
        "mkdir -p /var/log/kube-vip",
        "test ! -e /etc/kubernetes/admin.conf && cp /etc/pre.d/lines /var/log/kube-vip/before",
    ]);
    config["postKubeadmCommands"] = json!(["test -e /etc/kubernetes/admin.conf && echo 'it''s up' > /root/after"]);
    cluster.provisioned().await;
    let names = cluster.settled(1, VERSION).await;
    let name = names.first().unwrap();
    let uid = cluster.file(name, "/etc/passwd").await.0;
    let uid = uid.lines().find_map(|line| line.strip_prefix("vip:")).expect("the account is there").to_owned();
    assert!(uid.ends_with(":Virtual IP:/srv/vip:/bin/sh"), "{uid}");
    let uid: u64 = uid.split(':').nth(1).unwrap().parse().unwrap();
    for (path, content, mode, owner) in [
        ("/etc/kubernetes/manifests/kube-vip.yaml", manifest, Some(0o644), 0),
        ("/etc/pre.d/encoded", "encoded\n", Some(0o600), 0),
        ("/etc/pre.d/zipped", "zipped\n", None, 0),
        ("/etc/pre.d/token", "t0p secret\n", Some(0o400), uid),
        ("/etc/pre.d/lines", "one\ntwo\n", None, 0),
        ("/etc/pre.d/version", VERSION, None, 0),
        ("/var/log/kube-vip/before", "one\ntwo\n", None, 0),
        ("/root/after", "its up\n", None, 0),
        ("/srv/vip/.ssh/authorized_keys", "ssh-ed25519 AAAA vip@example.org\n", Some(0o600), uid),
        ("/etc/sudoers.d/90-capwasm-users", "vip ALL=(ALL) NOPASSWD:ALL\n", Some(0o440), 0),
    ] {
        let found = cluster.file(name, path).await;
        assert_eq!((found.0.as_str(), found.2), (content, owner), "{path}");
        assert!(mode.is_none_or(|mode| mode == found.1), "{path} has mode {:o}", found.1);
    }
    let shadow = cluster.file(name, "/etc/shadow").await.0;
    assert!(shadow.lines().any(|line| line.starts_with(&format!("vip:{hash}:"))), "{shadow}");
    let group = cluster.file(name, "/etc/group").await.0;
    assert!(group.lines().any(|line| line.starts_with("operators:") && line.ends_with(":vip")), "{group}");
    let machine = cluster.machines(true).await.remove(0);
    let docker = text(&machine, "/spec/infrastructureRef/name");
    let told = cluster.objects.events("DockerMachine", docker).await;
    let ignored = told.iter().find(|(reason, _, _)| reason == "BootstrapDataIgnored").expect("it is told");
    assert!(ignored.1.contains("ntp") && ignored.1.contains("mounts"), "{ignored:?}");
    let pods: Api<Pod> = Api::namespaced(cluster.workload().await, "kube-system");
    wait::until("kube-vip's pod is there", async || {
        pods.get(&format!("kube-vip-{name}")).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    cluster.delete().await;
}

/// Worker pool of 10: made, changed to another version a few at a time, scaled both ways, deleted.
#[tokio::test]
async fn ten_workers_join_change_their_version_scale_and_go() {
    let cluster = Cluster::new("ten", 1, 10).await;
    cluster.provisioned().await;
    let before = cluster.pool_settled(10, VERSION).await;
    let history = History::record(&cluster.objects).await;
    let rollout = json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 0}}});
    let spec = json!({"rollout": rollout, "template": {"spec": {"version": PATCHED}}});
    cluster.objects.merge(POOL, "ten-md-0", json!({"spec": spec})).await;
    let after = cluster.pool_settled(10, PATCHED).await;
    assert!(after.is_disjoint(&before));
    let mut alive = before;
    for version in history.so_far().iter().filter(|version| version.kind == "Machine") {
        if version.deleted || version.object["metadata"].get("deletionTimestamp").is_some() {
            alive.remove(name_of(&version.object));
        } else if !is_control_plane(&version.object) {
            alive.insert(name_of(&version.object).to_owned());
        }
        assert!((10..=13).contains(&alive.len()), "{alive:?}");
    }
    cluster.objects.merge(POOL, "ten-md-0", json!({"spec": {"replicas": 3}})).await;
    let three = cluster.pool_settled(3, PATCHED).await;
    assert!(three.is_subset(&after));
    cluster.objects.merge(POOL, "ten-md-0", json!({"spec": {"replicas": 10}})).await;
    assert!(cluster.pool_settled(10, PATCHED).await.is_superset(&three));
    cluster.delete().await;
}

/// A MachinePool: its instances join, are scaled, replaced for another version, and go with the cluster.
#[tokio::test]
async fn a_machine_pool_scales_and_replaces_its_instances() {
    let mut cluster = Cluster::new("pooled", 1, 0).await;
    let meta = json!({"name": "pooled-mp", "namespace": "pooled"});
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "pooled-mp"});
    cluster.sample.documents.extend([
        json!({"apiVersion": format!("{BOOTSTRAP}/v1beta2"), "kind": "KubeadmConfig", "metadata": meta}),
        json!({"apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DockerMachinePool", "metadata": meta,
            "spec": {"template": {}}}),
        json!({"apiVersion": CORE, "kind": "MachinePool", "metadata": meta, "spec": {
            "clusterName": "pooled", "replicas": 3,
            "template": {"spec": {
                "clusterName": "pooled", "version": VERSION,
                "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfig")},
                "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachinePool"),
            }},
        }}),
    ]);
    cluster.sample.machines = 4;
    cluster.provisioned().await;
    let ready = |replicas: u64| {
        move |pool: &Value| {
            text(pool, "/status/phase") == "Running"
                && pool["status"]["readyReplicas"] == replicas
                && pool["status"]["nodeRefs"].as_array().map_or(0, Vec::len) as u64 == replicas
        }
    };
    let mut last = BTreeSet::new();
    for replicas in [3, 5, 2] {
        cluster.objects.merge("MachinePool", "pooled-mp", json!({"spec": {"replicas": replicas}})).await;
        last = cluster.pool_settled(replicas, VERSION).await;
        cluster.objects.until("MachinePool", "pooled-mp", "follows", ready(replicas as u64)).await;
    }
    let version = json!({"spec": {"template": {"spec": {"version": PATCHED}}}});
    cluster.objects.merge("MachinePool", "pooled-mp", version).await;
    let after = cluster.pool_settled(2, PATCHED).await;
    assert!(after.is_disjoint(&last), "{last:?} {after:?}");
    assert_eq!(cluster.management.engine().containers("pooled").await.len(), 4, "with a load balancer");
    cluster.delete().await;
}

/// Certificate expiry: a machine whose certificates end too soon is replaced, once.
#[tokio::test]
async fn certificates_that_end_soon_replace_a_machine_once() {
    let mut cluster = Cluster::new("expiry", 1, 0).await;
    cluster.config()["clusterConfiguration"]["certificateValidityPeriodDays"] = json!(20);
    cluster.provisioned().await;
    let mut names = cluster.settled(1, VERSION).await;
    measured(&cluster, 20).await;
    let history = History::record(&cluster.objects).await;
    let longer = json!({"clusterConfiguration": {"certificateValidityPeriodDays": 365}});
    cluster
        .change(json!({"spec": {"kubeadmConfigSpec": longer, "rollout": {"before": {"certificatesExpiryDays": 30}}}}))
        .await;
    replaced(&cluster, &mut names, &history, "Certificates will expire soon").await;
    let config = measured(&cluster, 365).await;
    // With nothing else that differs: the date alone.
    let history = History::record(&cluster.objects).await;
    let early = json!({"metadata": {"annotations": {EXPIRY: in_days(10)}}});
    cluster.objects.merge("KubeadmConfig", &config, early).await;
    replaced(&cluster, &mut names, &history, "Certificates will expire soon").await;
    measured(&cluster, 365).await;
    let look = async || cluster.names(true).await;
    assert_eq!(wait::unchanged("the machine", Duration::from_secs(2), look).await, names, "once is enough");
    cluster.delete().await;
}

/// Waits until the sole machine's certificates are known to end in so many days; its KubeadmConfig's name.
async fn measured(cluster: &Cluster, days: i64) -> String {
    wait::until(&format!("the certificates end in {days} days"), async || {
        let machine = cluster.machines(true).await.into_iter().next().ok_or("no Machine")?;
        let name = text(&machine, "/spec/bootstrap/configRef/name").to_owned();
        let config = cluster.objects.find("KubeadmConfig", &name).await.ok_or("no KubeadmConfig")?;
        let noted = config["metadata"]["annotations"][EXPIRY].as_str().unwrap_or_default();
        let shown = text(&machine, "/status/certificatesExpiryDate");
        let right = noted == shown && shown > in_days(days - 1).as_str() && shown < in_days(days + 1).as_str();
        if right { Ok(name) } else { Err(format!("{noted:?} and {shown:?}")) }
    })
    .await
}

/// Waits until the sole machine is another one; the machine before was told to be outdated for this reason.
async fn replaced(cluster: &Cluster, names: &mut BTreeSet<String>, history: &History, reason: &str) {
    wait::until(&format!("{names:?} is replaced"), async || {
        let now = cluster.names(true).await;
        if now.len() == 1 && now.is_disjoint(names) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    let versions = history.so_far();
    let told = versions.iter().filter(|version| version.kind == "Machine" && names.contains(name_of(&version.object)));
    let told: Vec<&str> = told.map(|version| condition(&version.object, "UpToDate").2).collect();
    assert!(told.iter().any(|message| message.contains(reason)), "{told:?}");
    *names = cluster.settled(1, VERSION).await;
}

/// Remediation during a rollout: a new machine is lost while old ones are still there; all ends well with the new version.
#[tokio::test]
async fn a_machine_that_is_lost_during_a_rollout_is_replaced_before_the_rollout_goes_on() {
    let cluster = Cluster::new("amidst", 3, 0).await;
    cluster.provisioned().await;
    let before = cluster.settled(3, VERSION).await;
    let silent = |status: &str| json!({"type": "Ready", "status": status, "timeoutSeconds": 1});
    let conditions = json!([silent("Unknown"), silent("False")]);
    cluster.check_health(CONTROL_PLANE_LABEL, "", json!({"unhealthyNodeConditions": conditions})).await;
    cluster.change(json!({"spec": {"version": NEWER}})).await;
    let victim = wait::until("a machine of the new version is a Node", async || {
        let machines = cluster.machines(true).await;
        let fresh = machines
            .iter()
            .find(|machine| !before.contains(name_of(machine)) && !text(machine, "/status/nodeRef/name").is_empty());
        fresh.map(|machine| name_of(machine).to_owned()).ok_or(format!("{} machines", machines.len()))
    })
    .await;
    // What its member of etcd cannot do holds the rollout until the machine is given up.
    cluster.inject(&victim, NodeFault::EtcdLost).await;
    cluster.inject(&victim, NodeFault::Silent).await;
    wait::until("the lost machine is given up", async || {
        let names = cluster.names(true).await;
        if names.contains(&victim) { Err(format!("{names:?}")) } else { Ok(()) }
    })
    .await;
    let old = cluster.names(true).await.intersection(&before).count();
    assert!(old > 0, "the rollout was still under way");
    let after = cluster.settled(3, NEWER).await;
    assert!(after.is_disjoint(&before) && !after.contains(&victim));
    let plane = cluster.objects.get(KCP, &cluster.plane).await;
    assert_eq!(text(&plane, "/status/lastRemediation/machine"), victim);
    cluster.delete().await;
}

/// Rollout on time and on another template; what can be changed in place replaces nothing.
#[tokio::test]
async fn time_and_another_template_replace_machines_and_metadata_does_not() {
    let cluster = Cluster::new("rotated", 1, 0).await;
    cluster.provisioned().await;
    let mut names = cluster.settled(1, VERSION).await;
    cluster
        .change(json!({"spec": {"machineTemplate": {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"example.org/note": "kept"}},
            "spec": {"deletion": {"nodeDrainTimeoutSeconds": 7, "nodeDeletionTimeoutSeconds": 9}},
        }}}))
        .await;
    let machine = names.first().unwrap().clone();
    let machine = cluster
        .objects
        .until("Machine", &machine, "has what is changed in place", |machine| {
            text(machine, "/metadata/labels/team") == "blue"
                && text(machine, "/metadata/annotations/example.org~1note") == "kept"
                && machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"] == 7
                && machine["spec"]["deletion"]["nodeDeletionTimeoutSeconds"] == 9
        })
        .await;
    for (kind, pointer) in
        [("KubeadmConfig", "/spec/bootstrap/configRef/name"), ("DockerMachine", "/spec/infrastructureRef/name")]
    {
        let labelled = |object: &Value| text(object, "/metadata/labels/team") == "blue";
        cluster.objects.until(kind, text(&machine, pointer), "is labelled too", labelled).await;
    }
    assert_eq!(cluster.settled(1, VERSION).await, names, "nothing was replaced");

    let history = History::record(&cluster.objects).await;
    cluster.change(json!({"spec": {"rollout": {"after": in_days(0)}}})).await;
    replaced(&cluster, &mut names, &history, "rollout.after").await;

    let template = json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DockerMachineTemplate",
        "metadata": {"name": "rotated-second", "namespace": "rotated"},
        "spec": {"template": {"spec": {"bootstrapTimeout": "4m0s"}}},
    });
    cluster.objects.create(&template).await;
    let history = History::record(&cluster.objects).await;
    let second = json!({"infrastructureRef": {"name": "rotated-second"}});
    cluster.change(json!({"spec": {"machineTemplate": {"spec": second}}})).await;
    replaced(&cluster, &mut names, &history, "DockerMachine is not up-to-date").await;
    let machine = cluster.machines(true).await.remove(0);
    let docker = cluster.objects.get("DockerMachine", text(&machine, "/spec/infrastructureRef/name")).await;
    assert_eq!(text(&docker, "/spec/bootstrapTimeout"), "4m0s");
    assert_eq!(text(&docker, "/metadata/annotations/cluster.x-k8s.io~1cloned-from-name"), "rotated-second");
    assert_eq!(text(&machine, "/metadata/labels/team"), "blue", "a new machine has it from the start");
    cluster.delete().await;
}

/// Adoption: a control-plane Machine that was there before its control plane is taken over as it is, with the certificates.
#[tokio::test]
async fn a_machine_that_stood_alone_is_taken_over_by_its_control_plane() {
    let mut cluster = Cluster::new("adopted", 1, 0).await;
    let plane = cluster.sample.take(KCP).remove(0);
    let spec = cluster.sample.document("Cluster")["spec"].as_object_mut().unwrap();
    let plane_ref = spec.remove("controlPlaneRef").unwrap();
    cluster.create().await;
    let meta = json!({"name": "adopted-0", "namespace": "adopted", "labels": {
        "cluster.x-k8s.io/cluster-name": "adopted", CONTROL_PLANE_LABEL: "",
    }});
    let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "adopted-0"});
    for object in [
        json!({"apiVersion": format!("{BOOTSTRAP}/v1beta2"), "kind": "KubeadmConfig", "metadata": meta,
            "spec": plane["spec"]["kubeadmConfigSpec"]}),
        json!({"apiVersion": format!("{INFRASTRUCTURE}/v1beta2"), "kind": "DockerMachine", "metadata": meta, "spec": {}}),
        json!({"apiVersion": CORE, "kind": "Machine", "metadata": meta, "spec": {
            "clusterName": "adopted", "version": VERSION,
            "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfig")},
            "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachine"),
        }}),
    ] {
        cluster.objects.create(&object).await;
    }
    let runs = |machine: &Value| text(machine, "/status/phase") == "Running";
    let alone = cluster.objects.until("Machine", "adopted-0", "runs alone", runs).await;
    assert!(owner(&alone, KCP).is_none());
    let authority = cluster.objects.get("Secret", "adopted-ca").await;

    cluster.objects.create(&plane).await;
    cluster.objects.merge("Cluster", "adopted", json!({"spec": {"controlPlaneRef": plane_ref}})).await;
    assert_eq!(cluster.settled(1, VERSION).await, BTreeSet::from(["adopted-0".to_owned()]));
    let machine = cluster.objects.get("Machine", "adopted-0").await;
    assert_eq!(machine["metadata"]["uid"], alone["metadata"]["uid"], "it is the same machine");
    let owner = owner(&machine, KCP).expect("it has an owner");
    assert!(flag(owner, "/controller"), "{owner}");
    assert_eq!(cluster.objects.get("Secret", "adopted-ca").await["data"], authority["data"], "and the same authority");
    cluster.change(json!({"spec": {"replicas": 3}})).await;
    assert!(cluster.settled(3, VERSION).await.contains("adopted-0"));
    cluster.change(json!({"spec": {"replicas": 1}})).await;
    assert!(!cluster.settled(1, VERSION).await.contains("adopted-0"), "the oldest goes first");
    cluster.delete().await;
}

/// A bootstrap that fails says why in the machine's condition; the machine is replaced on request, and goes with its template.
#[tokio::test]
async fn a_failed_bootstrap_shows_its_log_and_leaves_nothing() {
    let mut cluster = Cluster::new("failing", 1, 1).await;
    let template = cluster.sample.take("DockerMachineTemplate").pop().expect("the workers' template");
    let mut failing = template.clone();
    failing["spec"]["template"]["metadata"] = json!({"annotations": {"capwasm.dev/simulate": "fail-bootstrap"}});
    let mut good = template;
    good["metadata"]["name"] = json!("failing-good");
    let mut for_planes = good.clone();
    for_planes["metadata"]["name"] = json!("failing-control-plane");
    cluster.sample.documents.splice(0..0, [failing, good, for_planes]);
    cluster.create().await;
    let told = async |except: &str| {
        wait::until("the failure is told", async || {
            let machines = cluster.machines(false).await;
            let machine = machines.first().filter(|machine| name_of(machine) != except).ok_or("no new Machine")?;
            let docker = text(machine, "/spec/infrastructureRef/name");
            let docker = cluster.objects.find("DockerMachine", docker).await.ok_or("no DockerMachine")?;
            match condition(&docker, "BootstrapExecSucceeded") {
                ("False", "BootstrapFailed", message) => Ok((machine.clone(), message.to_owned())),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    };
    let (machine, message) = told("").await;
    assert!(message.contains("ended with code 1") && message.contains("kubeadm"), "{message}");
    let excerpt = message.rsplit("its last lines: ").next().unwrap();
    assert!(!excerpt.trim().is_empty(), "{message}");
    let shown = |machine: &Value| condition(machine, "InfrastructureReady").2.contains(excerpt);
    let machine = cluster.objects.until("Machine", name_of(&machine), "shows the failure", shown).await;

    cluster.check_health("cluster.x-k8s.io/deployment-name", "failing-md-0", json!({})).await;
    let mark = json!({"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}});
    cluster.objects.merge("Machine", name_of(&machine), mark).await;
    let (second, _) = told(name_of(&machine)).await;
    assert!(cluster.objects.find("Machine", name_of(&machine)).await.is_none());

    let good = json!({"spec": {"template": {"spec": {"infrastructureRef": {"name": "failing-good"}}}}});
    cluster.objects.merge(POOL, "failing-md-0", good).await;
    cluster.sample.provisioned(&cluster.objects).await;
    assert!(!cluster.names(false).await.contains(name_of(&second)));
    assert_eq!(cluster.management.engine().containers("failing").await.len(), 3, "with a load balancer");
    cluster.delete().await;
}
