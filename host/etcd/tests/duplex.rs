//! Client and server over a pipe, since any byte stream will do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use capwasm_etcd::message::*;
use capwasm_etcd::server::{self, Answers, Status};
use capwasm_etcd::{Client, Code, ConnectError, Credentials, CredentialsError, Error};
use capwasm_pki::{Algorithm, Authority, Leaf, Pair, Validity};
use capwasm_test_support::http2;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// An authority, with a certificate and key for both sides.
struct Keys {
    authority: String,
    certificate: String,
    key: String,
}

fn keys() -> Keys {
    let day = Validity::of(SystemTime::now(), Duration::from_secs(24 * 3600));
    let authority = Authority::new("etcd-ca", Algorithm::EcdsaP256, day, None).unwrap();
    let leaf = Leaf::peer("node-1", vec!["node-1".to_owned()]);
    let Pair { certificate, key } = authority.issue(&leaf, Algorithm::EcdsaP256, day).unwrap();
    Keys { authority: authority.pair().certificate, certificate, key }
}

/// Promoting it is refused in a million words.
const REFUSAL: u64 = 7;

/// Repeats requests, refuses some, and does not answer `MemberList`.
struct Echo;

fn header(member_id: u64) -> Option<ResponseHeader> {
    Some(ResponseHeader { cluster_id: 1, member_id, revision: -3, raft_term: u64::MAX })
}

#[async_trait]
impl Answers for Echo {
    async fn status(&self, _: StatusRequest) -> Result<StatusResponse, Status> {
        let errors = vec!["etcdserver: no leader".to_owned()];
        Ok(StatusResponse {
            header: header(5),
            version: "3.6.4".into(),
            errors,
            is_learner: true,
            ..Default::default()
        })
    }

    async fn alarm(&self, request: AlarmRequest) -> Result<AlarmResponse, Status> {
        let alarm = AlarmMember { member_id: request.member_id, alarm: request.alarm };
        let alarms = if request.action() == AlarmAction::Get { Vec::new() } else { vec![alarm] };
        Ok(AlarmResponse { header: header(5), alarms })
    }

    async fn move_leader(&self, request: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status> {
        match request.target_id {
            1 => Err(Status::failed_precondition("etcdserver: not leader")),
            2 => Err(Status::unavailable("etcdserver: request timed out")),
            target => Ok(MoveLeaderResponse { header: header(target) }),
        }
    }

    async fn member_list(&self, _: MemberListRequest) -> Result<MemberListResponse, Status> {
        std::future::pending().await
    }

    async fn member_add(&self, request: MemberAddRequest) -> Result<MemberAddResponse, Status> {
        let MemberAddRequest { peer_urls, is_learner } = request;
        let member = Member { id: u64::MAX, peer_urls, is_learner, ..Default::default() };
        Ok(MemberAddResponse { header: header(5), member: Some(member.clone()), members: vec![member; 2] })
    }

    async fn member_remove(&self, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status> {
        Err(Status::not_found(format!("etcdserver: member not found: {}", request.id)))
    }

    async fn member_promote(&self, request: MemberPromoteRequest) -> Result<MemberPromoteResponse, Status> {
        // One member for each kilobyte that is asked for; or a refusal in as many words.
        let kilobytes = usize::try_from(request.id).unwrap();
        let members = (0..kilobytes).map(|_| Member { name: "x".repeat(1 << 10), ..Member::default() });
        match request.id {
            REFUSAL => Err(Status::unavailable("x".repeat(1 << 20))),
            id => Ok(MemberPromoteResponse { header: header(id), members: members.collect() }),
        }
    }
}

async fn connect(keys: &Keys, name: &str) -> Result<Client, ConnectError> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let tls = server::tls(&keys.authority, &keys.certificate, &keys.key).unwrap();
    tokio::spawn(server::serve(far, tls, Arc::new(Echo), std::future::pending()));
    let credentials = Credentials::new(&keys.authority, &keys.certificate, &keys.key).unwrap();
    Client::connect(near, name, &credentials).await
}

#[tokio::test]
async fn what_is_asked_arrives_and_what_is_answered_returns() {
    let client = connect(&keys(), "node-1").await.unwrap();
    let status = client.status().await.unwrap();
    assert_eq!((status.header, status.is_learner, status.errors.len()), (header(5), true, 1));
    assert_eq!(client.alarms().await.unwrap().alarms, []);
    let alarm = AlarmMember { member_id: 9, alarm: AlarmType::Corrupt.into() };
    assert_eq!(client.alarm(AlarmAction::Activate, alarm).await.unwrap().alarms, [alarm]);
    let added = client.member_add(vec!["https://10.0.0.1:2380".into()], true).await.unwrap();
    let member = added.member.unwrap();
    assert_eq!((member.id, member.is_learner, member.peer_urls.len(), added.members.len()), (u64::MAX, true, 1, 2));
    assert_eq!(client.member_promote(4).await.unwrap().header, header(4));
    assert_eq!(client.move_leader(3).await.unwrap().header, header(3));
}

#[tokio::test]
async fn an_answer_is_told_apart_from_a_connection_that_fails() {
    let client = connect(&keys(), "node-1").await.unwrap();
    let gone = client.member_remove(7).await.unwrap_err();
    assert_eq!((gone.code(), gone.to_string().as_str()), (Code::NotFound, "etcdserver: member not found: 7"));
    assert!(gone.is_answer());
    assert!(client.move_leader(1).await.unwrap_err().is_answer());
    assert!(!client.move_leader(2).await.unwrap_err().is_answer(), "another member may know better");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_answer_is_not_waited_for() {
    let client = connect(&keys(), "node-1").await.unwrap();
    let late = client.member_list(false).await.unwrap_err();
    assert!(late.code() == Code::DeadlineExceeded || matches!(late, Error::Deadline(_)), "{late}");
    assert!(!late.is_answer() && !client.is_closed());
    client.status().await.unwrap();
}

/// A hostile member: its answer is left at a limit, and the connection serves the next request as before, or says that it ended.
#[tokio::test]
async fn an_answer_that_is_too_large_is_not_taken() {
    for (name, id) in [("a list without measure", 2 << 10), ("a refusal without measure", REFUSAL)] {
        let client = connect(&keys(), "node-1").await.unwrap();
        let error = client.member_promote(id).await.unwrap_err();
        assert!(!error.is_answer(), "{name}: another member may know better");
        assert!(error.to_string().len() < 64 << 10, "{name}: {} bytes of words", error.to_string().len());
        assert!(client.is_closed() || client.status().await.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn only_who_is_expected_is_talked_to() {
    let keys = keys();
    assert!(matches!(connect(&keys, "node-2").await, Err(ConnectError::Tls(_))));
    assert!(matches!(connect(&keys, "no name").await, Err(ConnectError::Name(_))));
    let broken = Credentials::new(&keys.authority, &keys.certificate, "no key").unwrap_err();
    assert!(matches!(broken, CredentialsError::Pem { part: "key", .. }), "{broken}");
    Credentials::new("", &keys.certificate, &keys.key).unwrap_err();
}

#[tokio::test]
async fn a_member_that_misuses_http_2_is_left() {
    const ROUNDS: u32 = 2_000;
    const PATIENCE: Duration = Duration::from_secs(30);
    let keys = keys();
    for attack in &http2::OF_SERVERS {
        let (near, far) = tokio::io::duplex(1 << 16);
        let tls = server::tls(&keys.authority, &keys.certificate, &keys.key).unwrap();
        let attacked = tokio::spawn(async move {
            let stream = tokio_rustls::TlsAcceptor::from(tls).accept(far).await?;
            let (mut read, mut write) = tokio::io::split(stream);
            let mut reading = tokio::spawn(async move { read.read_to_end(&mut Vec::new()).await });
            write.write_all(&http2::server_begins()).await?;
            for round in 0..ROUNDS {
                if reading.is_finished() {
                    return Ok(true);
                }
                write.write_all(&(attack.round)(round)).await?;
                tokio::task::yield_now().await;
            }
            // Some bytes are on the way when a client has had enough.
            Ok::<_, std::io::Error>(attack.ends && tokio::time::timeout(PATIENCE, &mut reading).await.is_ok())
        });
        let credentials = Credentials::new(&keys.authority, &keys.certificate, &keys.key).unwrap();
        let told = match Client::connect(near, "node-1", &credentials).await {
            Ok(client) => client.status().await.map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        assert!(told.is_err_and(|told| !told.is_empty()), "{}", attack.name);
        // A write that fails is an end as well.
        let ended = attacked.await.unwrap().unwrap_or(true);
        assert!(ended || !attack.ends, "{}: it goes on", attack.name);
    }
}
