//! Processes of real etcd on loopback.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::Stdio;

use async_trait::async_trait;
use capwasm_test_support::skip::skip;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::cluster::{Cluster, Keys, connect, until};

/// The program; otherwise `test` is told to be skipped.
pub fn program(test: &str) -> Option<OsString> {
    let program = std::env::var_os("CAPWASM_ETCD").unwrap_or_else(|| "etcd".into());
    match std::process::Command::new(&program).arg("--version").output() {
        Ok(_) => Some(program),
        Err(error) => {
            let name = program.display();
            skip(
                test,
                &format!("{name} cannot be started (CAPWASM_ETCD names etcd, of Debian's etcd-server): {error}"),
            );
            None
        }
    }
}

pub struct Real {
    keys: Keys,
    addresses: BTreeMap<String, SocketAddr>,
    processes: Mutex<BTreeMap<String, Child>>,
    _directory: TempDir,
}

fn free() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Real {
    pub async fn start(program: &OsString, names: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keys = Keys::new();
        let ports: Vec<(&str, SocketAddr, SocketAddr)> = names.iter().map(|name| (*name, free(), free())).collect();
        let peer = |(name, _, peer): &(&str, SocketAddr, SocketAddr)| format!("{name}=https://{peer}");
        let all = ports.iter().map(peer).collect::<Vec<_>>().join(",");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let authority = write("ca.crt", &keys.0.certificate);
        let mut processes = BTreeMap::new();
        for (name, client, peer) in &ports {
            let pair = keys.member(name, "127.0.0.1");
            let certificate = write(&format!("{name}.crt"), &pair.certificate);
            let key = write(&format!("{name}.key"), &pair.key);
            let data = directory.path().join(name).display().to_string();
            let (client, peer) = (format!("https://{client}"), format!("https://{peer}"));
            let process = Command::new(program)
                .args(["--name", name, "--data-dir", &data])
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &all, "--initial-cluster-state", "new"])
                .args(["--cert-file", &certificate, "--key-file", &key, "--trusted-ca-file", &authority])
                .args(["--peer-cert-file", &certificate, "--peer-key-file", &key])
                .args(["--peer-trusted-ca-file", &authority, "--client-cert-auth", "--peer-client-cert-auth"])
                .args(["--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "error"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            processes.insert((*name).to_owned(), process);
        }
        let addresses = ports.iter().map(|(name, client, _)| ((*name).to_owned(), *client)).collect();
        let cluster = Self { keys, addresses, processes: Mutex::new(processes), _directory: directory };
        for name in names {
            until("etcd has started", async || {
                // Changes are refused until members have told each other who they are.
                let list = connect(&cluster, name).await?.member_list(false).await.ok()?;
                list.members.iter().all(|member| !member.name.is_empty()).then_some(())
            })
            .await;
        }
        cluster
    }
}

#[async_trait]
impl Cluster for Real {
    fn address(&self, name: &str) -> SocketAddr {
        self.addresses[name]
    }

    fn keys(&self) -> &Keys {
        &self.keys
    }

    async fn kill(&self, name: &str) {
        let process = self.processes.lock().remove(name);
        process.expect("it runs").kill().await.unwrap();
    }
}
