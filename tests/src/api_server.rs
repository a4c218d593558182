//! A real kube-apiserver with a real etcd, as plain processes on loopback: the judge of what we install and of what we may do.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::folder::Folder;
use crate::management::{client, free_address};
use crate::real::{self, NEWER};
use crate::{binary, wait};

/// A user that may do everything.
pub const ADMIN: &str = "admin";
/// A user that may do what RBAC lets it.
pub const HOST: &str = "host";

/// A running API server. It ends when it is dropped.
pub struct ApiServer {
    folder: Folder,
    url: String,
}

impl ApiServer {
    /// Starts one and waits until it is ready. None where there is no program; `test` is told to be skipped then.
    pub async fn start(test: &str) -> Option<ApiServer> {
        let program = real::kubeadm(NEWER.folder, test)?;
        let folder = Folder::new();
        for name in ["etcd", "kube-apiserver"] {
            // What it is called by says what it is; its path says whose it is.
            symlink(&program, folder.join(name)).expect("a link");
        }
        let (etcd, peers, own) = (free_address(), free_address(), free_address());
        let port = own.rsplit_once(':').expect("an address has a port").1;
        fs::write(folder.join("tokens"), tokens()).expect("a file");
        let key = rcgen::KeyPair::generate().expect("a key");
        fs::write(folder.join("key"), key.serialize_pem()).expect("a file");
        fs::write(folder.join("public"), key.public_key_pem()).expect("a file");
        let path = |name: &str| folder.join(name).display().to_string();
        run(
            &folder,
            "etcd",
            &[
                format!("--data-dir={}", path("data")),
                format!("--listen-client-urls=http://{etcd}"),
                format!("--advertise-client-urls=http://{etcd}"),
                format!("--listen-peer-urls=http://{peers}"),
                "--unsafe-no-fsync".to_owned(),
            ],
        );
        run(
            &folder,
            "kube-apiserver",
            &[
                format!("--etcd-servers=http://{etcd}"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--cert-dir={}", path("certificates")),
                "--service-account-issuer=https://127.0.0.1".to_owned(),
                format!("--service-account-key-file={}", path("public")),
                format!("--service-account-signing-key-file={}", path("key")),
                "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
                "--authorization-mode=RBAC".to_owned(),
                format!("--token-auth-file={}", path("tokens")),
                // Nobody makes the accounts that it wants.
                "--disable-admission-plugins=ServiceAccount".to_owned(),
            ],
        );
        let server = ApiServer { folder, url: format!("https://127.0.0.1:{port}") };
        wait::until("the API server is ready", async || server.look().await).await;
        Some(server)
    }

    /// A kubeconfig of [`ADMIN`] or [`HOST`].
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        let file = self.folder.join(&format!("{user}.kubeconfig"));
        let cluster = json!({"server": self.url, "certificate-authority": self.certificate()});
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": user,
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token(user)}}],
            "contexts": [{"name": user, "context": {"cluster": "real", "user": user}}],
        });
        // JSON is YAML.
        fs::write(&file, config.to_string()).expect("a file");
        file
    }

    /// A client of [`ADMIN`] or [`HOST`].
    pub async fn client(&self, user: &str) -> kube::Client {
        client(&self.kubeconfig(user)).await
    }

    /// The server's own certificate and its authority's. It makes them when it starts.
    fn certificate(&self) -> PathBuf {
        self.folder.join("certificates").join("apiserver.crt")
    }

    async fn look(&self) -> Result<(), String> {
        if !self.certificate().is_file() {
            return Err(end_of(&self.folder, "etcd"));
        }
        let ready = http::Request::get("/readyz").body(Vec::new()).expect("a request");
        match self.client(ADMIN).await.request_text(ready).await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{error}; {}", end_of(&self.folder, "kube-apiserver"))),
        }
    }
}

fn token(user: &str) -> String {
    format!("token-of-{user}")
}

/// Token, name, id and groups of each user.
fn tokens() -> String {
    format!("{},{ADMIN},{ADMIN},system:masters\n{},{HOST},{HOST}\n", token(ADMIN), token(HOST))
}

fn run(folder: &Folder, name: &str, arguments: &[String]) {
    let log = File::create(log(folder, name)).expect("a file");
    let mut command = Command::new(folder.join(name));
    command.args(arguments).current_dir(binary::target()).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a file")).stderr(log);
    // The folder ends it.
    drop(command.spawn().unwrap_or_else(|error| panic!("unable to start {name}: {error}")));
}

fn log(folder: &Folder, name: &str) -> PathBuf {
    folder.join(&format!("{name}.log"))
}

fn end_of(folder: &Folder, name: &str) -> String {
    let text = read(&log(folder, name));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}
