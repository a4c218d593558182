//! Down to members of simulated etcd, through port-forwards of a workload cluster's API server.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use base64::Engine;
use capwasm_apiserver::ServerConfig;
use capwasm_contract::EtcdMember;
use capwasm_etcd::{
    Credentials,
    message::{AlarmAction, AlarmMember, AlarmType},
};
use capwasm_fence::{Fence, Term};
use capwasm_pki::{Algorithm, Leaf, Pair};
use capwasm_reconcile::ClusterId;
use capwasm_remote::{
    ForwardError, Workload,
    connector::{ConnectError, Connector, KubeconfigConnector},
    etcd::{Etcd, EtcdError},
};
use capwasm_sim_node::{
    etcd::{CLIENT_PORT, Running},
    kubeadm::pki::Authority,
    port_forward::ToPodAddress,
};
use serde_json::json;

use crate::support::{SECRETS, WorkloadServer, World, send};

const KEYSPACE: &str = "cluster/c";
const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// A connected workload cluster with stacked etcd.
struct Stacked {
    world: World,
    server: WorkloadServer,
    workload: Workload,
    authority: Authority,
    members: Arc<capwasm_sim_node::etcd::Etcd>,
    addresses: BTreeMap<&'static str, IpAddr>,
    _directory: tempfile::TempDir,
}

impl Stacked {
    async fn start(nodes: &[&'static str]) -> Self {
        Self::with(nodes, World::start().await).await
    }

    async fn with(nodes: &[&'static str], world: World) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = ServerConfig { port_forward: Some(Arc::new(ToPodAddress)), ..ServerConfig::new("w") };
        let server = WorkloadServer::with(config).await;
        world.add_cluster().await;
        world.set_kubeconfig(&server.kubeconfig).await;
        world.passes_until("connected", |result| result.is_ok()).await;
        let (workload, _) = world.pass().await.unwrap();
        let (second, third) = (rand::random_range(64..=254), rand::random());
        let address = |number: usize| IpAddr::V4(Ipv4Addr::new(127, second, third, u8::try_from(number).unwrap() + 1));
        let stacked = Self {
            authority: Authority::generate("etcd-ca", Algorithm::EcdsaP256).unwrap(),
            members: capwasm_sim_node::etcd::Etcd::open(&directory.path().join("etcd")).unwrap(),
            addresses: nodes.iter().enumerate().map(|(number, node)| (*node, address(number))).collect(),
            _directory: directory,
            world,
            server,
            workload,
        };
        stacked.set_authority(&stacked.authority.certificate, Some(&stacked.authority.key_pem())).await;
        for node in nodes {
            stacked.add_pod(node).await;
            let url = format!("https://{}:2380", stacked.addresses[node]);
            if stacked.members.members(KEYSPACE).is_empty() {
                stacked.members.initialize(KEYSPACE, node, &url).unwrap();
            } else {
                stacked.members.add(KEYSPACE, node, &url).unwrap();
            }
            stacked.run(node, &stacked.authority).await;
        }
        stacked
    }

    fn etcd(&self) -> Etcd {
        self.workload.etcd()
    }

    async fn set_authority(&self, certificate: &str, key: Option<&str>) {
        let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let data = json!({"tls.crt": encoded(certificate), "tls.key": key.map(encoded)});
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "c-etcd", "namespace": "default"}, "data": {"tls.crt": data["tls.crt"]}});
        // There already: only its data change.
        let _ = send(&self.world.client, "POST", SECRETS, Some(secret)).await;
        send(&self.world.client, "PATCH", &format!("{SECRETS}/c-etcd"), Some(json!({"data": data}))).await.unwrap();
    }

    fn pair(&self, node: &str, authority: &Authority) -> Pair {
        let names = vec![node.to_owned(), "localhost".to_owned(), self.addresses[node].to_string()];
        authority.issue(&Leaf::peer(node, names), Algorithm::EcdsaP256).unwrap()
    }

    async fn run(&self, node: &str, authority: &Authority) {
        let pair = self.pair(node, authority);
        let running = Running {
            keyspace: KEYSPACE.to_owned(),
            name: node.to_owned(),
            address: self.addresses[node],
            certificate: pair.certificate,
            key: pair.key,
            authority: authority.certificate.clone(),
        };
        self.members.start(running).await.unwrap();
    }

    async fn add_pod(&self, node: &str) {
        let labels = json!({"component": "etcd", "tier": "control-plane"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("etcd-{node}"), "namespace": "kube-system", "labels": labels},
            "spec": {"nodeName": node, "hostNetwork": true, "containers": [{"name": "etcd", "image": "etcd"}]}});
        send(&self.server.client, "POST", PODS, Some(pod)).await.unwrap();
        let status = json!({"status": {"phase": "Running", "podIP": self.addresses[node].to_string()}});
        send(&self.server.client, "PATCH", &format!("{PODS}/etcd-{node}/status"), Some(status)).await.unwrap();
    }

    async fn delete_pod(&self, node: &str) {
        let now = json!({"gracePeriodSeconds": 0});
        send(&self.server.client, "DELETE", &format!("{PODS}/etcd-{node}"), Some(now)).await.unwrap();
    }
}

/// Name, role and what is wrong, one line for each member.
fn lines(members: &[EtcdMember]) -> Vec<String> {
    let line = |member: &EtcdMember| {
        let role = if member.leader { "*" } else { "" };
        let problem = if member.healthy { "" } else { " unhealthy" };
        format!("{}{role}{problem}", member.name)
    };
    members.iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_are_seen_led_and_taken_out_through_the_api_server() {
    let stacked = Stacked::start(&NODES).await;
    let etcd = stacked.etcd();
    let members = etcd.members().await.unwrap();
    assert_eq!(lines(&members), ["n1*", "n2", "n3"]);
    assert!(
        members.iter().all(|member| member.peer_urls == [format!("https://{}:2380", stacked.addresses[&*member.name])])
    );
    let connections = stacked.server.connections.load(std::sync::atomic::Ordering::SeqCst);
    etcd.members().await.unwrap();
    let again = stacked.server.connections.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(again, connections, "connections to members are kept");

    let id = |name: &str| members.iter().find(|member| member.name == name).unwrap().id;
    etcd.move_leader(id("n2")).await.unwrap();
    etcd.move_leader(id("n2")).await.unwrap();
    assert_eq!(lines(&etcd.members().await.unwrap()), ["n1", "n2*", "n3"]);
    assert!(matches!(etcd.move_leader(7).await, Err(EtcdError::NoMember(7))));

    etcd.remove(id("n2")).await.unwrap();
    etcd.remove(id("n2")).await.unwrap();
    stacked.delete_pod("n2").await;
    assert_eq!(lines(&etcd.members().await.unwrap()), ["n1*", "n3"]);
}

/// Connects as ever, for a host with a Lease.
struct Leased(Fence);

#[async_trait::async_trait]
impl Connector for Leased {
    async fn connect(&self, cluster: &ClusterId, kubeconfig: &[u8]) -> Result<kube::Client, ConnectError> {
        KubeconfigConnector.connect(cluster, kubeconfig).await
    }

    async fn connect_for_forwarding(&self, cluster: &ClusterId, config: &[u8]) -> Result<kube::Client, ConnectError> {
        KubeconfigConnector.connect_for_forwarding(cluster, config).await
    }

    fn fence(&self) -> Fence {
        self.0.clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_member_is_removed_by_a_host_that_lost_its_lease() {
    let fence = Fence::new(Term { duration: Duration::from_secs(3600), margin: Duration::from_secs(1) });
    fence.renewed(fence.now());
    let stacked = Stacked::with(&["n1", "n2"], World::with(Arc::new(Leased(fence.clone()))).await).await;
    let etcd = stacked.etcd();
    let id = |members: &[EtcdMember], name: &str| members.iter().find(|member| member.name == name).unwrap().id;
    let members = etcd.members().await.unwrap();
    etcd.move_leader(id(&members, "n2")).await.unwrap();
    fence.lower();
    for refused in [etcd.remove(id(&members, "n1")).await, etcd.move_leader(id(&members, "n1")).await] {
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains("Lease"), "{refused}");
    }
    assert_eq!(lines(&etcd.members().await.unwrap()), ["n1", "n2*"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_does_not_answer_is_told_and_holds_nobody_up() {
    let stacked = Stacked::start(&NODES).await;
    let etcd = stacked.etcd();
    let members = etcd.members().await.unwrap();
    stacked.members.stop(KEYSPACE, "n3").await;
    // What listens there now takes connections and says nothing.
    let silent = tokio::net::TcpListener::bind((stacked.addresses["n3"], CLIENT_PORT)).await.unwrap();
    let started = Instant::now();
    let seen = etcd.members().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert_eq!(lines(&seen), ["n1*", "n2", "n3 unhealthy"]);
    drop(silent);
    let refused = etcd.remove(members[1].id).await.unwrap_err();
    assert!(matches!(refused, EtcdError::Unavailable(_)), "the majority needs it: {refused}");
    etcd.remove(members[2].id).await.unwrap();
    // Another one of two: nobody decides any more.
    stacked.members.stop(KEYSPACE, "n2").await;
    let seen = etcd.members().await.unwrap();
    assert_eq!(lines(&seen), ["n1 unhealthy", "n2 unhealthy"]);
    assert!(seen[0].message.contains("it knows no leader"), "{}", seen[0].message);
    assert!(seen[1].message.contains("does not answer"), "{}", seen[1].message);
    stacked.members.stop(KEYSPACE, "n1").await;
    assert!(matches!(etcd.members().await, Err(EtcdError::Unavailable(_))));
    // Back again: broken connections are not kept.
    for node in ["n1", "n2"] {
        stacked.run(node, &stacked.authority).await;
    }
    let seen = etcd.members().await.unwrap();
    assert!(seen.iter().all(|member| member.healthy), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_make_a_member_unhealthy() {
    let stacked = Stacked::start(&["n1"]).await;
    let id = stacked.etcd().members().await.unwrap()[0].id;
    let stream = tokio::net::TcpStream::connect((stacked.addresses["n1"], CLIENT_PORT)).await.unwrap();
    let pair = stacked.authority.issue(&Leaf::client("test", &[]), Algorithm::EcdsaP256).unwrap();
    let credentials = Credentials::new(&stacked.authority.certificate, &pair.certificate, &pair.key).unwrap();
    let client = capwasm_etcd::Client::connect(stream, "n1", &credentials).await.unwrap();
    let alarm = AlarmMember { member_id: id, alarm: AlarmType::Nospace.into() };
    client.alarm(AlarmAction::Activate, alarm).await.unwrap();
    let seen = stacked.etcd().members().await.unwrap();
    assert_eq!((seen[0].healthy, seen[0].alarms.as_slice()), (false, ["NOSPACE".to_owned()].as_slice()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_that_is_not_ours_to_manage_is_told_apart_from_one_that_cannot_be_reached() {
    let stacked = Stacked::start(&["n1"]).await;
    let etcd = stacked.etcd();
    // Another authority: members do not trust us. Then the right one: nothing of the wrong one is kept.
    let other = Authority::generate("other", Algorithm::EcdsaP256).unwrap();
    stacked.set_authority(&other.certificate, Some(&other.key_pem())).await;
    let refused = etcd.members().await.unwrap_err();
    assert!(matches!(&refused, EtcdError::Unavailable(message) if message.contains("TLS")), "{refused}");
    stacked.set_authority(&stacked.authority.certificate, Some(&stacked.authority.key_pem())).await;
    assert_eq!(lines(&etcd.members().await.unwrap()), ["n1*"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn external_etcd_is_not_managed() {
    let stacked = Stacked::start(&[]).await;
    stacked.set_authority(&stacked.authority.certificate, None).await;
    let refused = stacked.etcd().members().await.unwrap_err();
    assert!(matches!(refused, EtcdError::Unsupported(_)), "{refused}");
    send(&stacked.world.client, "DELETE", &format!("{SECRETS}/c-etcd"), None).await.unwrap();
    let refused = stacked.etcd().members().await.unwrap_err();
    assert!(matches!(refused, EtcdError::NoAuthority(_)), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serving_certificates_are_shown_by_whoever_serves_them() {
    let stacked = Stacked::start(&["n1"]).await;
    let shown = |pod: &'static str, port| stacked.workload.serving_certificate("kube-system", pod, port);
    let pem = shown("etcd-n1", CLIENT_PORT).await.unwrap();
    let (_, parsed) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    assert_eq!(parsed.parse_x509().unwrap().subject().iter_common_name().next().unwrap().as_str(), Ok("n1"));
    let nothing_listens = shown("etcd-n1", 9).await;
    assert!(matches!(nothing_listens, Err(ForwardError::Unreachable { .. })), "{nothing_listens:?}");
    let no_pod = shown("nobody", 9).await;
    assert!(matches!(no_pod, Err(ForwardError::Refused { .. })), "{no_pod:?}");
}
