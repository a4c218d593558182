//! What machines boot from: Ignition, certificates of the user's, an etcd elsewhere, files and accounts; and a boot that fails.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_pki::{Algorithm, Authority, Validity};
use capwasm_tests::objects::{condition, name_of, secret_text, text};
use capwasm_tests::sample::VERSION;
use capwasm_tests::wait;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::cluster::{Cluster, KCP, POOL};

/// A self-signed authority: certificate and key as PEM.
fn authority(name: &str) -> (String, String) {
    let decade = Validity::of(SystemTime::now(), Duration::from_secs(3650 * 24 * 3600));
    let pair = Authority::new(name, Algorithm::EcdsaP256, decade, None).unwrap().pair();
    (pair.certificate, pair.key)
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
