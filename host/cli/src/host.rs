//! The host: core reconcilers and providers over one client, whatever API server is behind it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_providers::{
    Components, Conversions, FileOptions, FolderWatch, Loader, Parts, ProviderFiles, RecordingMetrics, Recordings,
    Serving, SwapMetrics, served, wasm_provider,
};
use capwasm_reconcile::{Cache, Interests, Manager, ManagerOptions, Metrics, Source};
use capwasm_remote::Remote;
use capwasm_runtime::{Grants, NamedEndpoint, Runtime};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{artifacts, bundle, compile};

pub mod extra;
mod install;

/// How long providers may take until they serve.
const PROVIDERS_READY: Duration = Duration::from_secs(120);

/// What the host runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder with components.
    pub provider_dir: PathBuf,
    /// Folder of compiled components.
    pub aot_dir: Option<PathBuf>,
    /// Folder of components that serve or served.
    pub components_dir: Option<PathBuf>,
    /// Whether artifacts of registries have to be signed.
    pub require_signatures: bool,
    /// Named endpoints that bundled providers are granted.
    pub endpoints: Vec<(String, NamedEndpoint)>,
    /// What bundled providers are granted beside what they want, by name.
    pub grants: Vec<(String, Grants)>,
    /// Configuration of bundled providers, by name.
    pub configurations: Vec<(String, Value)>,
    /// How often every object is looked at when nothing changes.
    pub sync_period: Duration,
    /// Whether the core reconcilers run.
    pub core: bool,
    /// Who converts, where the API server asks this process; otherwise one version of each kind is served.
    pub conversions: Option<Arc<Conversions>>,
    /// Where calls are recorded; without it, in memory alone.
    pub recordings: Option<FileOptions>,
}

/// A running host.
pub struct Host {
    /// What it measures.
    pub registry: Arc<Mutex<Registry>>,
    recordings: Recordings,
    running: JoinHandle<()>,
    shutdown: CancellationToken,
    _watch: Option<FolderWatch>,
}

/// Installs CRDs, starts controllers and bundled providers, and returns once all of them serve.
pub async fn start(client: kube::Client, options: &Options) -> Result<Host> {
    let client_config = options.conversions.as_ref().and_then(|conversions| conversions.client_config());
    let versions = match (&client_config, &options.conversions) {
        (Some(config), _) => Serving::Webhook(config),
        (None, Some(_)) => Serving::All,
        (None, None) => Serving::Stored,
    };
    for crd in bundle::crds()? {
        let crd = served(&crd, versions);
        if options.core || crd.pointer("/spec/group").and_then(Value::as_str) == Some(wasm_provider::GROUP) {
            install::crd(&client, &crd).await?;
        }
    }
    let runtime = compile::runtime(options.aot_dir.clone())?;
    let files = ProviderFiles::open(&options.provider_dir)?;
    let bundled = bundled(&client, &runtime, &files, options).await?;
    let host = controllers(&client, runtime, files, options).await?.run();
    for name in bundled {
        serving(&client, &name).await?;
    }
    Ok(host)
}

/// Controllers that wait to be run.
struct Controllers {
    manager: Manager,
    registry: Registry,
    recordings: Recordings,
    watch: Option<FolderWatch>,
}

impl Controllers {
    fn run(self) -> Host {
        let shutdown = CancellationToken::new();
        let running = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { self.manager.run(shutdown).await }
        });
        Host {
            registry: Arc::new(Mutex::new(self.registry)),
            recordings: self.recordings,
            running,
            shutdown,
            _watch: self.watch,
        }
    }
}

/// Everything that reconciles, and what it measures.
async fn controllers(
    client: &kube::Client,
    runtime: Arc<Runtime>,
    files: ProviderFiles,
    options: &Options,
) -> Result<Controllers> {
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::register(&mut registry));
    let interests = Arc::new(Interests::default());
    let cache = Cache::new(client.clone(), Source::Management, interests.clone());
    let remote = Remote::new(cache.clone(), interests.clone());
    let manager_options = ManagerOptions { resync: options.sync_period, ..ManagerOptions::default() };
    let manager = Manager::new(cache.clone(), interests.clone(), Arc::new(remote.clone()), metrics, manager_options);
    if options.core {
        for controller in capwasm_core::controllers(remote.clone()) {
            manager.add(controller.kind, controller.reconciler, controller.concurrency);
        }
    }
    let kind = cache.kind_at(wasm_provider::API_VERSION, wasm_provider::KIND).await?;
    let watch = files.watch(interests.clone()).map_err(|error| {
        tracing::warn!(
            error = format!("{:#}", anyhow::Error::from(error)),
            "files that are put into the provider folder are seen late"
        );
    });
    let recordings = Recordings::new(options.recordings.clone(), RecordingMetrics::register(&mut registry))
        .context("unable to start the thread that writes recordings")?;
    let calls = options.conversions.as_ref().map(|conversions| conversions.calls().clone()).unwrap_or_default();
    calls.register(&mut registry);
    let loader = Loader::new(Parts {
        runtime,
        manager: manager.clone(),
        interests,
        remote,
        files,
        artifacts: Some(artifacts::registry()),
        require_signatures: options.require_signatures,
        components: options.components_dir.as_deref().map(Components::open).transpose()?,
        recordings: Some(recordings.clone()),
        conversions: options.conversions.clone(),
        calls,
        swaps: SwapMetrics::register(&mut registry),
    });
    manager.add(kind, Arc::new(loader), 4);
    Ok(Controllers { manager, registry, recordings, watch: watch.ok() })
}

impl Host {
    /// Lets running passes finish, then stops.
    pub async fn stop(self) {
        self.shutdown.cancel();
        if let Err(error) = self.running.await {
            tracing::error!(%error, "the controllers panicked");
        }
        self.recordings.close().await;
    }
}

/// WasmProviders of the files that the project ships; returns their names. Other files in the folder are left to the
/// WasmProviders that a user writes: nothing is granted to them by being there.
async fn bundled(
    client: &kube::Client,
    runtime: &Runtime,
    files: &ProviderFiles,
    options: &Options,
) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in bundle::BUNDLED {
        let file = format!("{name}.wasm");
        if !files.names()?.contains(&file) {
            bail!(
                "provider {file} is not in {}: run `cargo xtask build`, or give --provider-dir",
                options.provider_dir.display()
            );
        }
        let provider = runtime
            .load(&files.read(&file).await?, capwasm_runtime::Limits::default())
            .await
            .with_context(|| format!("unable to load {file}"))?;
        let configuration = options.configurations.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        let told =
            options.grants.iter().find(|(of, _)| of == name).map(|(_, grants)| grants.clone()).unwrap_or_default();
        let object = wasm_provider::bundled(provider.descriptor(), &file, &options.endpoints, told, configuration)?;
        install::wasm_provider(client, &object).await?;
        names.push(name.to_owned());
    }
    Ok(names)
}

async fn serving(client: &kube::Client, name: &str) -> Result<()> {
    let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
    let is_serving = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| {
            capwasm_api::conditions::is_true(&serde_json::json!({"status": object.data.get("status")}), "Ready")
        })
    };
    let waited =
        tokio::time::timeout(PROVIDERS_READY, kube::runtime::wait::await_condition(api.clone(), name, is_serving))
            .await;
    if let Ok(Ok(_)) = waited {
        return Ok(());
    }
    let object = api.get_opt(name).await?;
    let ready = object.and_then(|object| {
        capwasm_api::conditions::get(&serde_json::json!({"status": object.data.get("status")}), "Ready")
    });
    match ready {
        Some(ready) => bail!("provider {name} does not serve: {}: {}", ready.reason, ready.message),
        None => bail!("provider {name} does not serve, and nothing says why"),
    }
}

#[cfg(test)]
mod tests;
