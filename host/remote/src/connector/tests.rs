//! API servers that misbehave, and what a client makes of them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{net::SocketAddr, sync::Arc, time::SystemTime};

use capwasm_pki::{Algorithm, Authority, Leaf, Validity, certificates};
use capwasm_test_support::{
    hostile::{Behaviour, Ending, ON_THE_WAY, Script, Server, behaviours},
    http2::{self, Attack},
};
use futures::TryStreamExt;
use kube::{Api, api::WatchParams};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::explain;

fn limits() -> Limits {
    Limits {
        head: Duration::from_millis(500),
        body: Duration::from_millis(500),
        header_bytes: 16 << 10,
        body_bytes: 1 << 20,
        line_bytes: 256 << 10,
        watch_bytes: 1 << 20,
        ..Limits::default()
    }
}

fn client_of(server: &Server, limits: Limits) -> Client {
    let config = Config::new(format!("http://{}", server.address).parse().unwrap());
    client(&config, Connections::Shared, limits).unwrap()
}

/// That the connection has ended, and that no more was read than may be.
async fn left(server: Server, name: &str) {
    assert!(server.sent() < ON_THE_WAY, "{name}: {} bytes", server.sent());
    assert!(tokio::task::spawn_blocking(move || server.left()).await.unwrap(), "{name}: the connection ends");
}

async fn get(client: &Client) -> Result<String, String> {
    let request = http::Request::get("/api/v1/nodes/n").body(Vec::new()).unwrap();
    client.request_text(request).await.map_err(|error| explain(&error))
}

/// An API server that answers with an empty object.
fn good() -> Server {
    let first = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}".to_vec();
    Server::start(Script { first, ..Script::default() })
}

/// All events of a watch, up to what ends it.
async fn watch(client: &Client) -> String {
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client.clone());
    let events = async { nodes.watch(&WatchParams::default(), "0").await?.try_for_each(|_| async { Ok(()) }).await };
    events.await.map_or_else(|error| explain(&error), |()| "the watch ended".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_api_server_is_left_at_a_limit_and_named_and_its_neighbour_answers_meanwhile() {
    let neighbour = client_of(&good(), Limits::default());
    for Behaviour { name, script, ending } in behaviours() {
        let server = Server::start(script);
        let client = client_of(&server, limits());
        let (told, neighbours) = tokio::join!(get(&client), get(&neighbour));
        assert_eq!(neighbours.as_deref(), Ok("{}"), "{name}");
        let told = told.unwrap_err();
        let named = match ending {
            Ending::TooLarge => told.contains("the API server's answer is larger than 1048576 bytes"),
            Ending::Late => told.contains("the API server did not answer") || told.contains("was not complete after"),
            Ending::Headers | Ending::Broken => !told.is_empty(),
        };
        assert!(named, "{name}: {told}");
        left(server, name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_is_left_at_a_limit_of_its_events_and_of_the_whole() {
    let first = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let event = "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"}}}\n";
    let rows = [
        (
            "an event without end",
            vec![b'x'; 64 << 10],
            "an event of the API server's watch is larger than 262144 bytes",
        ),
        (
            "events without end",
            event.repeat(500).into_bytes(),
            "a watch of the API server brought more than 1048576 bytes",
        ),
    ];
    for (name, again, expected) in rows {
        let server = Server::start(Script { first: first.clone(), again, ..Script::default() });
        let told = watch(&client_of(&server, limits())).await;
        assert!(told.contains(expected), "{name}: {told}");
        left(server, name).await;
    }
}

/// Rounds after which an attack has come through.
const ROUNDS: u32 = 2_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// Certificates of an API server on loopback, with so many more in its chain, and a client that trusts it.
fn secured(more: usize) -> (Arc<rustls::ServerConfig>, impl Fn(SocketAddr) -> Client) {
    let day = Validity::of(SystemTime::now(), Duration::from_secs(24 * 3600));
    let authority = Authority::new("ca", Algorithm::EcdsaP256, day, None).unwrap();
    let pair = authority.issue(&Leaf::server("s", vec!["127.0.0.1".to_owned()]), Algorithm::EcdsaP256, day).unwrap();
    let mut chain = certificates(&pair.certificate).unwrap();
    chain.extend(std::iter::repeat_n(authority.der().clone(), more));
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(pair.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let root = authority.der().to_vec();
    let connect = move |address: SocketAddr| {
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.root_cert = Some(vec![root.clone()]);
        client(&config, Connections::Shared, limits()).unwrap()
    };
    (Arc::new(config), connect)
}

/// Carries an attack out on whoever connects first; whether that ended it.
async fn attack(listener: TcpListener, tls: Arc<rustls::ServerConfig>, attack: &Attack) -> bool {
    let (stream, _) = listener.accept().await.unwrap();
    let Ok(stream) = tokio_rustls::TlsAcceptor::from(tls).accept(stream).await else { return true };
    let (mut read, mut write) = tokio::io::split(stream);
    let mut reading = tokio::spawn(async move { read.read_to_end(&mut Vec::new()).await });
    let sent = async {
        write.write_all(&http2::server_begins()).await?;
        for round in 0..ROUNDS {
            if reading.is_finished() {
                break;
            }
            write.write_all(&(attack.round)(round)).await?;
            tokio::task::yield_now().await;
        }
        write.flush().await
    };
    // Some bytes are on the way when a client has had enough.
    sent.await.is_err()
        || reading.is_finished()
        || attack.ends && tokio::time::timeout(PATIENCE, &mut reading).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_misuses_http_2_is_left_and_told() {
    let neighbour = client_of(&good(), Limits::default());
    for one in &http2::OF_SERVERS {
        let (tls, connect) = secured(0);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = connect(listener.local_addr().unwrap());
        let (ended, told, neighbours) = tokio::join!(attack(listener, tls, one), get(&client), get(&neighbour));
        assert_eq!(neighbours.as_deref(), Ok("{}"), "{}", one.name);
        assert!(told.is_err_and(|told| !told.is_empty()), "{}", one.name);
        assert!(ended || !one.ends, "{}: it goes on", one.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_huge_chain_of_certificates_is_not_read() {
    for (more, expected) in [(1, ""), (5_000, "TooLarge")] {
        let (tls, connect) = secured(more);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = connect(listener.local_addr().unwrap());
        let accepted = async {
            let (stream, _) = listener.accept().await.unwrap();
            tokio_rustls::TlsAcceptor::from(tls).accept(stream).await.is_ok()
        };
        let (accepted, told) = tokio::join!(accepted, get(&client));
        let told = told.unwrap_err();
        assert!(accepted == expected.is_empty() && told.contains(expected), "{more}: {told}");
    }
}
