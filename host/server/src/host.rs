//! The host: core reconcilers and providers over one client, whatever API server is behind it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_contract::descriptor::Descriptor;
use capwasm_object::{json, meta};
use capwasm_providers::{
    Components, Conversions, FileOptions, FolderWatch, Loader, LoaderDependencies, ProviderFiles, RecordingMetrics,
    Recordings, Serving, SwapMetrics, served, wasm_provider,
};
use capwasm_reconcile::{Cache, Interests, Manager, ManagerOptions, Metrics, Source};
use capwasm_remote::Remote;
use capwasm_runtime::{Grants, NamedEndpoint, Runtime, RuntimeOptions};
use futures::future::try_join_all;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::diagnostics::Diagnostics;
use crate::engine::Engine;
use crate::{artifacts, bundle, compile, readiness};

pub mod extra;
mod install;

/// How often every object is looked at when nothing changes: Cluster API's own period.
pub const SYNC_PERIOD: Duration = Duration::from_mins(10);

/// How long providers may take until they serve.
const PROVIDERS_READY: Duration = Duration::from_secs(120);

/// What the host runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder with components.
    pub provider_dir: PathBuf,
    /// What components run on.
    pub runtime: RuntimeOptions,
    /// Names of the providers that the host installs by itself: `<name>.wasm` in the folder.
    pub bundled: Vec<String>,
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

impl Options {
    /// A host with core and nothing granted, which keeps what it compiled and loaded in `data_dir`.
    pub fn new(provider_dir: PathBuf, data_dir: &Path) -> Options {
        Options {
            provider_dir,
            runtime: compile::options(Some(data_dir.join("aot"))),
            bundled: bundle::BUNDLED.map(str::to_owned).to_vec(),
            components_dir: Some(data_dir.join("components")),
            require_signatures: false,
            endpoints: Vec::new(),
            grants: Vec::new(),
            configurations: Vec::new(),
            sync_period: SYNC_PERIOD,
            core: true,
            conversions: None,
            recordings: None,
        }
    }

    /// The same on an engine.
    #[must_use]
    pub fn on(mut self, engine: &Engine) -> Options {
        self.endpoints.push(("docker".to_owned(), engine.endpoint()));
        self.configurations.push(("docker-infra".to_owned(), engine.configuration()));
        self
    }
}

/// A running host.
pub struct Host {
    recordings: Recordings,
    running: JoinHandle<()>,
    shutdown: CancellationToken,
    /// Names of the WasmProviders that serve.
    serving: watch::Receiver<BTreeSet<String>>,
    _watch: Option<FolderWatch>,
}

/// What a host with these options tells about itself when it starts: nothing that comes with it is served yet.
pub fn diagnostics(options: &Options) -> Result<Diagnostics> {
    let diagnostics = Diagnostics::default();
    diagnostics.readiness.awaits(core_crds(options)?.iter().map(|crd| meta::name(crd).to_owned()));
    diagnostics.readiness.awaits(options.bundled.iter().map(|name| readiness::provider(name)));
    Ok(diagnostics)
}

/// Installs CRDs, starts controllers and bundled providers, and returns once all of them serve.
pub async fn start(client: kube::Client, options: &Options, diagnostics: &Diagnostics) -> Result<Host> {
    let readiness = &diagnostics.readiness;
    let client_config = options.conversions.as_ref().and_then(|conversions| conversions.client_config());
    let versions = match (&client_config, &options.conversions) {
        (Some(config), _) => Serving::Webhook(config),
        (None, Some(_)) => Serving::All,
        (None, None) => Serving::Stored,
    };
    let crds = core_crds(options)?;
    try_join_all(crds.iter().map(async |crd| {
        install::crd(&client, &served(crd, versions)).await?;
        readiness.served(meta::name(crd));
        anyhow::Ok(())
    }))
    .await?;
    let runtime = compile::runtime(options.runtime.clone())?;
    let files = ProviderFiles::open(&options.provider_dir)?;
    let bundled = bundled(&client, &runtime, &files, options).await?;
    for descriptor in &bundled {
        readiness.awaits(crd_names(descriptor));
    }
    let host = controllers(&client, runtime, files, options, &diagnostics.registry).await?.run();
    let serving = try_join_all(bundled.iter().map(async |descriptor| {
        host.serving(&client, &descriptor.name).await?;
        crd_names(descriptor).for_each(|crd| readiness.served(&crd));
        readiness.served(&readiness::provider(&descriptor.name));
        anyhow::Ok(())
    }))
    .await;
    match serving {
        Ok(_) => Ok(host),
        Err(error) => {
            host.stop().await;
            Err(error)
        }
    }
}

/// CRDs that the host installs by itself.
fn core_crds(options: &Options) -> Result<Vec<Value>> {
    let mut crds = bundle::crds()?;
    crds.retain(|crd| options.core || json::text(crd, "/spec/group") == Some(wasm_provider::GROUP));
    Ok(crds)
}

fn crd_names(descriptor: &Descriptor) -> impl Iterator<Item = String> {
    descriptor.kinds.iter().map(|kind| meta::name(&kind.crd).to_owned())
}

/// Controllers that wait to be run.
struct Controllers {
    manager: Manager,
    recordings: Recordings,
    serving: watch::Receiver<BTreeSet<String>>,
    watch: Option<FolderWatch>,
}

impl Controllers {
    fn run(self) -> Host {
        let shutdown = CancellationToken::new();
        let running = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { self.manager.run(shutdown).await }
        });
        Host { recordings: self.recordings, running, shutdown, serving: self.serving, _watch: self.watch }
    }
}

/// Everything that reconciles, and what it measures.
async fn controllers(
    client: &kube::Client,
    runtime: Arc<Runtime>,
    files: ProviderFiles,
    options: &Options,
    registry: &Mutex<Registry>,
) -> Result<Controllers> {
    let metrics = Arc::new(Metrics::register(&mut registry.lock()));
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
    let recordings = Recordings::new(options.recordings.clone(), RecordingMetrics::register(&mut registry.lock()))
        .context("unable to start the thread that writes recordings")?;
    let calls = options.conversions.as_ref().map(|conversions| conversions.calls().clone()).unwrap_or_default();
    calls.register(&mut registry.lock());
    let (serves, serving) = watch::channel(BTreeSet::new());
    let loader = Loader::new(LoaderDependencies {
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
        swaps: SwapMetrics::register(&mut registry.lock()),
        serving: serves,
    });
    manager.add(kind, Arc::new(loader), 4);
    Ok(Controllers { manager, recordings, serving, watch: watch.ok() })
}

impl Host {
    /// Waits until a provider serves in this process, and its WasmProvider says so. What an earlier process wrote there is not enough.
    async fn serving(&self, client: &kube::Client, name: &str) -> Result<()> {
        let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
        let status = |object: &DynamicObject| serde_json::json!({"status": object.data.get("status")});
        let says_so = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| capwasm_api::conditions::is_true(&status(object), "Ready"))
        };
        let mut serves = self.serving.clone();
        let waited = tokio::time::timeout(PROVIDERS_READY, async {
            serves.wait_for(|serving| serving.contains(name)).await?;
            anyhow::Ok(kube::runtime::wait::await_condition(api.clone(), name, says_so).await?)
        });
        if let Ok(Ok(_)) = waited.await {
            return Ok(());
        }
        let ready = api.get_opt(name).await?.and_then(|object| capwasm_api::conditions::get(&status(&object), "Ready"));
        match ready {
            Some(ready) => bail!("provider {name} does not serve: {}: {}", ready.reason, ready.message),
            None => bail!("provider {name} does not serve, and nothing says why"),
        }
    }

    /// Lets running passes finish, then stops.
    pub async fn stop(self) {
        self.shutdown.cancel();
        if let Err(error) = self.running.await {
            tracing::error!(%error, "the controllers panicked");
        }
        self.recordings.close().await;
    }
}

/// WasmProviders of the files that the project ships; returns what they say of themselves. Other files in the folder are left to the
/// WasmProviders that a user writes: nothing is granted to them by being there.
async fn bundled(
    client: &kube::Client,
    runtime: &Runtime,
    files: &ProviderFiles,
    options: &Options,
) -> Result<Vec<Descriptor>> {
    let mut descriptors = Vec::new();
    for name in &options.bundled {
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
        descriptors.push(provider.descriptor().clone());
    }
    Ok(descriptors)
}

#[cfg(test)]
mod tests;
