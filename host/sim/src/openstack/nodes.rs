//! Servers as simulated Kubernetes nodes: containers of the simulated engine that run their user data.
//!
//! Each server has one task that does what happens to it in order: boot, halt, resume, end.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Nodes;
use super::cloud::Cloud;
use super::cloud_init::{self, Facts, Plan};
use super::keystone::REGION;
use super::nova::{self, Boot};
use super::table::text;
use crate::docker::{Docker, DockerError};
use crate::kubeadm::paths;

/// Container label with the server's id.
const LABEL: &str = "capwasm.dev/openstack-server";
/// Lines of a console that are kept.
const CONSOLE: usize = 500;

/// Runs servers' nodes.
pub(super) struct Runner {
    docker: Docker,
    version: String,
    servers: Mutex<HashMap<String, Server>>,
    pulled: tokio::sync::Mutex<BTreeSet<String>>,
}

struct Server {
    orders: UnboundedSender<Order>,
    address: Option<Ipv4Addr>,
    console: Vec<String>,
}

/// What happens to a server.
enum Order {
    Boot,
    Halt,
    Resume,
    End,
}

impl Runner {
    pub fn new(nodes: Nodes) -> Runner {
        Runner {
            docker: Docker::unix(nodes.engine),
            version: nodes.version,
            servers: Mutex::default(),
            pulled: tokio::sync::Mutex::default(),
        }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, DockerError> {
        self.docker.json(method, &format!("/v1.41{path}"), &body).await
    }

    /// Removes the nodes of a simulated OpenStack that was there before.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn prepare(&self) -> Result<(), DockerError> {
        let filter = format!("%7B%22label%22%3A%5B%22{LABEL}%22%5D%7D");
        let found = self.call(Method::GET, &format!("/containers/json?all=1&filters={filter}"), Value::Null).await?;
        for container in found.as_array().into_iter().flatten() {
            let path = format!("/containers/{}?force=1", text(container, "Id"));
            self.call(Method::DELETE, &path, Value::Null).await?;
        }
        Ok(())
    }

    fn log(&self, server: &str, line: impl Into<String>) {
        if let Some(server) = self.servers.lock().get_mut(server) {
            server.console.push(line.into());
            let excess = server.console.len().saturating_sub(CONSOLE);
            server.console.drain(..excess);
        }
    }

    /// Makes and starts a server's container; its name and address.
    async fn start(&self, id: &str, boot: &Boot) -> Result<(String, Ipv4Addr), String> {
        let version = self.version_of(&boot.image);
        let failed = |what: &str, error: DockerError| format!("unable to {what}: {error}");
        {
            let mut pulled = self.pulled.lock().await;
            if !pulled.contains(&version) {
                let path = format!("/images/create?fromImage=kindest/node&tag={version}");
                self.call(Method::POST, &path, Value::Null).await.map_err(|error| failed("get the image", error))?;
                pulled.insert(version.clone());
            }
        }
        let body = json!({
            "Image": format!("kindest/node:{version}"), "Hostname": boot.name,
            "Labels": { LABEL: id, crate::faults::LABEL: text(&boot.metadata, "capwasm-simulate") },
        });
        let mut name = boot.name.clone();
        let mut made = self.call(Method::POST, &format!("/containers/create?name={name}"), body.clone()).await;
        if matches!(made, Err(DockerError::Refused { status: 400 | 409, .. })) {
            // Servers' names are not unique, and need not be names of containers.
            name = format!("openstack-{id}");
            made = self.call(Method::POST, &format!("/containers/create?name={name}"), body).await;
        }
        made.map_err(|error| failed("make the node", error))?;
        let path = format!("/containers/{name}");
        let started = self.call(Method::POST, &format!("{path}/start"), Value::Null).await;
        started.map_err(|error| failed("start the node", error))?;
        let found = self.call(Method::GET, &format!("{path}/json"), Value::Null).await;
        let found = found.map_err(|error| failed("look at the node", error))?;
        let networks = found["NetworkSettings"]["Networks"].as_object();
        let address =
            networks.and_then(|networks| networks.values().find_map(|one| text(one, "IPAddress").parse().ok()));
        Ok((name, address.ok_or("the node has no address")?))
    }

    /// Kubernetes version of an image: its property `kube_version`, or what its name says.
    fn version_of(&self, image: &Value) -> String {
        let named = || cloud_init::version_in(text(image, "name"));
        let version = image["kube_version"].as_str().map(str::to_owned).or_else(named);
        let version = version.unwrap_or_else(|| self.version.clone());
        format!("v{}", version.trim_start_matches('v'))
    }

    /// Runs a server's user data in its container.
    async fn initialize(&self, id: &str, container: &str, plan: &Plan) -> Result<(), String> {
        let failed = |error: DockerError| format!("unable to run the user data: {error}");
        for ignored in &plan.ignored {
            self.log(id, format!("cloud-init: {ignored} is not simulated"));
        }
        let archive = plan.archive().map_err(|error| format!("unable to pack the files: {error}"))?;
        let path = format!("/v1.41/containers/{container}/archive?path=/");
        self.docker.archive(Method::PUT, &path, archive).await.map_err(failed)?;
        for script in plan.scripts() {
            let exec = json!({ "Cmd": ["/bin/sh", script], "AttachStdout": true, "AttachStderr": true, "Tty": true });
            let exec = self.call(Method::POST, &format!("/containers/{container}/exec"), exec).await.map_err(failed)?;
            let exec = text(&exec, "Id").to_owned();
            let body = json!({ "Detach": false }).to_string();
            let path = format!("/v1.41/exec/{exec}/start");
            let (_, output) = self.docker.send(Method::POST, &path, "application/json", body).await.map_err(failed)?;
            for line in String::from_utf8_lossy(&output).lines() {
                self.log(id, line);
            }
            let ended = self.call(Method::GET, &format!("/exec/{exec}/json"), Value::Null).await.map_err(failed)?;
            self.log(id, format!("cloud-init: {script} ended with exit code {}", ended["ExitCode"]));
        }
        Ok(())
    }

    async fn order(&self, container: &str, method: Method, act: &str) {
        let path = format!("/containers/{container}{act}");
        match self.call(method, &path, Value::Null).await {
            Ok(_) | Err(DockerError::Refused { status: 304 | 404 | 409, .. }) => {}
            Err(error) => tracing::warn!(container, %error, "a simulated node does not do as it is told"),
        }
    }
}

/// Does what happens to one server, in order.
async fn attend(cloud: &Cloud, runner: &Runner, id: &str, mut orders: UnboundedReceiver<Order>) {
    let mut container: Option<String> = None;
    while let Some(order) = orders.recv().await {
        match order {
            Order::Boot => {
                let Some(boot) = cloud.look(|state| nova::booted(state, id)) else { continue };
                if boot.user_data.is_empty() {
                    runner.log(id, "cloud-init: no user data");
                    continue;
                }
                match runner.start(id, &boot).await {
                    Ok((name, address)) => {
                        if let Some(server) = runner.servers.lock().get_mut(id) {
                            server.address = Some(address);
                        }
                        cloud.changed.notify_one();
                        container = Some(name.clone());
                        let facts = facts(id, &boot);
                        let done = match cloud_init::plan(&boot.user_data, &facts) {
                            Ok(plan) => {
                                // Deleted while it boots: what runs in it ends with the container.
                                tokio::select! {
                                    done = runner.initialize(id, &name, &plan) => done,
                                    () = ends(&mut orders, runner, &name) => {
                                        finish(cloud, runner, id, Some(&name)).await;
                                        return;
                                    }
                                }
                            }
                            Err(problem) => Err(problem),
                        };
                        if let Err(problem) = done {
                            tracing::info!(server = boot.name, problem, "user data of a simulated server failed");
                            runner.log(id, format!("cloud-init: {problem}"));
                        }
                    }
                    Err(problem) => {
                        tracing::warn!(server = boot.name, problem, "a simulated server does not boot");
                        runner.log(id, problem);
                    }
                }
            }
            Order::Halt => {
                if let Some(name) = &container {
                    runner.order(name, Method::POST, "/stop").await;
                }
            }
            Order::Resume => {
                if let Some(name) = &container {
                    runner.order(name, Method::POST, "/start").await;
                }
            }
            Order::End => {
                finish(cloud, runner, id, container.as_deref()).await;
                return;
            }
        }
    }
}

/// Waits for a server's end; halts and resumes it meanwhile.
async fn ends(orders: &mut UnboundedReceiver<Order>, runner: &Runner, container: &str) {
    loop {
        match orders.recv().await {
            Some(Order::Halt) => runner.order(container, Method::POST, "/stop").await,
            Some(Order::Resume) => runner.order(container, Method::POST, "/start").await,
            Some(Order::Boot) => {}
            Some(Order::End) | None => return,
        }
    }
}

async fn finish(cloud: &Cloud, runner: &Runner, id: &str, container: Option<&str>) {
    if let Some(container) = container {
        runner.order(container, Method::DELETE, "?force=1").await;
    }
    runner.servers.lock().remove(id);
    cloud.with(|state| nova::remove(cloud, state, id));
    cloud.changed.notify_one();
}

fn facts(id: &str, boot: &Boot) -> Facts {
    Facts {
        instance_id: id.to_owned(),
        hostname: boot.name.clone(),
        zone: boot.zone.clone(),
        region: REGION.to_owned(),
        metadata: boot.metadata.clone(),
        files: vec![(paths::PROVIDER_ID.to_owned(), format!("openstack://{REGION}/{id}\n"))],
    }
}

fn tell(cloud: &Cloud, id: &str, order: Order) -> bool {
    let Some(runner) = &cloud.runner else { return false };
    let servers = runner.servers.lock();
    servers.get(id).is_some_and(|server| server.orders.send(order).is_ok())
}

/// An `ACTIVE` server boots, where servers do.
pub(super) fn boot(cloud: &Cloud, id: &str) {
    let (Some(runner), Some(shared)) = (&cloud.runner, cloud.shared()) else { return };
    let (orders, receiver) = unbounded_channel();
    runner.servers.lock().insert(id.to_owned(), Server { orders, address: None, console: Vec::new() });
    tell(cloud, id, Order::Boot);
    let id = id.to_owned();
    cloud.spawn(async move {
        if let Some(runner) = &shared.runner {
            attend(&shared, runner, &id, receiver).await;
        }
    });
}

/// Ends a server with its node; false when it has none.
pub(super) fn end(cloud: &Cloud, id: &str) -> bool {
    tell(cloud, id, Order::End)
}

/// The node of a server that is gone already.
pub(super) fn forget(cloud: &Cloud, id: &str) {
    tell(cloud, id, Order::End);
}

pub(super) fn halt(cloud: &Cloud, id: &str) {
    tell(cloud, id, Order::Halt);
}

pub(super) fn resume(cloud: &Cloud, id: &str) {
    tell(cloud, id, Order::Resume);
}

/// Address of a server's node.
pub(super) fn address(cloud: &Cloud, id: &str) -> Option<Ipv4Addr> {
    cloud.runner.as_ref()?.servers.lock().get(id)?.address
}

/// What a server wrote to its console.
pub(super) fn console(cloud: &Cloud, id: &str) -> String {
    let fake = "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE".to_owned();
    let Some(runner) = &cloud.runner else { return fake };
    let servers = runner.servers.lock();
    servers.get(id).map_or(fake, |server| server.console.join("\n"))
}
