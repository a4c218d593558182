//! A simulated container engine.
//!
//! [`run`] serves the Docker Engine API on a unix socket. Its containers are simulated nodes ([`capwasm_sim_node`]) and load
//! balancers ([`capwasm_sim_service::balancer`]) on loopback addresses: a node interprets its bootstrap data, a load balancer
//! really proxies TCP.
//!
//! The engine says in `/version` and `/info` that it is simulated, and so does every node: label
//! `capwasm.dev/simulated=true`, OS image `capwasm simulated node`.
//!
//! Everything is durable in the data directory: killed and started again, the engine comes back with its containers.

mod archive;
mod engine;
mod heartbeat;
pub mod testing;

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use capwasm_sim_node::etcd::Etcd;
use capwasm_sim_node::workload::{self, Workloads};
use capwasm_sim_service::faults::Faults;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use capwasm_sim_node::NODE_GRACE;
pub use engine::{EngineError, JournalError, NAME};

use engine::Engine;
use heartbeat::Heartbeats;

/// Where a simulated engine listens and what it keeps.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Unix socket of the Docker Engine API; created with mode 0600.
    pub socket: PathBuf,
    /// Directory of everything durable: containers, files, images, workload clusters. Created with mode 0700 when missing.
    pub data_dir: PathBuf,
    /// Bytes of page cache for the database of all workload clusters.
    pub cache_bytes: usize,
    /// How long a killed node's kubelet may be silent until its Node becomes Unknown. Kubernetes waits 50 seconds; the default
    /// here is [`NODE_GRACE`].
    pub node_grace: Duration,
    /// Failures on request; a clone that is kept injects them from outside.
    pub faults: Faults,
}

/// How often an engine looks whether its data directory is still there.
const LOOK: Duration = Duration::from_secs(1);

/// How long a start waits for another engine to be gone: one that was killed holds its files a moment longer than it is seen to run.
const LEAVING: Duration = Duration::from_secs(3);

impl SimOptions {
    /// Options with the default cache.
    pub fn new(socket: impl Into<PathBuf>, data_dir: impl Into<PathBuf>) -> SimOptions {
        SimOptions {
            socket: socket.into(),
            data_dir: data_dir.into(),
            cache_bytes: 4 << 20,
            node_grace: NODE_GRACE,
            faults: Faults::default(),
        }
    }
}

/// Why an engine cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The data directory cannot be made.
    #[error("unable to create {0}")]
    Directory(PathBuf, #[source] io::Error),
    /// Another engine has the data directory open.
    #[error("{0} is in use by another simulated engine")]
    InUse(PathBuf),
    /// The engine's own data cannot be opened.
    #[error("unable to open the engine's data")]
    Engine(#[source] EngineError),
    /// The workload clusters' data cannot be opened.
    #[error("unable to open the workload clusters' data: {0}")]
    Workloads(String),
    /// Somebody answers on the socket already.
    #[error("another engine answers on {0}")]
    SocketInUse(PathBuf),
    /// The socket cannot be created.
    #[error("unable to listen on {0}")]
    Listen(PathBuf, #[source] io::Error),
}

/// Serves the engine until `shutdown` is cancelled, or its data directory is gone: whoever removes that has no use for what is
/// simulated there any more. The socket answers as soon as all containers run again.
///
/// # Errors
/// See [`SimError`].
pub async fn run(options: SimOptions, shutdown: CancellationToken) -> Result<(), SimError> {
    // Both TLS back ends may be linked in; the first choice stays.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    raise_file_limit();
    // Keys of all clusters lie there.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&options.data_dir)
        .map_err(|error| SimError::Directory(options.data_dir.clone(), error))?;
    // First of all: the lock of this database guards the whole directory.
    let started = Instant::now();
    let engine_path = options.data_dir.join("engine.redb");
    while let Err(error) = check_unlocked(&engine_path, &options.data_dir) {
        if started.elapsed() > LEAVING {
            return Err(error);
        }
        tokio::time::sleep(LEAVING / 30).await;
    }
    let workload_path = options.data_dir.join("workload.redb");
    let workloads = Etcd::open(&options.data_dir.join("etcd"))
        .and_then(|etcd| Workloads::open(&workload_path, options.cache_bytes, etcd, options.node_grace))
        .map_err(SimError::Workloads)?;
    let heartbeats = Heartbeats::new();
    let engine = Engine::open(&engine_path, Arc::clone(&workloads), Arc::clone(&heartbeats), options.faults.clone());
    let engine = engine.await.map_err(|error| match error {
        EngineError::Journal(JournalError::InUse) => SimError::InUse(options.data_dir.clone()),
        error => SimError::Engine(error),
    })?;
    let listener = listen(&options.socket).await?;
    let shutdown = shutdown.child_token();
    engine.resume().await;
    let background = [
        tokio::spawn(end_without(options.data_dir.clone(), shutdown.clone())),
        tokio::spawn(heartbeats.run(shutdown.clone())),
        tokio::spawn(workload::run_controllers(workloads, shutdown.clone())),
        tokio::spawn(Arc::clone(&engine).review(shutdown.clone())),
    ];
    tracing::info!(socket = %options.socket.display(), "{NAME} is ready");
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (engine, stop) = (Arc::clone(&engine), shutdown.clone());
                connections.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = engine::serve(engine, stream) => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "unable to accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
    for task in background {
        if let Err(error) = task.await {
            tracing::warn!(%error, "what runs in the background ended badly");
        }
    }
    engine.quiesce().await;
    if let Err(error) = std::fs::remove_file(&options.socket) {
        tracing::debug!(%error, "unable to remove the socket");
    }
    Ok(())
}

/// Cancels `shutdown` when the directory is gone. Looked at now and then: the open files below keep it from being told.
async fn end_without(directory: PathBuf, shutdown: CancellationToken) {
    while tokio::fs::try_exists(&directory).await.unwrap_or(true) {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    tracing::warn!(directory = %directory.display(), "the data directory is gone, and so is the engine");
    shutdown.cancel();
}

/// Allows as many open files as the system does: every cluster has two listeners, and every client a connection or two.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "unable to raise the limit of open files");
    }
}

/// Says whether another process has the directory's database open, before anything else is touched.
fn check_unlocked(path: &Path, directory: &Path) -> Result<(), SimError> {
    if !path.exists() {
        return Ok(());
    }
    match redb::Database::open(path) {
        Err(redb::DatabaseError::DatabaseAlreadyOpen) => Err(SimError::InUse(directory.to_owned())),
        // What else is wrong with it is said when it is opened for use.
        _ => Ok(()),
    }
}

/// Listens on a unix socket that only its owner may use; a socket that nobody answers on is replaced.
async fn listen(path: &Path) -> Result<UnixListener, SimError> {
    let failed = |error| SimError::Listen(path.to_owned(), error);
    if path.exists() {
        if UnixStream::connect(path).await.is_ok() {
            return Err(SimError::SocketInUse(path.to_owned()));
        }
        std::fs::remove_file(path).map_err(failed)?;
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // Bound under another name and moved, so that it never is there with wider permissions.
    let hidden = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let listener = UnixListener::bind(&hidden).map_err(failed)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    std::fs::rename(&hidden, path).map_err(failed)?;
    Ok(listener)
}
