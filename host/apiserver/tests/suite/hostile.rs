//! Clients that misbehave below HTTP: their connection ends or their requests are refused, and a neighbour is answered.

use std::sync::Arc;
use std::time::Duration;

use capwasm_test_support::http2::{self, Attack};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::fixture::{TlsEnd, Way, fixture};

/// Rounds after which an attack has come through.
const ROUNDS: u32 = 2_000;
const PATIENCE: Duration = Duration::from_secs(30);
const HEADERS: u8 = 1;
/// Frames by which a server answers a request, or refuses it: with the reset of its stream, and with the end of the connection.
const ANSWERS: [u8; 3] = [HEADERS, 3, 7];

async fn connect(end: &TlsEnd) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(end.pki.ca_pem().as_bytes()).unwrap()).unwrap();
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(end.url.trim_start_matches("https://")).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// What the server sent, and whether the attack ended before its rounds did.
async fn carry_out(attack: &Attack, stream: TlsStream<TcpStream>) -> (Vec<u8>, bool) {
    let (mut read, mut write) = tokio::io::split(stream);
    let (send, mut sent) = tokio::sync::watch::channel(Vec::new());
    let mut reading = tokio::spawn(async move {
        let mut buffer = vec![0; 16 << 10];
        // However the connection ends.
        while let Ok(1..) = read.read(&mut buffer).await.inspect(|length| {
            send.send_modify(|all| all.extend_from_slice(&buffer[..*length]));
        }) {}
    });
    let sending = async {
        write.write_all(&http2::client_begins()).await?;
        let rounds = if attack.ends { ROUNDS } else { 3 };
        for round in 0..rounds {
            if reading.is_finished() {
                break;
            }
            write.write_all(&(attack.round)(round)).await?;
        }
        write.flush().await
    };
    let mut ended = sending.await.is_err();
    // Some bytes are on the way when a server has had enough, or has an answer.
    if attack.ends {
        ended |= timeout(PATIENCE, &mut reading).await.is_ok();
    } else {
        let answers = |all: &Vec<u8>| frames(all).iter().any(|(kind, _)| ANSWERS.contains(kind));
        let _ = timeout(PATIENCE, sent.wait_for(answers)).await.unwrap();
    }
    // It may have ended by itself.
    let _ = write.shutdown().await;
    let all = sent.borrow().clone();
    (all, ended)
}

/// The kinds of frames with the first byte of each.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Option<u8>)> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        found.push((head[3], rest.first().copied()));
        bytes = rest.get(length..).unwrap_or_default();
    }
    found
}

#[tokio::test]
async fn floods_and_bombs_of_http_2_end_and_a_neighbour_is_answered() {
    const OK: u8 = 0x88;
    let fixture = fixture(Way::Tls).await;
    let end = fixture.tls.as_ref().unwrap();
    let honest =
        Attack { name: "no attack", round: |round| if round == 0 { http2::honest() } else { Vec::new() }, ends: false };
    let (answered, _) = carry_out(&honest, connect(end).await).await;
    assert!(frames(&answered).contains(&(HEADERS, Some(OK))), "what is sent here is served where it is no attack");
    for attack in &http2::OF_CLIENTS {
        let neighbour = async {
            let version = timeout(PATIENCE, fixture.client.apiserver_version()).await;
            assert!(version.unwrap().is_ok(), "{}", attack.name);
        };
        let ((answered, ended), ()) = tokio::join!(carry_out(attack, connect(end).await), neighbour);
        assert!(ended || !attack.ends, "{}: it goes on", attack.name);
        let served = frames(&answered).into_iter().any(|frame| frame == (HEADERS, Some(OK)));
        assert!(attack.ends || !served, "{}: it is served", attack.name);
    }
}
