//! The same on nodes of the simulated engine, as kubeadm makes their control planes.

use std::sync::Arc;

use base64::Engine as _;
use capwasm_contract::EtcdMember;
use capwasm_pki::{Algorithm, Leaf};
use capwasm_remote::Workload;
use capwasm_sim_engine::testing::Sim;
use capwasm_sim_node::testing::{Certificates, add_control_planes, call, new_cluster};
use http::Method;
use serde_json::{Value, json};

use crate::support::{SECRETS, World, send, until};

fn kubeconfig(certificates: &Certificates, endpoint: &str) -> String {
    let admin = Leaf::client("admin", &["system:masters"]);
    let pair = certificates.ca.issue(&admin, Algorithm::EcdsaP256).unwrap();
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://{endpoint}"),
            "certificate-authority-data": encoded(&certificates.ca.certificate)}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {
            "client-certificate-data": encoded(&pair.certificate), "client-key-data": encoded(&pair.key)}}],
    })
    .to_string()
}

async fn put_authority(world: &World, certificates: &Certificates) {
    let file = |end: &str| {
        let (_, text) = certificates.files.iter().find(|(path, _)| path.ends_with(end)).unwrap();
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c-etcd", "namespace": "default"},
        "data": {"tls.crt": file("etcd/ca.crt"), "tls.key": file("etcd/ca.key")}});
    send(&world.client, "POST", SECRETS, Some(secret)).await.unwrap();
}

async fn seen(workload: &Workload) -> Vec<EtcdMember> {
    workload.etcd().members().await.unwrap_or_default()
}

async fn until_seen(what: &str, workload: &Workload, wanted: impl Fn(&[EtcdMember]) -> bool) -> Vec<EtcdMember> {
    let last = parking_lot::Mutex::new(Vec::new());
    until(what, || async {
        let members = seen(workload).await;
        let done = wanted(&members);
        *last.lock() = members;
        done
    })
    .await;
    last.into_inner()
}

fn names(members: &[EtcdMember]) -> Vec<(&str, bool)> {
    members.iter().map(|member| (member.name.as_str(), member.healthy)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_planes_that_kubeadm_made_have_members_that_come_die_and_are_taken_out() {
    let directory = tempfile::tempdir().unwrap();
    let sim = Sim::prepared(directory.path()).await;
    let docker = &sim.docker;
    let (certificates, endpoint) = new_cluster(docker).await;
    let certificates = Arc::new(certificates);
    add_control_planes(docker, &["c-cp-2", "c-cp-3"], &endpoint, &certificates).await;
    let world = World::start().await;
    world.add_cluster().await;
    world.set_kubeconfig(&kubeconfig(&certificates, &endpoint)).await;
    put_authority(&world, &certificates).await;
    world.passes_until("connected", |result| result.is_ok()).await;
    let (workload, _) = world.pass().await.unwrap();

    let all = [("c-cp-1", true), ("c-cp-2", true), ("c-cp-3", true)];
    let members = until_seen("three members", &workload, |members| names(members) == all).await;
    assert_eq!(members.iter().filter(|member| member.leader).count(), 1);
    let pem = workload.serving_certificate("kube-system", "kube-apiserver-c-cp-2", 6443).await.unwrap();
    let (_, parsed) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    let parsed = parsed.parse_x509().unwrap();
    assert_eq!(parsed.subject().iter_common_name().next().unwrap().as_str(), Ok("kube-apiserver"));

    workload.etcd().move_leader(members[1].id).await.unwrap();
    assert!(seen(&workload).await[1].leader);
    call(docker, Method::POST, "/containers/c-cp-2/kill?signal=KILL", Value::Null).await;
    let left = [("c-cp-1", true), ("c-cp-2", false), ("c-cp-3", true)];
    let dead = until_seen("the dead member is told", &workload, |members| names(members) == left).await;
    assert!(dead.iter().any(|member| member.leader && member.name != "c-cp-2"), "{dead:?}");
    workload.etcd().remove(dead[1].id).await.unwrap();
    let two = [("c-cp-1", true), ("c-cp-3", true)];
    until_seen("it is taken out", &workload, |members| names(members) == two).await;
    sim.stop().await;
}
