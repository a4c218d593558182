//! Simulated members.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use capwasm_sim_node::etcd::{CLIENT_PORT, Etcd, MemberState, Running};
use tempfile::TempDir;

use crate::cluster::{Cluster, Keys};

const KEYSPACE: &str = "cluster/test";

pub struct Simulated {
    etcd: Arc<Etcd>,
    keys: Keys,
    addresses: BTreeMap<String, IpAddr>,
    directory: TempDir,
}

impl Simulated {
    pub async fn start(names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let etcd = Etcd::open(&directory.path().join("etcd")).unwrap();
        let (second, third) = (rand::random_range(64..=254), rand::random());
        let address = |number: usize| IpAddr::V4(Ipv4Addr::new(127, second, third, u8::try_from(number + 1).unwrap()));
        let addresses = names.iter().enumerate().map(|(number, name)| ((*name).to_owned(), address(number))).collect();
        let cluster = Self { etcd, keys: Keys::new(), addresses, directory };
        for (number, name) in names.iter().enumerate() {
            let url = format!("https://{}:2380", cluster.addresses[*name]);
            if number == 0 {
                cluster.etcd.initialize(KEYSPACE, name, &url).unwrap();
            } else {
                cluster.etcd.add(KEYSPACE, name, &url).unwrap();
            }
            cluster.run(&cluster.etcd, name).await.unwrap();
        }
        cluster
    }

    async fn run(&self, etcd: &Arc<Etcd>, name: &str) -> Result<(), String> {
        let address = self.addresses[name];
        let pair = self.keys.member(name, &address.to_string());
        let running = Running {
            keyspace: KEYSPACE.to_owned(),
            name: name.to_owned(),
            address,
            certificate: pair.certificate,
            key: pair.key,
            authority: self.keys.0.certificate.clone(),
        };
        etcd.start(running).await
    }
}

#[async_trait]
impl Cluster for Simulated {
    fn address(&self, name: &str) -> SocketAddr {
        SocketAddr::new(self.addresses[name], CLIENT_PORT)
    }

    fn keys(&self) -> &Keys {
        &self.keys
    }

    async fn kill(&self, name: &str) {
        self.etcd.stop(KEYSPACE, name).await;
    }
}

#[tokio::test]
async fn members_outlive_the_program_and_their_processes_do_not() {
    let cluster = Simulated::start(&["a", "b"]).await;
    let (a, url) = ("a", "https://10.0.0.9:2380");
    let id = cluster.etcd.initialize(KEYSPACE, a, url).unwrap();
    assert!(cluster.etcd.has_quorum(KEYSPACE));
    let again = Etcd::open(&cluster.directory.path().join("etcd")).unwrap();
    assert_eq!(again.state(KEYSPACE, a), MemberState::Stopped);
    assert!(!again.has_quorum(KEYSPACE) && again.has_quorum("cluster/elsewhere"));
    assert_eq!(again.initialize(KEYSPACE, a, url), Ok(id));
    assert_eq!(again.members(KEYSPACE).len(), 2);
    again.add(KEYSPACE, "c", url).expect_err("nobody answers");
}

#[tokio::test]
async fn processes_start_only_of_members_that_have_their_data() {
    let cluster = Simulated::start(&["a", "b", "c"]).await;
    let etcd = &cluster.etcd;
    let mut changes = etcd.changes();
    changes.mark_unchanged();
    etcd.stop(KEYSPACE, "c").await;
    assert!(changes.has_changed().unwrap());
    assert_eq!(etcd.state(KEYSPACE, "c"), MemberState::Stopped);
    cluster.run(etcd, "c").await.unwrap();
    assert_eq!(etcd.state(KEYSPACE, "c"), MemberState::Running);
    etcd.lose_data(KEYSPACE, "c");
    assert_eq!(etcd.state(KEYSPACE, "c"), MemberState::Lost);
    cluster.run(etcd, "c").await.expect_err("it has nothing to start with");
    etcd.remove(KEYSPACE, "c").unwrap();
    etcd.remove(KEYSPACE, "c").unwrap();
    assert_eq!(etcd.state(KEYSPACE, "c"), MemberState::Removed);
    cluster.run(etcd, "c").await.expect_err("it was taken out");
    etcd.add(KEYSPACE, "c", "https://10.0.0.3:2380").unwrap();
    cluster.run(etcd, "c").await.unwrap();
    assert_eq!(etcd.state(KEYSPACE, "c"), MemberState::Running);
    assert_eq!(etcd.state(KEYSPACE, "d"), MemberState::None);
    // Never added, whoever answers: two of three are down, and nobody votes.
    etcd.stop(KEYSPACE, "b").await;
    etcd.stop(KEYSPACE, "c").await;
    assert!(!etcd.has_quorum(KEYSPACE));
    for name in ["b", "c", "d"] {
        etcd.withdraw(KEYSPACE, name);
        assert_eq!(etcd.state(KEYSPACE, name), MemberState::None);
    }
    assert!(etcd.has_quorum(KEYSPACE));
    etcd.add(KEYSPACE, "c", "https://10.0.0.3:2380").unwrap();
    etcd.forget(KEYSPACE);
    assert_eq!(etcd.state(KEYSPACE, "a"), MemberState::None);
}
