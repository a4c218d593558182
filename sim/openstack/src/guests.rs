//! Machines for servers: containers of the simulated engine that run user data as cloud-init would.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use http::Method;
use serde_json::{Value, json};

use super::Nodes;
use super::cloud_init::{self, Facts};
use super::keystone::REGION;
use super::table::text;
use capwasm_sim_node::kubeadm::paths;
use capwasm_sim_service::docker::{Docker, DockerError};

/// Container label with the server's id.
const LABEL: &str = "capwasm.dev/openstack-server";

/// What a server boots with: its name, its user data, and what it knows about itself.
#[derive(Debug, Clone, Default)]
pub struct Boot {
    /// Host name.
    pub name: String,
    /// Decoded: cloud-config, or whatever the server was given.
    pub user_data: Vec<u8>,
    /// Availability zone.
    pub zone: String,
    /// The image as Glance has it; `kube_version` and `name` say which Kubernetes it has.
    pub image: Value,
    /// The server's `metadata`, as Nova has it.
    pub metadata: Value,
}

/// The container that a server runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Name of the container.
    pub container: String,
    /// Where the node is reached.
    pub address: Ipv4Addr,
}

/// Runs machines of servers, whoever keeps the servers: the simulated Nova, or a real one with its fake driver.
pub struct Guests {
    docker: Docker,
    version: String,
    pulled: tokio::sync::Mutex<BTreeSet<String>>,
}

impl Guests {
    /// Containers on the engine that `nodes` names.
    pub fn new(nodes: Nodes) -> Guests {
        Guests { docker: Docker::unix(nodes.engine), version: nodes.version, pulled: tokio::sync::Mutex::default() }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, DockerError> {
        self.docker.json(method, &format!("/v1.41{path}"), &body).await
    }

    /// Removes the nodes of a simulated OpenStack that was there before.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub(super) async fn prepare(&self) -> Result<(), DockerError> {
        let filter = format!("%7B%22label%22%3A%5B%22{LABEL}%22%5D%7D");
        let found = self.call(Method::GET, &format!("/containers/json?all=1&filters={filter}"), Value::Null).await?;
        for container in found.as_array().into_iter().flatten() {
            let path = format!("/containers/{}?force=1", text(container, "Id"));
            self.call(Method::DELETE, &path, Value::Null).await?;
        }
        Ok(())
    }

    /// Makes and starts a server's machine.
    ///
    /// # Errors
    /// What the engine refuses, for a console.
    pub async fn start(&self, id: &str, boot: &Boot) -> Result<Guest, String> {
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
            "Labels": { LABEL: id, capwasm_sim_service::faults::LABEL: text(&boot.metadata, "capwasm-simulate") },
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
        Ok(Guest { container: name, address: address.ok_or("the node has no address")? })
    }

    /// Kubernetes version of an image: its property `kube_version`, or what its name says.
    fn version_of(&self, image: &Value) -> String {
        let named = || cloud_init::version_in(text(image, "name"));
        let version = image["kube_version"].as_str().map(str::to_owned).or_else(named);
        let version = version.unwrap_or_else(|| self.version.clone());
        format!("v{}", version.trim_start_matches('v'))
    }

    /// Runs a server's user data in its container.
    ///
    /// # Errors
    /// What is wrong with the user data or with the engine, for a console.
    pub async fn initialize(
        &self,
        id: &str,
        boot: &Boot,
        container: &str,
        log: &(impl Fn(String) + Sync),
    ) -> Result<(), String> {
        let plan = cloud_init::plan(&boot.user_data, &facts(id, boot))?;
        let failed = |error: DockerError| format!("unable to run the user data: {error}");
        for ignored in &plan.ignored {
            log(format!("cloud-init: {ignored} is not simulated"));
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
                log(line.to_owned());
            }
            let ended = self.call(Method::GET, &format!("/exec/{exec}/json"), Value::Null).await.map_err(failed)?;
            log(format!("cloud-init: {script} ended with exit code {}", ended["ExitCode"]));
        }
        Ok(())
    }

    /// Ends a server's machine; that it is gone will do.
    pub async fn end(&self, container: &str) {
        self.order(container, Method::DELETE, "?force=1").await;
    }

    pub(super) async fn order(&self, container: &str, method: Method, act: &str) {
        let path = format!("/containers/{container}{act}");
        match self.call(method, &path, Value::Null).await {
            Ok(_) | Err(DockerError::Refused { status: 304 | 404 | 409, .. }) => {}
            Err(error) => tracing::warn!(container, %error, "a simulated node does not do as it is told"),
        }
    }
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
