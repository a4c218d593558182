//! A registry that misbehaves: answers by script, one connection each, and remembers what it was asked.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Responses by the beginning of the request line. `ADDRESS` is replaced by the server's own.
type Script = &'static [(&'static str, &'static str)];

struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (own, seen) = (address.clone(), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, script, own.clone(), seen.clone()));
            }
        });
        Server { address, asked }
    }

    fn repository(&self, credentials: Option<Credentials>) -> Repository {
        let reference = format!("{}/a/b:1", self.address).parse().unwrap();
        Repository::new(&reference, &Access { credentials, ..Access::default() }).unwrap()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

async fn answer(mut stream: TcpStream, script: Script, own: String, asked: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    asked.lock().push(head.clone());
    let found = script.iter().find(|(start, _)| match start.split_once(" + ") {
        Some((start, header)) => head.starts_with(start) && head.contains(header),
        None => head.starts_with(start),
    });
    let text = found.map_or("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", |(_, text)| *text);
    let text = text.replace("ADDRESS", &own);
    if stream.write_all(text.as_bytes()).await.is_err() {
        return;
    }
    if text.ends_with("ENDLESS") {
        while stream.write_all(&[b' '; 4096]).await.is_ok() {}
    }
}

fn descriptor(size: u64) -> Descriptor {
    Descriptor { size, ..Descriptor::of("application/wasm", b"hello") }
}

const BLOB: &str = "GET /v2/a/b/blobs/sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 ";

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let server = Server::start(&[
        ("GET /v2/a/b/manifests/1 ", "HTTP/1.1 200 OK\r\n\r\nENDLESS"),
        ("GET /v2/a/b/manifests/announced ", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"),
        ("GET /v2/a/b/manifests/error ", "HTTP/1.1 500 Oops\r\n\r\nENDLESS"),
        ("GET /v2/a/b/blobs/", "HTTP/1.1 200 OK\r\n\r\nENDLESS"),
    ])
    .await;
    let repository = server.repository(None);
    for tag in ["1", "announced"] {
        let error = repository.manifest(Version::Tag(tag)).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: LARGEST_MANIFEST, .. }), "{error}");
    }
    let error = repository.manifest(Version::Tag("error")).await.unwrap_err();
    assert!(matches!(error, Error::Status { status: 500, .. }), "{error}");
    let error = repository.blob(&descriptor(5), 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 5, .. }), "not a byte more than was announced: {error}");
    let asked = server.asked().len();
    let error = repository.blob(&descriptor(2 << 20), 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 1_048_576, .. }), "{error}");
    assert_eq!(server.asked().len(), asked, "what is too large is not asked for");
}

#[tokio::test]
async fn a_registry_that_dies_or_sends_other_bytes_gives_an_error() {
    type Is = fn(&Error) -> bool;
    let table: [(Script, Is); 6] = [
        (&[(BLOB, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel")], |error| matches!(error, Error::Connect { .. })),
        (&[(BLOB, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n")], |error| {
            matches!(error, Error::Connect { .. })
        }),
        (&[(BLOB, "")], |error| matches!(error, Error::Connect { .. })),
        (&[(BLOB, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhel")], |error| {
            matches!(error, Error::WrongSize { found: 3, .. })
        }),
        (&[(BLOB, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhellO")], |error| {
            matches!(error, Error::WrongDigest { .. })
        }),
        (&[(BLOB, "SSH-2.0-OpenSSH\r\n\r\n")], |error| matches!(error, Error::Connect { .. })),
    ];
    for (script, expected) in table {
        let server = Server::start(script).await;
        let error = server.repository(None).blob(&descriptor(5), 1 << 20).await.unwrap_err();
        assert!(expected(&error), "{script:?}: {error:?}");
        assert!(error.is_transient(), "another attempt may go well: {error}");
    }
    let gone = Server { address: "127.0.0.1:1".to_owned(), asked: Arc::default() };
    let error = gone.repository(None).blob(&descriptor(5), 1 << 20).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
}

#[tokio::test]
async fn a_manifest_asked_for_by_digest_has_it() {
    let server =
        Server::start(&[("GET /v2/a/b/manifests/sha256:", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")]).await;
    let digest = Digest::of(b"something else");
    let error = server.repository(None).manifest(Version::Digest(&digest)).await.unwrap_err();
    assert!(matches!(error, Error::WrongDigest { .. }), "{error}");
    let found = server.repository(None).manifest(Version::Digest(&Digest::of(b"{}"))).await.unwrap();
    assert_eq!(found.unwrap(), "{}");
    assert!(server.repository(None).manifest(Version::Tag("none")).await.unwrap().is_none());
}

#[tokio::test]
async fn redirects_end_and_lead_nowhere_else_than_to_http() {
    for (to, why) in [
        (
            "http://ADDRESS/v2/a/b/blobs/sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            "more than 5",
        ),
        ("file:///etc/passwd", "it leads to"),
        ("unix:///var/run/docker.sock", "it leads to"),
    ] {
        let answer = format!("HTTP/1.1 307 Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        let script: Script = Box::leak(Box::new([(BLOB, &*Box::leak(answer.into_boxed_str()))]));
        let server = Server::start(script).await;
        let error = server.repository(None).blob(&descriptor(5), 1 << 20).await.unwrap_err();
        assert!(matches!(&error, Error::Protocol { why: found, .. } if found.contains(why)), "{error}");
    }
    let server = Server::start(&[(BLOB, "HTTP/1.1 307 Elsewhere\r\ncontent-length: 0\r\n\r\n")]).await;
    assert!(matches!(server.repository(None).blob(&descriptor(5), 9).await, Err(Error::Protocol { .. })));
}

#[tokio::test]
async fn storage_elsewhere_does_not_see_the_credentials_of_the_registry() {
    let storage = Server::start(&[("GET /stored ", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")]).await;
    let answer =
        format!("HTTP/1.1 307 Elsewhere\r\nlocation: http://{}/stored\r\ncontent-length: 0\r\n\r\n", storage.address);
    let script: Script = Box::leak(Box::new([
        (
            "GET /v2/a/b/blobs/sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 HTTP/1.1\r\n + authorization: Basic dXNlcjpwYXNzd29yZA==",
            &*Box::leak(answer.into_boxed_str()),
        ),
        (BLOB, "HTTP/1.1 401 Who\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\n\r\n"),
    ]));
    let server = Server::start(script).await;
    let repository = server.repository(Some(user()));
    assert_eq!(repository.blob(&descriptor(5), 1 << 20).await.unwrap(), "hello");
    assert_eq!(server.asked().len(), 2, "the first request shows no credentials");
    assert!(!server.asked()[0].contains("authorization"));
    assert_eq!(storage.asked().len(), 1);
    assert!(!storage.asked()[0].contains("authorization"), "{}", storage.asked()[0]);
}

fn user() -> Credentials {
    Credentials::Basic { username: "user".to_owned(), password: "password".to_owned() }
}

#[tokio::test]
async fn a_token_service_is_asked_with_the_credentials_and_its_token_shown_to_the_registry() {
    let server = Server::start(&[
        ("GET /v2/a/b/manifests/1 HTTP/1.1\r\n + authorization: Bearer tok", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        ("GET /v2/a/b/manifests/1 ", "HTTP/1.1 401 Who\r\nwww-authenticate: Bearer realm=\"http://ADDRESS/token\",service=\"r\",scope=\"repository:a/b:pull\"\r\ncontent-length: 0\r\n\r\n"),
        ("GET /token?service=r&scope=repository%3Aa%2Fb%3Apull HTTP/1.1\r\n + authorization: Basic dXNlcjpwYXNzd29yZA==", "HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"access_token\":\"tok\"}"),
    ])
    .await;
    let repository = server.repository(Some(user()));
    assert_eq!(repository.manifest(Version::Tag("1")).await.unwrap().unwrap(), "{}");
    assert_eq!(server.asked().len(), 3);
    repository.manifest(Version::Tag("1")).await.unwrap();
    assert_eq!(server.asked().len(), 4, "the token is used again");
}

#[tokio::test]
async fn a_registry_that_takes_nothing_is_asked_twice_and_not_again() {
    let server = Server::start(&[(
        "GET ",
        "HTTP/1.1 401 Who\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 46\r\n\r\n{\"errors\":[{\"message\":\"wrong \\u0007password\"}]}",
    )])
    .await;
    let error = server.repository(Some(user())).manifest(Version::Tag("1")).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert_eq!(server.asked().len(), 2);
    let error = server.repository(None).manifest(Version::Tag("1")).await.unwrap_err();
    assert!(error.to_string().contains("no credentials were given"), "{error}");
    assert!(!error.to_string().contains('\u{7}'));
}

#[tokio::test]
async fn without_tls_only_loopback_is_spoken_to_unless_it_was_allowed() {
    let remote: Reference = "registry.invalid/a/b:1".parse().unwrap();
    let base = |access: &Access| Repository::new(&remote, access).unwrap().base;
    assert_eq!(base(&Access::default()), "https://registry.invalid/v2/a/b");
    assert_eq!(base(&Access { plain_http: true, ..Access::default() }), "http://registry.invalid/v2/a/b");
    let secure = Repository::new(&remote, &Access::default()).unwrap();
    let lured = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("http://127.0.0.1/x"))]);
    let error = secure.location(&secure.uri("blobs/x").unwrap(), &lured).unwrap_err();
    assert!(matches!(error, Error::PlainHttp(_)), "{error}");
}

/// The table of misbehaviour that all clients meet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_registry_is_left_at_a_limit_and_named() {
    use capwasm_test_support::hostile::{self, Behaviour, Ending, ON_THE_WAY};
    use std::time::Duration;

    let short = Duration::from_millis(500);
    for Behaviour { name, script, ending } in hostile::behaviours() {
        let server = hostile::Server::start(script);
        let registry = server.address.to_string();
        let reference = format!("{registry}/a/b:1").parse().unwrap();
        let mut repository = Repository::new(&reference, &Access::default()).unwrap();
        repository.connection.times = connection::Times { answer: short, idle: short, body: short };
        let error = repository.manifest(Version::Tag("1")).await.unwrap_err();
        let right = match ending {
            // Of an error's text the beginning is read; its status says enough.
            Ending::TooLarge => matches!(error, Error::TooLarge { .. } | Error::Status { status: 500, .. }),
            Ending::Late => matches!(&error, Error::Timeout { registry: named, .. } if *named == registry),
            Ending::Headers | Ending::Broken => {
                matches!(&error, Error::Connect { registry: named, .. } if *named == registry)
            }
        };
        assert!(right, "{name}: {error:?}");
        assert!(server.sent() < ON_THE_WAY, "{name}: {} bytes", server.sent());
        drop(repository);
        assert!(tokio::task::spawn_blocking(move || server.left()).await.unwrap(), "{name}: the connection ends");
    }
}
