//! Embedded API server with its data folder, certificates and kubeconfig.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capwasm_apiserver::pki::{self, ServerPki};
use capwasm_apiserver::{AdmissionError, Filter, GroupKind, Identity, Server, ServerConfig, Store};
use capwasm_providers::Conversions;
use http::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::conversion::InProcess;
use crate::diagnostics::Diagnostics;
use crate::readiness::{self, Readiness};
use crate::{admission, files, store_metrics};

/// Name of the store's file in the data folder.
pub const STORE: &str = "store.redb";
/// Page cache of the store in bytes: what is written often. The rest is in the system's page cache.
const STORE_CACHE: usize = 8 << 20;
/// Kubernetes version whose API the server follows.
const GIT_VERSION: &str = "v1.34.0+capwasm";

/// Options of the embedded server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the store and certificates.
    pub data_dir: PathBuf,
    /// Address to listen on. Port 0 selects a free one, which the kubeconfig has.
    pub listen: SocketAddr,
    /// Path of the admin kubeconfig (mode 0600); by default `kubeconfig` in the data folder.
    pub kubeconfig: Option<PathBuf>,
}

/// A running embedded server.
pub struct Embedded {
    /// In-process client of the host.
    pub client: kube::Client,
    /// `https://host:port` of the server.
    pub url: String,
    /// Path of the admin kubeconfig.
    pub kubeconfig: PathBuf,
    /// Conversion and admission by providers.
    pub conversions: Arc<Conversions>,
    server: Server,
    store: Arc<Store>,
    serving: JoinHandle<std::io::Result<()>>,
    shutdown: CancellationToken,
}

/// Opens the store, serves, and writes the kubeconfig. `/readyz` is answered by the readiness of `diagnostics`, whose registry gets the
/// [metrics of the store](crate::store_metrics).
pub async fn start(options: &Options, diagnostics: &Diagnostics) -> Result<Embedded> {
    let folder = &options.data_dir;
    private_folder(folder)?;
    let listener =
        TcpListener::bind(options.listen).await.with_context(|| format!("unable to listen on {}", options.listen))?;
    let address = listener.local_addr()?;
    // Clients on this machine cannot connect to "any address".
    let host = if address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { address.ip().to_string() };
    let names =
        ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc", host.as_str()].map(str::to_owned);
    // The store first: where there are certificates, there was a store.
    let store = open_store(folder).await?;
    store_metrics::register(&mut diagnostics.registry.lock(), &store);
    let pki = pki::ensure(&folder.join("pki"), &names).context("unable to prepare the server's certificates")?;
    let advertised = SocketAddr::new(host.parse().unwrap_or(address.ip()), address.port()).to_string();
    let conversions = Conversions::start().context("unable to start the thread of conversions")?;
    let mut config = config(&pki, &advertised);
    config.converter = Some(Arc::new(InProcess::new(conversions.clone())));
    config.admitter = Some(Arc::new(admission::InProcess::new(conversions.clone())));
    let server = Server::start(store.clone(), config).await.context("unable to start the API server")?;
    let client = server.client(Identity::admin("capwasm:host"));
    admission::expect_installed(&client, &conversions).await?;
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn({
        let (server, tls, shutdown) = (server.clone(), pki.tls(), shutdown.clone());
        let filter = unless_ready(diagnostics.readiness.clone());
        async move { server.serve_filtered(listener, tls, shutdown, filter).await }
    });
    let url = format!("https://{advertised}");
    let kubeconfig = options.kubeconfig.clone().unwrap_or_else(|| folder.join("kubeconfig"));
    files::write_private(&kubeconfig, &pki.admin_kubeconfig(&url).context("unable to issue the admin certificate")?)?;
    Ok(Embedded { client, url, kubeconfig, conversions, server, store, serving, shutdown })
}

impl Embedded {
    /// Ends watches, closes the listener and waits until everything is on disk.
    pub async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        self.server.shutdown().await;
        self.serving.await.context("the API server panicked")?.context("the API server failed")?;
        tokio::task::spawn_blocking(move || self.store.close()).await?;
        Ok(())
    }
}

/// Answers `/readyz` while the host is not ready: the server itself is ready at once.
fn unless_ready(readiness: Readiness) -> Filter {
    Arc::new(move |_, path| {
        let missing = readiness::is_asked(path).then(|| readiness.missing())??;
        let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "reason": "ServiceUnavailable", "code": 503, "message": missing});
        Some((StatusCode::SERVICE_UNAVAILABLE, status))
    })
}

fn config(pki: &ServerPki, advertised: &str) -> ServerConfig {
    let mut config = ServerConfig::new("management");
    config.advertised = advertised.to_owned();
    config.git_version = GIT_VERSION.to_owned();
    config.service_account_root_ca = Some(pki.ca_pem().to_owned());
    config.admission = admission_hooks();
    config
}

/// Upstream's webhooks by kind.
pub fn admission_hooks() -> Vec<(GroupKind, capwasm_apiserver::Admission)> {
    ["Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck"]
        .map(|kind| (GroupKind::new(capwasm_api::names::CORE_GROUP, kind), admission()))
        .to_vec()
}

/// Defaulting and validation of a core kind in its storage version.
fn admission() -> capwasm_apiserver::Admission {
    Arc::new(|new, old| {
        let mut object = new.clone();
        capwasm_api::defaults::default(&mut object, old);
        let violations = capwasm_api::validate::validate(&object, old);
        if violations.is_empty() {
            return Ok(object);
        }
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Err(AdmissionError { message: texts.join("; ") })
    })
}

async fn open_store(folder: &Path) -> Result<Arc<Store>> {
    let path = folder.join(STORE);
    let stored = std::fs::metadata(&path).is_ok_and(|file| file.len() > 0);
    if !stored && folder.join("pki/ca.crt").exists() {
        bail!(
            "{} is empty or gone, but there are certificates of a cluster beside it: put the file back, or remove {} to begin with \
             an empty cluster",
            path.display(),
            folder.join("pki").display()
        );
    }
    let opened = tokio::task::spawn_blocking({
        let path = path.clone();
        move || Store::open(&path, STORE_CACHE)
    });
    opened.await?.with_context(|| format!("unable to use {}", path.display()))
}

/// Creates a folder with mode 0700, for keys.
pub fn private_folder(folder: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let unable = || format!("unable to use the data folder {}", folder.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(unable)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).with_context(unable)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[tokio::test]
    async fn a_store_that_is_gone_or_in_use_is_no_new_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().to_owned();
        let options = Options { data_dir, listen: "127.0.0.1:0".parse().unwrap(), kubeconfig: None };
        let begin = async || start(&options, &Diagnostics::default()).await;
        let why = async || format!("{:#}", begin().await.err().unwrap());
        let server = begin().await.unwrap();
        let said = why().await;
        assert!(said.contains("another process has the database open"), "{said}");
        server.stop().await.unwrap();
        let path = folder.path().join("store.redb");
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        while let Err(error) = Store::open(&path, STORE_CACHE).map(drop) {
            assert!(tokio::time::Instant::now() < deadline, "{error}");
            tokio::task::yield_now().await;
        }
        let stored = std::fs::read(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        let empty = why().await;
        std::fs::remove_file(&path).unwrap();
        let gone = why().await;
        std::fs::write(&path, "no database").unwrap();
        let other = why().await;
        for (said, part) in
            [(&empty, "is empty or gone"), (&gone, "put the file back"), (&other, "unable to open the database")]
        {
            assert!(said.contains(part) && said.contains("store.redb") && !said.contains("another"), "{said}");
        }
        std::fs::write(&path, stored).unwrap();
        begin().await.unwrap().stop().await.unwrap();
    }
}
