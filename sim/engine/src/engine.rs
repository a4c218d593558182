//! The simulated engine: containers, execs, images and networks as a Docker Engine has them, durable in a journal.
//!
//! An exec's file changes and its result become durable together when it ends. So an engine that was killed meanwhile comes
//! back with the container as it was before the exec, and runs it again: to the outside it ran once.

mod containers;
mod documents;
mod execs;
mod http;
mod images;
mod journal;
mod networks;
mod node;
mod process;
mod record;
mod volumes;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::heartbeat::Heartbeats;
use capwasm_sim_node::files::{Entry, Tree};
use capwasm_sim_node::workload::Workloads;
use capwasm_sim_service::address::Addresses;
use capwasm_sim_service::faults::Faults;
use containers::Container;
use execs::Exec;
pub(crate) use http::serve;
pub use journal::JournalError;
use journal::{Change, Journal};
use record::{ContainerRecord, ExecRecord, ImageRecord, NetworkRecord, VolumeRecord};

/// What the engine calls itself, so that nobody takes it for a real one.
pub const NAME: &str = "capwasm simulated engine";
/// The newest API version that it speaks.
pub const API_VERSION: &str = "1.41";

/// A request that was not done: status code and message as the Docker Engine gives them.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// HTTP status code; 304 means that nothing was to be done.
    pub status: u16,
    /// Message for the user.
    pub message: String,
}

impl Refused {
    fn new(status: u16, message: impl Into<String>) -> Refused {
        Refused { status, message: message.into() }
    }

    fn internal(message: impl std::fmt::Display) -> Refused {
        Refused::new(500, message.to_string())
    }
}

/// Why an engine cannot start on its data.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's database cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An entry that this version did not write.
    #[error("the engine's database holds an unreadable entry {0:?}")]
    Corrupt(String),
    /// Another simulated engine has this range of loopback addresses.
    #[error("the address range 127.{0}.0.0/16 is used by another simulated engine")]
    RangeInUse(u8, #[source] std::io::Error),
    /// No range of loopback addresses can be claimed.
    #[error("unable to claim a range of loopback addresses")]
    NoRange(#[source] std::io::Error),
}

struct State {
    containers: HashMap<String, Arc<Container>>,
    names: HashMap<String, String>,
    execs: HashMap<String, Arc<Exec>>,
    networks: BTreeMap<String, NetworkRecord>,
    images: BTreeMap<String, ImageRecord>,
    volumes: BTreeMap<String, VolumeRecord>,
    addresses: Addresses,
}

/// All containers, images, networks and volumes, and what runs in them.
pub struct Engine {
    id: String,
    state: Mutex<State>,
    journal: Journal,
    workloads: Arc<Workloads>,
    heartbeats: Arc<Heartbeats>,
    /// What goes wrong on request.
    faults: Faults,
    /// Cancelled when the engine ends: execs are broken off without a result.
    quiescing: CancellationToken,
    /// Requests that are being done.
    requests: TaskTracker,
}

/// Everything read back from disk.
#[derive(Default)]
struct Recovered {
    id: Option<String>,
    range: Option<u8>,
    containers: Vec<ContainerRecord>,
    trees: HashMap<String, Tree>,
    execs: Vec<ExecRecord>,
    networks: BTreeMap<String, NetworkRecord>,
    images: BTreeMap<String, ImageRecord>,
    volumes: BTreeMap<String, VolumeRecord>,
}

impl Recovered {
    fn read(entries: Vec<(String, Vec<u8>)>) -> Result<Recovered, EngineError> {
        let mut found = Recovered::default();
        for (key, value) in entries {
            let corrupt = || EngineError::Corrupt(key.clone());
            match key.split_once('/') {
                Some(("meta", "id")) => found.id = Some(String::from_utf8(value).map_err(|_| corrupt())?),
                Some(("meta", "range")) => found.range = Some(*value.first().ok_or_else(corrupt)?),
                Some(("container", _)) => found.containers.push(serde_json::from_slice(&value).map_err(|_| corrupt())?),
                Some(("exec", _)) => found.execs.push(serde_json::from_slice(&value).map_err(|_| corrupt())?),
                Some(("network", name)) => {
                    found.networks.insert(name.to_owned(), serde_json::from_slice(&value).map_err(|_| corrupt())?);
                }
                Some(("image", name)) => {
                    found.images.insert(name.to_owned(), serde_json::from_slice(&value).map_err(|_| corrupt())?);
                }
                Some(("volume", name)) => {
                    found.volumes.insert(name.to_owned(), serde_json::from_slice(&value).map_err(|_| corrupt())?);
                }
                Some(("file", rest)) => {
                    let (container, _) = rest.split_once('/').ok_or_else(corrupt)?;
                    let entry = Entry::decode(&value).ok_or_else(corrupt)?;
                    found.trees.entry(container.to_owned()).or_default().restore(&rest[container.len()..], entry);
                }
                _ => return Err(corrupt()),
            }
        }
        Ok(found)
    }
}

impl Engine {
    /// Opens the engine's data; nothing runs yet.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub async fn open(
        path: &Path,
        workloads: Arc<Workloads>,
        heartbeats: Arc<Heartbeats>,
        faults: Faults,
    ) -> Result<Arc<Engine>, EngineError> {
        let (journal, entries) = Journal::open(path)?;
        let mut found = Recovered::read(entries)?;
        let mut addresses = match found.range {
            Some(range) => Addresses::claim(Some(range)).map_err(|error| EngineError::RangeInUse(range, error))?,
            None => Addresses::claim(None).map_err(EngineError::NoRange)?,
        };
        let id = found.id.take().unwrap_or_else(random_id);
        let mut changes = vec![
            Change::Put("meta/id".into(), id.clone().into()),
            Change::Put("meta/range".into(), vec![addresses.range()]),
        ];
        for name in networks::PREDEFINED {
            if !found.networks.contains_key(name) {
                let network = NetworkRecord::new(name, Value::Null);
                changes.push(network.change());
                found.networks.insert(name.to_owned(), network);
            }
        }
        journal.commit(changes).await.map_err(JournalError::Database)?;
        let (mut containers, mut names) = (HashMap::new(), HashMap::new());
        for record in found.containers {
            addresses.occupy(record.address);
            names.insert(record.name.clone(), record.id.clone());
            let tree = found.trees.remove(&record.id).unwrap_or_default();
            containers.insert(record.id.clone(), Container::new(record, tree));
        }
        found.execs.sort_by_key(|exec| exec.created);
        for exec in &found.execs {
            if let Some(container) = containers.get(&exec.container) {
                let container: &Arc<Container> = container;
                container.execs.lock().push_back(exec.id.clone());
            }
        }
        let execs = found.execs.into_iter().map(|record| (record.id.clone(), Exec::new(record))).collect();
        let (networks, images, volumes) = (found.networks, found.images, found.volumes);
        let state = Mutex::new(State { containers, names, execs, networks, images, volumes, addresses });
        let (quiescing, requests) = (CancellationToken::new(), TaskTracker::new());
        Ok(Arc::new(Engine { id, state, journal, workloads, heartbeats, faults, quiescing, requests }))
    }

    /// Starts what was running when the engine ended, and runs interrupted execs again.
    pub async fn resume(self: &Arc<Self>) {
        let containers: Vec<Arc<Container>> = self.state.lock().containers.values().cloned().collect();
        self.withdraw_halfway_members(&containers);
        let running: Vec<_> = containers.into_iter().filter(|container| container.record.lock().running).collect();
        futures::future::join_all(running.iter().map(|container| self.revive(container))).await;
        let interrupted: Vec<Arc<Exec>> =
            self.state.lock().execs.values().filter(|exec| exec.record.lock().running).cloned().collect();
        for exec in interrupted {
            self.run_again(&exec).await;
        }
    }
}

/// An id as Docker makes them: 64 hexadecimal digits.
fn random_id() -> String {
    hex::encode(rand::random::<[u8; 32]>())
}
