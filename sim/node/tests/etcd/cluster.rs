//! What the suite needs of a cluster, and the certificates of one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use capwasm_etcd::{Client, ConnectError, Credentials};
use capwasm_pki::{Algorithm, Leaf, Pair};
use capwasm_sim_node::kubeadm::pki::Authority;
use tokio::net::TcpStream;

/// A cluster of members, by name.
#[async_trait]
pub trait Cluster: Sync {
    fn address(&self, name: &str) -> SocketAddr;
    fn keys(&self) -> &Keys;
    async fn kill(&self, name: &str);
}

/// An authority, and what it signs.
pub struct Keys(pub Authority);

impl Keys {
    pub fn new() -> Self {
        Self(Authority::generate("etcd-ca", Algorithm::EcdsaP256).unwrap())
    }

    /// As kubeadm makes a member's certificate.
    pub fn member(&self, name: &str, address: &str) -> Pair {
        let names = vec![name.to_owned(), "localhost".to_owned(), address.to_owned()];
        self.0.issue(&Leaf::peer(name, names), Algorithm::EcdsaP256).unwrap()
    }

    pub fn client(&self) -> Credentials {
        self.trusting(&self.0.certificate)
    }

    /// A client of this authority that trusts another one.
    pub fn trusting(&self, authority: &str) -> Credentials {
        let pair = self.0.issue(&Leaf::client("capwasm", &[]), Algorithm::EcdsaP256).unwrap();
        Credentials::new(authority, &pair.certificate, &pair.key).unwrap()
    }
}

pub async fn connect(cluster: &dyn Cluster, name: &str) -> Option<Client> {
    let stream = TcpStream::connect(cluster.address(name)).await.ok()?;
    Client::connect(stream, name, &cluster.keys().client()).await.ok()
}

pub async fn handshake(address: SocketAddr, name: &str, credentials: &Credentials) -> Result<Client, ConnectError> {
    Client::connect(TcpStream::connect(address).await.unwrap(), name, credentials).await
}

/// The member, which is there.
pub async fn member(cluster: &dyn Cluster, name: &str) -> Client {
    connect(cluster, name).await.unwrap_or_else(|| panic!("{name} answers"))
}

/// Waits until `probe` has something to say.
pub async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
