//! Ports of pods over a WebSocket, as kube's client speaks it.

use std::sync::Arc;

use async_trait::async_trait;
use capwasm_apiserver::{ByteStream, PortForward, ServerConfig, pki};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Fixture, Way, client_of, fixture_with};

/// Port 7 echoes what it gets, behind the pod's name; nobody listens on any other.
struct Echo;

#[async_trait]
impl PortForward for Echo {
    async fn connect(&self, pod: &Value, port: u16) -> Result<Box<dyn ByteStream>, String> {
        if port != 7 {
            return Err(format!("unable to do port forwarding: nobody listens on {port}"));
        }
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        tokio::spawn(async move {
            theirs.write_all(name.as_bytes()).await.unwrap();
            let (mut from, mut to) = tokio::io::split(theirs);
            let _ = tokio::io::copy(&mut from, &mut to).await;
        });
        Ok(Box::new(ours))
    }
}

async fn with_pod(way: Way) -> (Fixture, Api<Pod>) {
    with_pod_and(way, Some(Arc::new(Echo))).await
}

async fn with_pod_and(way: Way, port_forward: Option<Arc<dyn PortForward>>) -> (Fixture, Api<Pod>) {
    let config = ServerConfig { port_forward, ..ServerConfig::new("test") };
    let fixture = fixture_with(way, config).await;
    let pods = pods(&fixture.client);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    pods.create(&Default::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    (fixture, pods)
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

fn code(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn bytes_go_both_ways_through_a_forwarded_port() {
    let (_fixture, pods) = with_pod(Way::Tls).await;
    let mut forward = pods.portforward("p", &[7]).await.unwrap();
    let mut stream = forward.take_stream(7).unwrap();
    let mut name = [0; 1];
    stream.read_exact(&mut name).await.unwrap();
    assert_eq!(&name, b"p");
    // More than any buffer on the way holds.
    let sent: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    let (mut from, mut to) = tokio::io::split(stream);
    let mut got = vec![0; sent.len()];
    let (written, read) = tokio::join!(to.write_all(&sent), from.read_exact(&mut got));
    written.unwrap();
    read.unwrap();
    assert!(sent == got);
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_says_so_and_leaves_the_others_alone() {
    let (_fixture, pods) = with_pod(Way::Tls).await;
    let mut forward = pods.portforward("p", &[8, 7]).await.unwrap();
    let error = forward.take_error(8).unwrap().await.unwrap();
    assert_eq!(error, "unable to do port forwarding: nobody listens on 8");
    let mut stream = forward.take_stream(7).unwrap();
    stream.write_all(b"hello").await.unwrap();
    let mut got = [0; 6];
    stream.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"phello");
}

#[tokio::test]
async fn a_forward_ends_when_the_client_drops_it() {
    let (_fixture, pods) = with_pod(Way::Tls).await;
    let mut forward = pods.portforward("p", &[7]).await.unwrap();
    drop(forward.take_stream(7).unwrap());
    tokio::time::timeout(std::time::Duration::from_secs(10), forward.join()).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn ports_are_forwarded_only_to_pods_that_exist_by_servers_that_can_to_users_that_may() {
    let (fixture, pods) = with_pod(Way::Tls).await;
    assert_eq!(code(pods.portforward("nobody", &[7]).await.err().unwrap()), 404);
    assert_eq!(code(pods.portforward("p", &[0]).await.err().unwrap()), 400);
    let tls = fixture.tls.as_ref().unwrap();
    let stranger = pki::kubeconfig("c", &tls.url, tls.pki.ca_pem(), &tls.pki.client("stranger", &[]).unwrap());
    let stranger = client_of(&stranger).await;
    assert_eq!(code(self::pods(&stranger).portforward("p", &[7]).await.err().unwrap()), 403);
    let (_in_process, pods) = with_pod(Way::InProcess).await;
    assert_eq!(code(pods.portforward("p", &[7]).await.err().unwrap()), 400, "no connection to take over");
    let (_without, pods) = with_pod_and(Way::Tls, None).await;
    assert_eq!(code(pods.portforward("p", &[7]).await.err().unwrap()), 501);
}
