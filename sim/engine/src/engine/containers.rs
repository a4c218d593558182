//! Containers: create, start, stop, kill, remove, and their files.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::journal::Change;
use super::process::Process;
use super::record::{ContainerRecord, Role};
use super::{Engine, Refused, random_id};
use crate::archive;
use capwasm_sim_node::files::{Entry, Files, MemoryFiles, Tree, normal, reason};
use capwasm_sim_node::kubeadm::paths;

/// Directories of a fresh node.
const NODE_DIRECTORIES: [&str; 14] = [
    "/bin",
    "/etc/kubernetes/manifests",
    "/etc/systemd",
    "/home",
    "/kind",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sys",
    "/tmp",
    "/usr/local/bin",
    "/var/lib/kubelet",
    "/var/log",
];

pub(super) struct Container {
    /// What of it is stored on disk.
    pub record: Mutex<ContainerRecord>,
    pub tree: Arc<Mutex<Tree>>,
    /// Process 1; none while it does not run.
    pub process: Mutex<Option<Arc<Process>>>,
    /// Held while it is started, stopped or removed.
    pub lifecycle: tokio::sync::Mutex<()>,
    /// Notified when it stops.
    pub stopped: Notify,
    /// Its execs while they run.
    pub tasks: TaskTracker,
    /// Ids of its execs, oldest first.
    pub execs: Mutex<VecDeque<String>>,
}

impl Container {
    /// A container that is not started.
    pub fn new(record: ContainerRecord, tree: Tree) -> Arc<Container> {
        Arc::new(Container {
            record: Mutex::new(record),
            tree: Arc::new(Mutex::new(tree)),
            process: Mutex::default(),
            lifecycle: tokio::sync::Mutex::default(),
            stopped: Notify::new(),
            tasks: TaskTracker::new(),
            execs: Mutex::default(),
        })
    }

    pub fn id(&self) -> String {
        self.record.lock().id.clone()
    }
}

/// Changes of a container's files for the journal.
pub(super) fn file_changes(container: &str, files: &MemoryFiles) -> Vec<Change> {
    let key = |path: &str| format!("file/{container}{path}");
    let change = |(path, entry): (Box<str>, Option<Entry>)| match entry {
        Some(entry) => Change::Put(key(&path), entry.encode()),
        None => Change::Remove(key(&path)),
    };
    files.take_changes().into_iter().map(change).collect()
}

impl Engine {
    /// The container of that name, id, or unique start of an id.
    pub(super) fn container(&self, name: &str) -> Result<Arc<Container>, Refused> {
        let state = self.state.lock();
        let plain = name.trim_start_matches('/');
        let id = state.names.get(plain).map_or(plain, String::as_str);
        if let Some(found) = state.containers.get(id) {
            return Ok(Arc::clone(found));
        }
        let mut matching = state.containers.iter().filter(|(id, _)| !plain.is_empty() && id.starts_with(plain));
        match (matching.next(), matching.next()) {
            (Some((_, found)), None) => Ok(Arc::clone(found)),
            _ => Err(Refused::new(404, format!("No such container: {name}"))),
        }
    }

    /// `POST /containers/create?name=`.
    pub(super) async fn create_container(&self, name: Option<&str>, mut request: Value) -> Result<Value, Refused> {
        let image = request["Image"].as_str().unwrap_or_default().to_owned();
        if image.is_empty() {
            return Err(Refused::new(400, "No command specified"));
        }
        let id = random_id();
        let name =
            name.map_or_else(|| format!("capwasm_{}", &id[..12]), |name| name.trim_start_matches('/').to_owned());
        let valid = name.len() > 1
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if !valid {
            return Err(Refused::new(
                400,
                format!("Invalid container name ({name}), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed"),
            ));
        }
        let (reference, found) = self.image(&image)?;
        let mut take = |field: &str| {
            request.as_object_mut().and_then(|fields| fields.remove(field)).filter(|value| !value.is_null())
        };
        let host_config = take("HostConfig").unwrap_or_else(|| json!({}));
        let networking = take("NetworkingConfig").unwrap_or_else(|| json!({}));
        let endpoint = networking["EndpointsConfig"].as_object().and_then(|endpoints| endpoints.keys().next().cloned());
        let network = self.network_name(
            &endpoint.unwrap_or_else(|| host_config["NetworkMode"].as_str().unwrap_or_default().to_owned()),
        )?;
        let record = {
            let mut state = self.state.lock();
            if let Some(other) = state.names.get(&name) {
                return Err(Refused::new(
                    409,
                    format!(
                        "Conflict. The container name \"/{name}\" is already in use by container \"{other}\". You have to remove (or rename) that container to be able to reuse that name."
                    ),
                ));
            }
            let address = state.addresses.take().ok_or_else(|| Refused::internal("no available IPv4 addresses"))?;
            state.names.insert(name.clone(), id.clone());
            ContainerRecord {
                id: id.clone(),
                name: name.clone(),
                image,
                image_id: found.id,
                role: reference.role(),
                version: reference.version(),
                config: request,
                host_config,
                network,
                endpoint_id: random_id(),
                address,
                created: Timestamp::now(),
                running: false,
                started: None,
                finished: None,
                exit_code: 0,
                keyspace: None,
                node: None,
                log: Vec::new(),
            }
        };
        let container = Container::new(record.clone(), Tree::default());
        let files = MemoryFiles::new(Arc::clone(&container.tree));
        let made = furnish(&files, &record).map_err(Refused::internal);
        let mut changes = file_changes(&id, &files);
        changes.push(record.change());
        let kept = match made {
            Ok(()) => self.journal.commit(changes).await.map_err(Refused::from),
            Err(refused) => Err(refused),
        };
        let mut state = self.state.lock();
        if let Err(refused) = kept {
            state.names.remove(&name);
            state.addresses.release(record.address);
            return Err(refused);
        }
        state.containers.insert(id.clone(), container);
        Ok(json!({ "Id": id, "Warnings": [] }))
    }

    /// `POST /containers/{id}/start`.
    pub(super) async fn start_container(self: &Arc<Self>, name: &str) -> Result<(), Refused> {
        let container = self.container(name)?;
        let _lifecycle = container.lifecycle.lock().await;
        self.container(name)?;
        if container.record.lock().running {
            return Err(Refused::new(304, ""));
        }
        {
            let mut record = container.record.lock();
            record.running = true;
            record.exit_code = 0;
            record.started = Some(Timestamp::now());
        }
        self.launch(&container).await;
        self.keep(&container).await
    }

    /// Runs a container again that was running when the engine ended.
    pub(super) async fn revive(self: &Arc<Self>, container: &Arc<Container>) {
        let _lifecycle = container.lifecycle.lock().await;
        self.launch(container).await;
        if let Err(refused) = self.keep(container).await {
            tracing::warn!(error = %refused, "unable to keep a container's state");
        }
    }

    /// Writes a container's record to disk.
    pub(super) async fn keep(&self, container: &Container) -> Result<(), Refused> {
        let change = container.record.lock().change();
        self.journal.keep(vec![change]).await.map_err(Refused::from)
    }

    /// `POST /containers/{id}/stop` and `kill` with a deadly signal.
    pub(super) async fn stop_container(self: &Arc<Self>, name: &str, exit_code: i32) -> Result<(), Refused> {
        let container = self.container(name)?;
        let _lifecycle = container.lifecycle.lock().await;
        if !container.record.lock().running {
            return Err(Refused::new(304, ""));
        }
        self.halt(&container, exit_code).await;
        self.keep(&container).await
    }

    /// Ends what runs in a container.
    pub(super) async fn halt(&self, container: &Container, exit_code: i32) {
        let process = container.process.lock().take();
        if let Some(process) = process {
            process.end(self).await;
        }
        // What they changed is on disk before anything later is, such as the container's removal.
        container.tasks.close();
        container.tasks.wait().await;
        container.tasks.reopen();
        {
            let mut record = container.record.lock();
            record.running = false;
            record.exit_code = exit_code;
            record.finished = Some(Timestamp::now());
        }
        container.stopped.notify_waiters();
    }

    /// `POST /containers/{id}/kill?signal=`.
    pub(super) async fn kill_container(self: &Arc<Self>, name: &str, signal: &str) -> Result<(), Refused> {
        let container = self.container(name)?;
        if !container.record.lock().running {
            return Err(Refused::new(
                409,
                format!("Cannot kill container: {name}: Container {} is not running", container.id()),
            ));
        }
        let plain = signal.to_ascii_uppercase();
        let number = match plain.strip_prefix("SIG").unwrap_or(&plain) {
            "" | "KILL" | "9" => 9,
            "TERM" | "15" => 15,
            "INT" | "2" => 2,
            "QUIT" | "3" => 3,
            "HUP" | "1" => {
                self.reload(&container).await;
                return self.keep(&container).await;
            }
            "USR1" | "10" | "USR2" | "12" | "WINCH" | "28" | "CONT" | "18" => return Ok(()),
            _ => return Err(Refused::new(400, format!("Invalid signal: {signal}"))),
        };
        match self.stop_container(name, 128 + number).await {
            Err(refused) if refused.status == 304 => Ok(()),
            other => other,
        }
    }

    /// `DELETE /containers/{id}?force=`.
    pub(super) async fn remove_container(self: &Arc<Self>, name: &str, force: bool) -> Result<(), Refused> {
        let container = self.container(name)?;
        let _lifecycle = container.lifecycle.lock().await;
        self.container(name)?;
        let id = container.id();
        if container.record.lock().running {
            if !force {
                return Err(Refused::new(
                    409,
                    format!(
                        "You cannot remove a running container {id}. Stop the container before attempting removal or force remove"
                    ),
                ));
            }
            self.halt(&container, 137).await;
        }
        let execs: Vec<String> = container.execs.lock().drain(..).collect();
        let mut changes = vec![Change::Remove(format!("container/{id}")), Change::RemoveAll(format!("file/{id}/"))];
        changes.extend(execs.iter().map(|exec| Change::Remove(format!("exec/{exec}"))));
        self.journal.commit(changes).await?;
        let (name, address, keyspace) = {
            let record = container.record.lock();
            (record.name.clone(), record.address, record.keyspace.clone())
        };
        let lost = {
            let mut state = self.state.lock();
            state.containers.remove(&id);
            state.names.remove(&name);
            state.addresses.release(address);
            for exec in &execs {
                state.execs.remove(exec);
            }
            keyspace.filter(|lost| {
                !state.containers.values().any(|other| other.record.lock().keyspace.as_ref() == Some(lost))
            })
        };
        match lost {
            // The last member of a cluster's etcd is gone, and with it what it stored.
            Some(keyspace) => self.workloads.forget(&keyspace).await.map_err(Refused::internal),
            None => Ok(()),
        }
    }

    /// `POST /containers/{id}/wait`: the exit code once it does not run.
    pub(super) async fn wait_container(&self, name: &str) -> Result<Value, Refused> {
        let container = self.container(name)?;
        loop {
            let stopped = container.stopped.notified();
            let code = {
                let record = container.record.lock();
                (!record.running).then_some(record.exit_code)
            };
            if let Some(code) = code {
                return Ok(json!({ "StatusCode": code, "Error": null }));
            }
            stopped.await;
        }
    }

    /// `PUT /containers/{id}/archive?path=`.
    pub(super) async fn put_archive(self: &Arc<Self>, name: &str, path: &str, body: Bytes) -> Result<(), Refused> {
        let container = self.container(name)?;
        let files = MemoryFiles::new(Arc::clone(&container.tree));
        let path = normal(path);
        let dynamic: &dyn Files = &files;
        match dynamic.stat(&path) {
            Ok(Some(found)) if found.is_directory() => {}
            Ok(Some(_)) => return Err(Refused::new(400, "extraction point is not a directory")),
            Ok(None) => return Err(Refused::new(404, format!("Could not find the file {path} in container {name}"))),
            Err(error) => return Err(Refused::internal(reason(&error))),
        }
        let unpacked = archive::unpack(&files, &path, &body).map_err(|error| Refused::new(400, reason(&error)));
        // What was unpacked before a problem stays, as with Docker.
        let changes = file_changes(&container.id(), &files);
        let manifests = format!("file/{}{}/", container.id(), paths::MANIFESTS);
        let pods = changes.iter().any(|change| change.key().starts_with(&manifests));
        self.journal.keep(changes).await?;
        if pods {
            self.look_again(&container).await;
        }
        unpacked
    }

    /// `GET` and `HEAD /containers/{id}/archive?path=`: metadata and, when wanted, the archive.
    pub(super) fn get_archive(&self, name: &str, path: &str, content: bool) -> Result<(Value, Vec<u8>), Refused> {
        let container = self.container(name)?;
        let memory = MemoryFiles::new(Arc::clone(&container.tree));
        let files: &dyn Files = &memory;
        let missing = || Refused::new(404, format!("Could not find the file {path} in container {name}"));
        let path = files.resolve(path).map_err(|_| missing())?;
        let found = files.attributes(&path).map_err(Refused::internal)?.ok_or_else(missing)?;
        let mtime = Timestamp::from_second(found.mtime).unwrap_or_default().to_string();
        let archive = if content { archive::pack(files, &path).map_err(Refused::internal)? } else { Vec::new() };
        Ok((archive::path_stat(&path, &found, &mtime), archive))
    }

    /// `GET /containers/{id}/logs`: lines as frames of standard output.
    pub(super) fn logs(&self, name: &str, tail: Option<usize>) -> Result<Vec<u8>, Refused> {
        let container = self.container(name)?;
        let record = container.record.lock();
        let skip = tail.map_or(0, |tail| record.log.len().saturating_sub(tail));
        Ok(record.log.iter().skip(skip).flat_map(|line| frame(1, format!("{line}\n").as_bytes())).collect())
    }
}

/// A frame of Docker's multiplexed stream: 1 is standard output, 2 standard error.
pub(super) fn frame(stream: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[stream, 0, 0, 0], &length[..], content].concat()
}

/// Files of a fresh container.
fn furnish(files: &MemoryFiles, record: &ContainerRecord) -> std::io::Result<()> {
    let dynamic: &dyn Files = files;
    if record.role == Role::Balancer {
        return dynamic.make_directories(capwasm_sim_node::files::parent(capwasm_sim_service::balancer::CONFIGURATION));
    }
    for path in NODE_DIRECTORIES {
        dynamic.make_directories(path)?;
    }
    dynamic.link("/var/run", "/run")?;
    dynamic.install("/etc/hostname", format!("{}\n", record.hostname()), 0o644)?;
    dynamic.install("/etc/os-release", "NAME=\"capwasm simulated node\"\nID=capwasm\n", 0o644)
}
