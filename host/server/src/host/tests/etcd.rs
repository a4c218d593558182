//! From a component's import to a member of etcd: grant, host, port-forward through the workload cluster's API server,
//! mutual TLS.

use std::net::{IpAddr, Ipv4Addr};

use base64::Engine as _;
use capwasm_apiserver::{Server, ServerConfig, Store, pki};
use capwasm_pki::{Algorithm, Leaf};
use capwasm_sim_node::etcd::{Etcd, Running};
use capwasm_sim_node::kubeadm::pki::Authority;
use capwasm_sim_node::port_forward::ToPodAddress;

use super::*;

const NODE: &str = "n1";

/// A workload cluster over TLS, with one etcd member.
struct Workload {
    kubeconfig: String,
    authority: Authority,
    _etcd: Arc<Etcd>,
    _keys: tempfile::TempDir,
}

async fn workload() -> Workload {
    let keys = tempfile::tempdir().unwrap();
    let server_keys = pki::ensure(keys.path(), &["127.0.0.1".to_owned()]).unwrap();
    let config = ServerConfig { port_forward: Some(Arc::new(ToPodAddress)), ..ServerConfig::new("w") };
    let server = Server::start(Store::memory().unwrap(), config).await.unwrap();
    let client = server.client(capwasm_apiserver::Identity::admin("test"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let tls = server_keys.tls();
    tokio::spawn(async move { server.serve(listener, tls, CancellationToken::new()).await });

    let third = u8::try_from(std::process::id() % 250).unwrap();
    let address = IpAddr::V4(Ipv4Addr::new(127, 61, third, 1));
    let authority = Authority::generate("etcd-ca", Algorithm::EcdsaP256).unwrap();
    let names = vec![NODE.to_owned(), address.to_string()];
    let pair = authority.issue(&Leaf::peer(NODE, names), Algorithm::EcdsaP256).unwrap();
    let etcd = Etcd::open(&keys.path().join("etcd")).unwrap();
    etcd.initialize("w", NODE, &format!("https://{address}:2380")).unwrap();
    let running = Running {
        keyspace: "w".to_owned(),
        name: NODE.to_owned(),
        address,
        certificate: pair.certificate,
        key: pair.key,
        authority: authority.certificate.clone(),
    };
    etcd.start(running).await.unwrap();
    let pods = api(&client, "", "v1", "Pod", "kube-system");
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("etcd-{NODE}"), "labels": {"component": "etcd", "tier": "control-plane"}},
        "spec": {"nodeName": NODE, "containers": [{"name": "etcd", "image": "etcd"}]}});
    pods.create(&PostParams::default(), &object(pod)).await.unwrap();
    let status = Patch::Merge(json!({"status": {"podIP": address.to_string()}}));
    pods.patch_status(&format!("etcd-{NODE}"), &PatchParams::default(), &status).await.unwrap();
    let kubeconfig = server_keys.admin_kubeconfig(&url).unwrap();
    Workload { kubeconfig, authority, _etcd: etcd, _keys: keys }
}

/// Cluster `c` with these Secrets, and a machine whose infrastructure does what `spec` says.
async fn machine(world: &World, workload: &Workload, spec: Value) {
    let create = PostParams::default();
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let secrets = api(&world.client, "", "v1", "Secret", "default");
    let key = workload.authority.key_pem();
    for (name, data) in [
        ("c-kubeconfig", json!({"value": encoded(&workload.kubeconfig)})),
        ("c-etcd", json!({"tls.crt": encoded(&workload.authority.certificate), "tls.key": encoded(&key)})),
    ] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data});
        secrets.create(&create, &object(secret)).await.unwrap();
    }
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c"},
        "spec": {"infrastructureRef": {"apiGroup": GROUP, "kind": "FixtureCluster", "name": "i"}}});
    let clusters = world.core("v1beta2", "Cluster");
    clusters.create(&create, &object(cluster)).await.unwrap();
    let ready = Patch::Merge(json!({"status": {"initialization": {"infrastructureProvisioned": true}}}));
    clusters.patch_status("c", &PatchParams::default(), &ready).await.unwrap();
    let labels = json!({"cluster.x-k8s.io/cluster-name": "c"});
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "labels": labels},
        "spec": {"clusterName": "c", "bootstrap": {"dataSecretName": "s"},
            "infrastructureRef": {"apiGroup": GROUP, "kind": "FixtureMachine", "name": "m"}}});
    let owner = world.core("v1beta2", "Machine").create(&create, &object(machine)).await.unwrap();
    let owners = json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m",
        "uid": owner.uid().unwrap()}]);
    let wanted = json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "FixtureMachine",
        "metadata": {"name": "m", "labels": labels, "ownerReferences": owners}, "spec": spec});
    api(&world.client, GROUP, "v1beta2", "FixtureMachine", "default").create(&create, &object(wanted)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_reaches_the_members_of_its_cluster_once_that_is_granted() {
    let (world, workload) = (world().await, workload().await);
    let host = providers(&world, Some(world.conversions.clone())).await;
    machine(&world, &workload, json!({"do": "etcd", "id": 7})).await;
    let machines = api(&world.client, GROUP, "v1beta2", "FixtureMachine", "default");
    let seen = async |what: &str, wanted: &dyn Fn(&Value) -> bool| {
        until(what, async || {
            let seen = machines.get("m").await.unwrap().data["status"]["seen"].clone();
            wanted(&seen).then_some(seen)
        })
        .await
    };
    let denied = seen("it is denied", &|seen| seen["members"]["refused"] == "Refusal::Denied").await;
    assert_eq!(denied["remove"]["refused"], "Refusal::Denied");

    let wasm_providers = api(&world.client, "capwasm.dev", "v1alpha1", "WasmProvider", "");
    let grant = Patch::Merge(json!({"spec": {"grants": {"etcd": true}}}));
    wasm_providers.patch("fixture", &PatchParams::default(), &grant).await.unwrap();
    let seen = seen("the member is seen", &|seen| seen["members"]["ok"].is_array()).await;
    let line = seen["members"]["ok"][0].as_str().unwrap();
    assert!(line.ends_with(&format!(" {NODE} leader")), "{line}");
    assert_eq!(seen["remove"]["ok"], true, "one that is no member is gone");
    assert_eq!(seen["moveLeader"]["reason"], "NoSuchMember");
    host.stop().await;
}
