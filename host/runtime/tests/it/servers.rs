//! Misbehaving servers, and a simulated network.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use capwasm_runtime::Network;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// DNS answers for each lookup of a name, and the servers behind addresses.
#[derive(Debug, Default)]
pub struct Made {
    names: Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>,
    servers: BTreeMap<IpAddr, SocketAddr>,
    asked: Mutex<Vec<String>>,
    connected: Mutex<Vec<String>>,
}

impl Made {
    /// Answers for successive lookups of a name; the last is repeated.
    pub fn name(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.names.lock().insert(name.to_owned(), answers.iter().map(parse).collect());
        self
    }

    /// The server at an address, on every port.
    pub fn server(mut self, address: &str, server: SocketAddr) -> Self {
        self.servers.insert(address.parse().unwrap(), server);
        self
    }

    /// Names that were looked up.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    /// Addresses with ports that were connected to.
    pub fn connected(&self) -> Vec<String> {
        self.connected.lock().clone()
    }
}

#[async_trait]
impl Network for Made {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().push(host.to_owned());
        let mut names = self.names.lock();
        let answers = names.get_mut(host).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() })
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        self.connected.lock().push(to.to_string());
        let server = self.servers.get(&to.ip()).copied().ok_or(io::ErrorKind::ConnectionRefused)?;
        TcpStream::connect(server).await
    }
}

/// A server that sends the same bytes to every request.
pub struct Raw {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
}

/// Sent after the head of a request: `first`, then `again` repeatedly; then the connection is closed.
#[derive(Clone, Default)]
pub struct Script {
    pub first: Vec<u8>,
    /// Repeated without end, unless empty.
    pub again: Vec<u8>,
    /// Between repetitions.
    pub pause: Duration,
}

impl Raw {
    /// A valid response, and the end of the connection.
    pub async fn good() -> Self {
        Self::once("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ngood").await
    }

    pub async fn once(text: &str) -> Self {
        Self::start(Script { first: text.into(), ..Script::default() }).await
    }

    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, open) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (seen, count) = (heads.clone(), open.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen, count) = (script.clone(), seen.clone(), count.clone());
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = answer(stream, &script, &seen).await;
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Raw { address, heads, open }
    }

    /// Heads of the received requests.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }

    /// Waits until all connections are closed.
    pub async fn left(&self) {
        let gone = async {
            while self.open.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the connection ends with its request");
    }
}

async fn answer(mut stream: TcpStream, script: &Script, heads: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    heads.lock().push(String::from_utf8_lossy(&head).into_owned());
    stream.write_all(&script.first).await?;
    while !script.again.is_empty() {
        stream.write_all(&script.again).await?;
        tokio::time::sleep(script.pause).await;
    }
    stream.shutdown().await
}
