//! Execs: commands in a running container, interpreted by the shell.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::containers::{Container, file_changes};
use super::node::SimulatedNode;
use super::process::Process;
use super::record::ExecRecord;
use super::{Change, Engine, Refused, random_id};
use capwasm_sim_node::kubeadm::paths;
use capwasm_sim_node::shell::{self, Streams, Target};

/// Execs that are remembered of a container.
const KEPT: usize = 64;
/// Exit code of what ended because its container did.
const KILLED: i32 = 137;

pub(super) struct Exec {
    /// What of it is stored on disk.
    pub record: Mutex<ExecRecord>,
}

impl Exec {
    pub fn new(record: ExecRecord) -> Arc<Exec> {
        Arc::new(Exec { record: Mutex::new(record) })
    }
}

#[derive(Debug, Default)]
pub(super) struct Output {
    pub out: Vec<u8>,
    pub error: Vec<u8>,
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Engine {
    /// `POST /containers/{id}/exec`.
    pub(super) async fn create_exec(&self, name: &str, config: Value) -> Result<Value, Refused> {
        let container = self.container(name)?;
        self.running(&container)?;
        if words(&config["Cmd"]).is_empty() {
            return Err(Refused::new(400, "No exec command specified"));
        }
        let id = random_id();
        let record = ExecRecord {
            id: id.clone(),
            container: container.id(),
            created: Timestamp::now(),
            config,
            running: false,
            exit_code: None,
        };
        let forgotten = self.surplus(&container);
        let mut changes: Vec<Change> = forgotten.iter().map(|exec| Change::Remove(format!("exec/{exec}"))).collect();
        changes.push(record.change());
        self.journal.commit(changes).await?;
        let mut state = self.state.lock();
        for exec in &forgotten {
            state.execs.remove(exec);
        }
        state.execs.insert(id.clone(), Exec::new(record));
        container.execs.lock().push_back(id.clone());
        Ok(json!({ "Id": id }))
    }

    /// Takes the oldest execs off a container's list when there are too many; one that still runs stops the taking.
    fn surplus(&self, container: &Container) -> Vec<String> {
        let mut taken = Vec::new();
        // In this order everywhere: the engine's state, then what belongs to one container or exec.
        let state = self.state.lock();
        let mut execs = container.execs.lock();
        while execs.len() >= KEPT {
            let Some(oldest) = execs.front() else { break };
            if state.execs.get(oldest).is_some_and(|exec| exec.record.lock().running) {
                break;
            }
            taken.extend(execs.pop_front());
        }
        taken
    }

    fn running(&self, container: &Container) -> Result<Arc<Process>, Refused> {
        let process = container.process.lock().clone();
        process.ok_or_else(|| Refused::new(409, format!("Container {} is not running", container.id())))
    }

    pub(super) fn exec(&self, id: &str) -> Result<Arc<Exec>, Refused> {
        self.state
            .lock()
            .execs
            .get(id)
            .cloned()
            .ok_or_else(|| Refused::new(404, format!("No such exec instance: {id}")))
    }

    /// `GET /exec/{id}/json`.
    pub(super) fn inspect_exec(&self, id: &str) -> Result<Value, Refused> {
        let exec = self.exec(id)?;
        let record = exec.record.lock();
        let command = words(&record.config["Cmd"]);
        let flag = |name: &str| record.config[name].as_bool().unwrap_or(false);
        Ok(json!({
            "ID": record.id, "Running": record.running, "ExitCode": record.exit_code, "ContainerID": record.container,
            "ProcessConfig": {
                "entrypoint": command.first(), "arguments": command.get(1..).unwrap_or_default(),
                "tty": flag("Tty"), "privileged": flag("Privileged"), "user": record.config["User"].as_str().unwrap_or_default(),
            },
            "OpenStdin": flag("AttachStdin"), "OpenStdout": flag("AttachStdout"), "OpenStderr": flag("AttachStderr"),
            "CanRemove": false, "DetachKeys": "", "Pid": i32::from(record.running),
        }))
    }

    /// `POST /exec/{id}/start`: the handle of the command, which runs on whether or not anybody waits.
    pub(super) async fn start_exec(self: &Arc<Self>, id: &str) -> Result<tokio::task::JoinHandle<Output>, Refused> {
        let exec = self.exec(id)?;
        let id_of_container = exec.record.lock().container.clone();
        let container = self.container(&id_of_container)?;
        let process = self.running(&container)?;
        let change = {
            let mut record = exec.record.lock();
            if record.running {
                return Err(Refused::new(409, format!("Error: Exec command {id} is already running")));
            }
            if record.exit_code.is_some() {
                return Err(Refused::new(409, format!("Error: Exec command {id} has already run")));
            }
            record.running = true;
            record.change()
        };
        if let Err(error) = self.journal.commit(vec![change]).await {
            exec.record.lock().running = false;
            return Err(error.into());
        }
        let tasks = container.tasks.clone();
        Ok(tasks.spawn(Arc::clone(self).perform(exec, container, process)))
    }

    /// Runs an exec again that was interrupted when the engine was killed: nothing of its first run is left.
    pub(super) async fn run_again(self: &Arc<Self>, exec: &Arc<Exec>) {
        let id = exec.record.lock().container.clone();
        let Ok(container) = self.container(&id) else { return };
        match self.running(&container) {
            Ok(process) => {
                let tasks = container.tasks.clone();
                drop(tasks.spawn(Arc::clone(self).perform(Arc::clone(exec), container, process)));
            }
            Err(_) => self.finish(exec, KILLED, Vec::new()).await,
        }
    }

    async fn perform(self: Arc<Self>, exec: Arc<Exec>, container: Arc<Container>, process: Arc<Process>) -> Output {
        let config = exec.record.lock().config.clone();
        let mut environment: BTreeMap<String, String> = BTreeMap::from([
            ("HOME".to_owned(), "/root".to_owned()),
            ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ]);
        let given = [words(&container.record.lock().config["Env"]), words(&config["Env"])].concat();
        environment.extend(
            given
                .iter()
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let directory =
            config["WorkingDir"].as_str().filter(|directory| directory.starts_with('/')).unwrap_or("/").to_owned();
        let streams = Streams { input: bytes::Bytes::new(), out: Target::buffer(), error: Target::buffer() };
        let stop = process.stop.clone();
        let node = SimulatedNode::new(Arc::clone(&self), Arc::clone(&container), process);
        let command = words(&config["Cmd"]);
        let status = tokio::select! {
            status = shell::execute(&node, &command, environment, &directory, streams.clone()) => status,
            // Left as it is on disk: it runs again when the engine does.
            () = self.quiescing.cancelled() => return Output::default(),
            () = stop.cancelled() => KILLED,
        };
        let changes = file_changes(&container.id(), &node.changes);
        let manifests = format!("file/{}{}/", container.id(), paths::MANIFESTS);
        let pods = changes.iter().any(|change| change.key().starts_with(&manifests));
        self.finish(&exec, status, changes).await;
        if pods {
            self.look_again(&container).await;
        }
        Output { out: streams.out.collected(), error: streams.error.collected() }
    }

    /// Makes an exec's files and result durable, and then known.
    async fn finish(&self, exec: &Exec, status: i32, mut changes: Vec<Change>) {
        let mut ended = exec.record.lock().clone();
        ended.running = false;
        ended.exit_code = Some(status);
        // A container that was removed meanwhile leaves nothing behind.
        if self.container(&ended.container).is_ok() {
            changes.push(ended.change());
            if let Err(error) = self.journal.keep(changes).await {
                tracing::error!(%error, "unable to keep the result of an exec");
            }
        }
        *exec.record.lock() = ended;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::time::{Duration, Instant};

    use super::*;
    use crate::heartbeat::Heartbeats;
    use capwasm_sim_node::etcd::Etcd;
    use capwasm_sim_node::workload::Workloads;
    use capwasm_sim_service::faults::Faults;

    #[tokio::test]
    async fn nobody_who_holds_a_containers_execs_waits_for_the_engines_state() {
        let directory = tempfile::tempdir().unwrap();
        let etcd = Etcd::open(&directory.path().join("etcd")).unwrap();
        let workloads =
            Workloads::open(&directory.path().join("w.redb"), 1 << 20, etcd, capwasm_sim_node::NODE_GRACE).unwrap();
        let (path, faults) = (directory.path().join("engine.redb"), Faults::default());
        let engine = Engine::open(&path, workloads, Heartbeats::new(), faults).await.unwrap();
        engine.pull("kindest/node", Some("v1.34.0")).await.unwrap();
        engine.create_container(Some("one"), json!({ "Image": "kindest/node:v1.34.0" })).await.unwrap();
        let container = engine.container("one").unwrap();
        container.execs.lock().extend((0..KEPT).map(|number| number.to_string()));

        let state = engine.state.lock();
        let taking = std::thread::spawn({
            let (engine, container) = (Arc::clone(&engine), Arc::clone(&container));
            move || engine.surplus(&container)
        });
        let until = Instant::now() + Duration::from_millis(200);
        while Instant::now() < until {
            assert!(container.execs.try_lock().is_some(), "the list is held by one who waits for the state");
            std::thread::yield_now();
        }
        drop(state);
        assert_eq!(taking.join().unwrap(), ["0"]);
    }
}
