//! Simulated etcd: one member for each control-plane node, as any etcd client sees it.
//!
//! Members answer etcd's own gRPC API with mutual TLS, on port 2379 of their node's address. Data is not theirs: all that
//! there is to a simulated cluster's state is in its API server. What they have is membership, one [`Membership`] for each
//! workload cluster, with etcd's rules about who may be added, promoted, removed or made leader, and with what a majority
//! decides: without one nothing can be changed, nobody leads, and [`Etcd::has_quorum`] says so to the API server.
//!
//! A process ([`Etcd::start`], [`Etcd::stop`]) is one thing and a member another: a killed node's member stays until it is
//! removed. Members outlive this program (one small file for each cluster); processes do not.

mod member;
mod membership;
mod records;

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use capwasm_etcd::server;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::member::SimulatedMember;
use self::membership::{Membership, Refusal};
use self::records::Records;

/// Port at which members serve clients.
pub const CLIENT_PORT: u16 = 2379;

/// The etcd clusters of all workload clusters, by the keyspace of their API servers.
pub struct Etcd {
    records: Records,
    /// Asked for every request of every API server: what is done under the lock is small.
    clusters: Mutex<HashMap<String, Cluster>>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct Cluster {
    membership: Membership,
    /// Members that answer, by name.
    processes: HashMap<String, Process>,
}

struct Process {
    id: u64,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Cluster {
    fn alive(&self) -> BTreeSet<u64> {
        self.processes.values().map(|process| process.id).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What the static pod's process is started with.
pub struct Running {
    /// Name of the cluster to which the member belongs.
    pub keyspace: String,
    /// The node's name, which is the member's.
    pub name: String,
    /// The node's address.
    pub address: IpAddr,
    /// The serving certificate (PEM): kubeadm's `etcd/server.crt`.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: String,
    /// Who signs clients' certificates: `etcd/ca.crt`.
    pub authority: String,
}

/// State of a node's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It is a member, and its process answers.
    Running,
    /// It is a member without a process.
    Stopped,
    /// It was taken out, and is not added again: its process ends as soon as it is started.
    Removed,
    /// It is a member without data: it cannot be started until it was taken out and added anew.
    Lost,
    /// It was never a member.
    None,
}

impl Etcd {
    /// The clusters that a directory holds; it is made when it is not there yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(directory: &Path) -> Result<Arc<Self>, String> {
        let (records, known) = Records::open(directory)?;
        let cluster = |membership| Cluster { membership, processes: HashMap::new() };
        let clusters = known.into_iter().map(|(keyspace, membership)| (keyspace, cluster(membership))).collect();
        Ok(Arc::new(Self { records, clusters: Mutex::new(clusters), changed: watch::Sender::new(0) }))
    }

    /// `kubeadm init`: the first member, with a vote. The id of one that is there already is kept.
    ///
    /// # Errors
    /// When the cluster has other members, or cannot be written down.
    pub fn initialize(&self, keyspace: &str, name: &str, peer_url: &str) -> Result<u64, String> {
        let mut clusters = self.clusters.lock();
        let mut new = Cluster::default();
        let cluster = clusters.get_mut(keyspace).unwrap_or(&mut new);
        let id = self.change(keyspace, cluster, |members, _| members.initialize(name, peer_url));
        let id = id.map_err(|refusal| refusal.to_string())?;
        clusters.entry(keyspace.to_owned()).or_insert(new);
        Ok(id)
    }

    /// `kubeadm join --control-plane`: a learner, which gets its vote when it starts. The id of a member that is there
    /// already is kept.
    ///
    /// # Errors
    /// When there is no majority to agree, a learner too many, or no cluster.
    pub fn add(&self, keyspace: &str, name: &str, peer_url: &str) -> Result<u64, String> {
        self.on(keyspace, |cluster, alive| cluster.join(name, peer_url, alive)).map_err(|refusal| refusal.to_string())
    }

    /// `kubeadm reset`: takes a member out; one that is not there is a success.
    ///
    /// # Errors
    /// When there is no majority to agree.
    pub fn remove(&self, keyspace: &str, name: &str) -> Result<(), String> {
        let removed = self.on(keyspace, |cluster, alive| match cluster.id_of(name) {
            Some(id) => cluster.remove(id, alive),
            None => Ok(()),
        });
        match removed {
            Ok(()) | Err(Refusal::NoCluster) => Ok(()),
            Err(refusal) => Err(refusal.to_string()),
        }
    }

    /// Takes a member out as if it had never been added: nobody votes on it, and its process may come back as a new member.
    /// For those whose node was killed before it knew of its member; one that is not there is left alone.
    pub fn withdraw(&self, keyspace: &str, name: &str) {
        if self.see(keyspace, |cluster, _| cluster.id_of(name)).flatten().is_none() {
            return;
        }
        drop(self.end(keyspace, name));
        let left = self.on(keyspace, |cluster, _| Ok(cluster.withdraw(name)));
        match left {
            Ok(0) => self.forget(keyspace),
            Ok(_) => {}
            Err(refusal) => tracing::warn!(name, %refusal, "a simulated etcd member was not withdrawn"),
        }
    }

    /// Forgets a cluster whose last node is gone.
    pub fn forget(&self, keyspace: &str) {
        let Some(gone) = self.clusters.lock().remove(keyspace) else { return };
        drop(gone);
        if let Err(error) = self.records.remove(keyspace) {
            tracing::warn!(error, "the etcd members of a cluster that is gone are still written down");
        }
        self.tell();
    }

    /// Starts a member's process: it answers on its address, and counts for the majority. A learner gets its vote.
    ///
    /// # Errors
    /// When it is no member (any more), has lost its data, or its port or certificate cannot be used.
    pub async fn start(self: &Arc<Self>, member: Running) -> Result<(), String> {
        let Running { keyspace, name, address, certificate, key, authority } = member;
        match self.state(&keyspace, &name) {
            MemberState::Running => return Ok(()),
            MemberState::Stopped => {}
            MemberState::Removed => return Err("the member has been permanently removed from the cluster".to_owned()),
            MemberState::Lost => return Err("the member has lost its data".to_owned()),
            MemberState::None => return Err(format!("{name} is no member of the cluster")),
        }
        let tls = server::tls(&authority, &certificate, &key).map_err(|error| error.to_string())?;
        let listener = listen_on(address).await;
        let listener = listener.map_err(|error| format!("unable to listen on {address}:{CLIENT_PORT}: {error}"))?;
        let client_url = match address {
            IpAddr::V4(address) => format!("https://{address}:{CLIENT_PORT}"),
            IpAddr::V6(address) => format!("https://[{address}]:{CLIENT_PORT}"),
        };
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let id = self
            .on(&keyspace, |cluster, _| cluster.started(&name, client_url).ok_or(Refusal::NotFound))
            .map_err(|refusal| refusal.to_string())?;
        // Of two starts at once the second does not come here: the port is taken.
        let process = Process { id, stop: stop.clone(), tasks: tasks.clone() };
        match self.clusters.lock().get_mut(&keyspace) {
            Some(cluster) => drop(cluster.processes.insert(name, process)),
            None => return Err(Refusal::NoCluster.to_string()),
        }
        self.tell();
        // It is up; that it has its vote, and who leads, may be decided later.
        let promoted = self.on(&keyspace, Membership::promote_started);
        if let Err(refusal) = promoted {
            tracing::debug!(%refusal, "a simulated etcd member stays a learner");
        }
        let answers = Arc::new(SimulatedMember::new(Arc::downgrade(self), keyspace, id));
        tasks.spawn(listen(listener, tls, answers, stop, tasks.clone()));
        Ok(())
    }

    /// The process ends; the member stays. One that has ended already is left alone.
    pub async fn stop(&self, keyspace: &str, name: &str) {
        let Some(process) = self.end(keyspace, name) else { return };
        process.tasks.close();
        // The port is free again after this.
        if tokio::time::timeout(Duration::from_secs(5), process.tasks.wait()).await.is_err() {
            tracing::warn!(name, "connections to a simulated etcd member did not end");
        }
    }

    /// The member's data are gone: its process ends, and does not start again until it was removed and added anew.
    pub fn lose_data(&self, keyspace: &str, name: &str) {
        drop(self.end(keyspace, name));
        let lost = self.on(keyspace, |members, _| {
            members.lose(name);
            Ok(())
        });
        if let Err(refusal) = lost {
            tracing::debug!(%refusal, "there is no member that could lose its data");
        }
    }

    /// Ends a process, and has another one lead if it did.
    fn end(&self, keyspace: &str, name: &str) -> Option<Process> {
        let mut clusters = self.clusters.lock();
        let cluster = clusters.get_mut(keyspace)?;
        let process = cluster.processes.remove(name)?;
        process.stop.cancel();
        if let Err(refusal) = self.change(keyspace, cluster, |_, _| Ok(())) {
            tracing::debug!(%refusal, "nobody was elected in place of a simulated etcd member");
        }
        drop(clusters);
        self.tell();
        Some(process)
    }

    /// State of a node's member.
    pub fn state(&self, keyspace: &str, name: &str) -> MemberState {
        let clusters = self.clusters.lock();
        let Some(Cluster { membership, processes }) = clusters.get(keyspace) else { return MemberState::None };
        match membership.id_of(name) {
            None if membership.was_removed(name) => MemberState::Removed,
            None => MemberState::None,
            Some(_) if membership.has_lost(name) => MemberState::Lost,
            Some(_) if processes.contains_key(name) => MemberState::Running,
            Some(_) => MemberState::Stopped,
        }
    }

    /// The members' names and peer URLs, for a manifest's `--initial-cluster`.
    pub fn members(&self, keyspace: &str) -> Vec<(String, String)> {
        self.see(keyspace, |cluster, _| cluster.peers()).unwrap_or_default()
    }

    /// Whether more than half of the voting members answer. A cluster whose etcd is not simulated here has its quorum
    /// elsewhere.
    pub fn has_quorum(&self, keyspace: &str) -> bool {
        self.see(keyspace, Membership::has_quorum).unwrap_or(true)
    }

    /// Counts up whenever an answer of [`Etcd::state`] or [`Etcd::has_quorum`] may be another one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Looks at a cluster, with the ids of the members that answer.
    fn see<T>(&self, keyspace: &str, look: impl FnOnce(&Membership, &BTreeSet<u64>) -> T) -> Option<T> {
        let clusters = self.clusters.lock();
        clusters.get(keyspace).map(|cluster| look(&cluster.membership, &cluster.alive()))
    }

    /// Changes a cluster that there is.
    fn on<T>(
        &self,
        keyspace: &str,
        act: impl FnOnce(&mut Membership, &BTreeSet<u64>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut clusters = self.clusters.lock();
        self.change(keyspace, clusters.get_mut(keyspace).ok_or(Refusal::NoCluster)?, act)
    }

    /// Changes a cluster: on a copy, so that what is refused or cannot be written down leaves everything as it was.
    fn change<T>(
        &self,
        keyspace: &str,
        cluster: &mut Cluster,
        act: impl FnOnce(&mut Membership, &BTreeSet<u64>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let mut members = cluster.membership.clone();
        let alive = cluster.alive();
        let done = act(&mut members, &alive)?;
        members.elect(&alive.into_iter().filter(|id| members.contains(*id)).collect());
        if members != cluster.membership {
            self.records.write(keyspace, &members).map_err(Refusal::Disk)?;
            // What was taken out ends, after the answers that are under way.
            cluster.processes.retain(|_, process| members.contains(process.id));
            cluster.membership = members;
            self.tell();
        }
        Ok(done)
    }
}

/// A process that has just ended may still hold the port for a moment.
async fn listen_on(address: IpAddr) -> std::io::Result<TcpListener> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        match TcpListener::bind((address, CLIENT_PORT)).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            bound => return bound,
        }
    }
}

/// Takes connections until the process ends.
async fn listen(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    answers: Arc<SimulatedMember>,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are small and must not wait for more.
                    let _ = stream.set_nodelay(true);
                    stream
                }
                Err(error) => {
                    tracing::warn!(%error, "unable to accept a connection to simulated etcd");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (tls, answers, stop) = (tls.clone(), answers.clone(), stop.clone());
        tasks.spawn(async move {
            if let Err(error) = server::serve(stream, tls, answers, stop.cancelled_owned()).await {
                tracing::debug!(%error, "a connection to simulated etcd ended");
            }
        });
    }
}
