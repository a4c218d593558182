//! The load balancer: interprets an `haproxy.cfg` and proxies TCP, weighted round robin with fall-over to the next server when
//! one does not answer. A server of weight 0 or one that is disabled gets no new connections; open ones outlive a reload, as
//! with haproxy.

mod config;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub use config::{Configuration, Server};

/// Where an haproxy image keeps its configuration.
pub const CONFIGURATION: &str = "/usr/local/etc/haproxy/haproxy.cfg";
/// Bytes of buffer per direction: thousands of connections stay open and idle.
const BUFFER: usize = 4096;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a server that did not answer is asked last.
const DOWN: Duration = Duration::from_secs(2);

/// A TCP load balancer on one address, with a listener for each port of its configuration.
pub struct Balancer {
    address: IpAddr,
    ports: Mutex<HashMap<u16, Port>>,
}

struct Port {
    pool: Arc<Mutex<Arc<Pool>>>,
    stop: CancellationToken,
}

struct Pool {
    servers: Vec<Server>,
    down_until: Mutex<Vec<Option<Instant>>>,
    /// How much of its weight each server is owed.
    owed: Mutex<Vec<i64>>,
}

impl Pool {
    fn new(servers: Vec<Server>) -> Arc<Pool> {
        let count = servers.len();
        Arc::new(Pool { down_until: Mutex::new(vec![None; count]), owed: Mutex::new(vec![0; count]), servers })
    }

    /// Positions of servers in the order in which they are tried: the one that is owed most first, what is down and what is a
    /// backup last.
    fn order(&self) -> Vec<usize> {
        let now = Instant::now();
        let (down, mut owed) = (self.down_until.lock(), self.owed.lock());
        let class = |i: usize| (down[i].is_some_and(|until| until > now), self.servers[i].backup);
        let mut order: Vec<usize> = (0..self.servers.len()).filter(|&i| self.servers[i].weight > 0).collect();
        // Those that would do, among which the connection is given.
        let best = order.iter().map(|&i| class(i)).min();
        let mut total = 0;
        for &i in order.iter().filter(|&&i| Some(class(i)) == best) {
            let weight = i64::from(self.servers[i].weight);
            owed[i] += weight;
            total += weight;
        }
        order.sort_by_key(|&i| (class(i), std::cmp::Reverse(owed[i])));
        if let Some(&first) = order.first() {
            owed[first] -= total;
        }
        order
    }

    async fn connect(&self) -> Option<TcpStream> {
        for position in self.order() {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.servers[position].address)).await {
                Ok(Ok(stream)) => {
                    self.down_until.lock()[position] = None;
                    return Some(stream);
                }
                _ => self.down_until.lock()[position] = Some(Instant::now() + DOWN),
            }
        }
        None
    }
}

impl Balancer {
    /// Starts listening on `address`.
    ///
    /// # Errors
    /// When a port cannot be bound.
    pub async fn start(address: IpAddr, configuration: &Configuration) -> io::Result<Arc<Balancer>> {
        let balancer = Arc::new(Balancer { address, ports: Mutex::default() });
        balancer.reload(configuration).await?;
        Ok(balancer)
    }

    /// Takes a new configuration; listeners that stay are not interrupted.
    ///
    /// # Errors
    /// When a new port cannot be bound; everything stays as it was.
    pub async fn reload(&self, configuration: &Configuration) -> io::Result<()> {
        let mut opened = Vec::new();
        for (port, servers) in &configuration.ports {
            let pool = Pool::new(servers.clone());
            if let Some(open) = self.ports.lock().get(port) {
                *open.pool.lock() = pool;
                continue;
            }
            let listener = bind(SocketAddr::new(self.address, *port)).await?;
            opened.push((*port, listener, pool));
        }
        let mut ports = self.ports.lock();
        for (port, listener, pool) in opened {
            let entry = Port { pool: Arc::new(Mutex::new(pool)), stop: CancellationToken::new() };
            tokio::spawn(accept(listener, Arc::clone(&entry.pool), entry.stop.clone()));
            ports.insert(port, entry);
        }
        ports.retain(|port, entry| {
            let keep = configuration.ports.contains_key(port);
            if !keep {
                entry.stop.cancel();
            }
            keep
        });
        Ok(())
    }

    /// Closes listeners and connections.
    pub fn stop(&self) {
        for (_, port) in self.ports.lock().drain() {
            port.stop.cancel();
        }
    }
}

async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..20 {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(50)).await
            }
            other => return other,
        }
    }
    TcpListener::bind(address).await
}

async fn accept(listener: TcpListener, pool: Arc<Mutex<Arc<Pool>>>, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((client, _)) => {
                let pool = Arc::clone(&pool.lock());
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = forward(client, &pool) => {}
                    }
                });
            }
            // Out of file descriptors: the listener stays, so a pause is all that helps.
            Err(error) => {
                tracing::warn!(%error, "a load balancer cannot accept connections");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn forward(mut client: TcpStream, pool: &Pool) {
    let Some(mut server) = pool.connect().await else { return };
    for stream in [&client, &server] {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "unable to set TCP_NODELAY");
        }
    }
    // How a connection ends is its two ends' business.
    let _ = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn greeter(name: &'static str) -> (SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let token = stop.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = token.cancelled() => return,
                    accepted = listener.accept() => { accepted.unwrap().0.write_all(name.as_bytes()).await.unwrap(); }
                }
            }
        });
        (address, stop)
    }

    async fn ask(port: u16) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    fn configuration(port: u16, servers: &[SocketAddr]) -> Configuration {
        let servers: String = servers.iter().enumerate().map(|(i, s)| format!("  server s{i} {s} check\n")).collect();
        Configuration::parse(&format!("frontend f\n  bind *:{port}\n  default_backend b\nbackend b\n{servers}"))
            .unwrap()
    }

    #[test]
    fn weights_are_shares_and_none_is_none() {
        let server = |name: &str, weight: u32, backup: bool| Server {
            name: name.into(),
            address: String::new(),
            weight,
            backup,
        };
        let pool =
            Pool::new(vec![server("a", 2, false), server("b", 1, false), server("c", 0, false), server("d", 9, true)]);
        let first: Vec<usize> = (0..6).map(|_| pool.order()[0]).collect();
        assert_eq!(
            (0..4).map(|i| first.iter().filter(|&&f| f == i).count()).collect::<Vec<_>>(),
            [4, 2, 0, 0],
            "{first:?}"
        );
    }

    #[tokio::test]
    async fn connections_go_round_fall_over_and_follow_a_reload() {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let ((a, stop_a), (b, _), (c, _)) = (greeter("a").await, greeter("b").await, greeter("c").await);
        let balancer = Balancer::start("127.0.0.1".parse().unwrap(), &configuration(port, &[a, b])).await.unwrap();
        let mut seen = [ask(port).await, ask(port).await];
        seen.sort();
        assert_eq!(seen, ["a", "b"]);
        stop_a.cancel();
        while TcpStream::connect(a).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!([ask(port).await, ask(port).await], ["b", "b"]);
        balancer.reload(&configuration(port, &[c])).await.unwrap();
        assert_eq!(ask(port).await, "c");
    }
}
