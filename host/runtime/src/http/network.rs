//! Name resolution and connections of HTTP clients, replaceable in tests.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Network of a connector, which resolves once per connection and connects to addresses only.
#[async_trait]
pub trait Network: Debug + Send + Sync {
    /// Addresses of a name, in the order in which they are tried.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address.
    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream>;
}

/// Concurrent lookups of one provider.
const LOOKUPS: usize = 8;

/// Resolver and sockets of the system.
#[derive(Debug)]
pub(super) struct System {
    lookups: Arc<Semaphore>,
}

impl Default for System {
    fn default() -> Self {
        System { lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

#[async_trait]
impl Network for System {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let host = host.to_owned();
        bounded(&self.lookups, move || {
            (host.as_str(), 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
        })
        .await
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(to).await
    }
}

/// Runs a lookup on a blocking thread. It counts until it ends, even if nobody waits for it: otherwise a guest with
/// short timeouts and unresponsive names would occupy all such threads of the host.
async fn bounded<T: Send + 'static>(
    places: &Arc<Semaphore>,
    lookup: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let task = tokio::task::spawn_blocking(move || {
        let _place = place;
        lookup()
    });
    task.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn lookups_that_nobody_waits_for_any_more_keep_their_places() {
        let places = Arc::new(Semaphore::new(2));
        let running = Arc::new(AtomicUsize::new(0));
        let (answer, answers) = mpsc::channel::<()>();
        let answers = Arc::new(parking_lot::Mutex::new(answers));
        for _ in 0..20 {
            let (running, answers) = (running.clone(), answers.clone());
            let lookup = bounded(&places, move || {
                running.fetch_add(1, Ordering::SeqCst);
                let _ = answers.lock().recv();
                Ok(())
            });
            // Given up as soon as it has begun, or waits for its place.
            futures::pin_mut!(lookup);
            assert!(futures::poll!(lookup.as_mut()).is_pending());
        }
        assert_eq!(places.available_permits(), 0);
        drop(answer);
        let both = places.acquire_many(2).await.unwrap();
        assert_eq!(running.load(Ordering::SeqCst), 2, "the others were given up while they waited");
        drop(both);
        assert_eq!(bounded(&places, || Ok(7)).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let addresses = System::default().resolve("localhost").await.unwrap();
        assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
    }
}
