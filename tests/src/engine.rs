//! What a container engine has, real or simulated.

use std::path::{Path, PathBuf};

use capwasm_sim_service::docker::Docker;
use http::Method;
use rustix::process::{Pid, Signal};
use serde_json::Value;

/// An engine on a socket.
pub struct Engine {
    docker: Docker,
    socket: PathBuf,
}

impl Engine {
    /// A client of the engine on this socket.
    pub fn on(socket: &Path) -> Engine {
        Engine { docker: Docker::unix(socket), socket: socket.to_owned() }
    }

    /// Whether the engine answers a ping.
    pub async fn answers(&self) -> bool {
        self.docker.json(Method::GET, "/v1.41/_ping", &Value::Null).await.is_ok()
    }

    /// Names of all containers of a cluster, sorted.
    pub async fn containers(&self, cluster: &str) -> Vec<String> {
        let filters = format!("%7B%22label%22%3A%5B%22io.x-k8s.kind.cluster%3D{cluster}%22%5D%7D");
        let path = format!("/v1.41/containers/json?all=1&filters={filters}");
        let list = self.docker.json(Method::GET, &path, &Value::Null).await.expect("the engine lists containers");
        let name =
            |container: &Value| container["Names"][0].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
        let mut names: Vec<String> = list.as_array().expect("a list").iter().map(name).collect();
        names.sort();
        names
    }

    /// A container, as the engine describes it.
    pub async fn inspect(&self, container: &str) -> Value {
        let path = format!("/v1.41/containers/{container}/json");
        self.docker.json(Method::GET, &path, &Value::Null).await.expect("the engine describes the container")
    }

    /// A path in a container as tar; empty when there is none.
    pub async fn archive(&self, container: &str, path: &str) -> Vec<u8> {
        let path = format!("/v1.41/containers/{container}/archive?path={path}");
        let (status, body) = self.docker.send(Method::GET, &path, "", "").await.expect("the engine answers");
        if status == 200 { body.to_vec() } else { Vec::new() }
    }

    /// Removes a container, whatever it does.
    pub async fn remove(&self, container: &str) {
        let path = format!("/v1.41/containers/{container}?force=1&v=1");
        let _ = self.docker.json(Method::DELETE, &path, &Value::Null).await;
    }

    /// Sends a signal to the simulated engine's process.
    pub fn signal(&self, signal: Signal) {
        let process = self.process().expect("the simulated engine runs");
        rustix::process::kill_process(process, signal).expect("the simulated engine takes signals");
    }

    /// Whether the simulated engine's process runs.
    pub fn runs(&self) -> bool {
        self.process().is_some()
    }

    /// Found by its command line, because it is nobody's child that a test could ask.
    fn process(&self) -> Option<Pid> {
        let wanted = format!("\0sim\0--socket\0{}\0", self.socket.display());
        std::fs::read_dir("/proc").ok()?.filter_map(Result::ok).find_map(|entry| {
            let process: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&line).contains(&wanted).then(|| Pid::from_raw(process)).flatten()
        })
    }
}
