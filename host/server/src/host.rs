//! The host: core and providers over one client, whatever the API server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_contract::descriptor::Descriptor;
use capwasm_fence::Fence;
use capwasm_object::{json, meta};
use capwasm_providers::{
    Components, Conversions, FileOptions, FolderWatch, Found, Loader, LoaderDependencies, ProviderFiles,
    RecordingMetrics, Recordings, SwapMetrics, wasm_provider,
};
use capwasm_reconcile::{Cache, Interests, Manager, ManagerOptions, Metrics, Source};
use capwasm_remote::{Probing, Remote};
use capwasm_runtime::{Grants, NamedEndpoint, Runtime, RuntimeOptions};
use futures::future::try_join_all;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::crds::Crds;
use crate::diagnostics::Diagnostics;
use crate::engine::Engine;
use crate::fenced::FencedConnector;
use crate::{artifacts, bundle, compile, readiness};

mod crds;
pub mod extra;
mod install;

/// Period of resyncs: Cluster API's own.
pub const SYNC_PERIOD: Duration = Duration::from_mins(10);

/// Timeout of the start of bundled providers.
const PROVIDERS_READY: Duration = Duration::from_secs(120);

/// Options of a host.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of components.
    pub provider_dir: PathBuf,
    /// Options of the WebAssembly runtime.
    pub runtime: RuntimeOptions,
    /// Bundled providers to install: `<name>.wasm` in the folder.
    pub bundled: Vec<String>,
    /// Folder for components that serve or served.
    pub components_dir: Option<PathBuf>,
    /// Whether unsigned components are refused.
    pub require_signatures: bool,
    /// Named endpoints for bundled providers.
    pub endpoints: Vec<(String, NamedEndpoint)>,
    /// Further grants of bundled providers, by name.
    pub grants: Vec<(String, Grants)>,
    /// Configurations of bundled providers, by name.
    pub configurations: Vec<(String, Value)>,
    /// Period of resyncs.
    pub sync_period: Duration,
    /// Whether to run the core reconcilers.
    pub core: bool,
    /// Conversion by this process for the API server; `None`: only one version of each kind is served.
    pub conversions: Option<Arc<Conversions>>,
    /// Files of recorded calls; `None`: recordings are in memory only.
    pub recordings: Option<FileOptions>,
    /// What has to be passed by writes that do not go through the client of [`start`]: those of guests, and to workload clusters.
    pub fence: Fence,
}

impl Options {
    /// A host with core, without grants, which caches in `data_dir`.
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
            fence: Fence::none(),
        }
    }

    /// Adds the engine's endpoint, and docker-infra's configuration for it.
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
    /// Puts deleted CRDs back.
    keeping: Option<JoinHandle<()>>,
    shutdown: CancellationToken,
    /// What this process found of WasmProviders.
    found: watch::Receiver<Found>,
    _watch: Option<FolderWatch>,
}

/// Diagnostics of a starting host: CRDs and bundled providers are awaited.
pub fn diagnostics(options: &Options) -> Result<Diagnostics> {
    let diagnostics = Diagnostics::default();
    diagnostics.readiness.awaits(core_crds(options)?.iter().map(|crd| meta::name(crd).to_owned()));
    diagnostics.readiness.awaits(options.bundled.iter().map(|name| readiness::provider(name)));
    Ok(diagnostics)
}

/// Installs CRDs, starts controllers and bundled providers, and returns when all of them serve that can. What keeps one from it is logged,
/// and a condition of its WasmProvider.
pub async fn start(client: kube::Client, options: &Options, diagnostics: &Diagnostics) -> Result<Host> {
    let readiness = &diagnostics.readiness;
    let crds = Crds { crds: core_crds(options)?, conversions: options.conversions.clone(), providers: Vec::new() };
    let installed = try_join_all(crds.crds.iter().map(async |crd| {
        let ours = crds.install(&client, crd).await?;
        readiness.served(meta::name(crd));
        anyhow::Ok(ours.then(|| meta::name(crd).to_owned()))
    }))
    .await?;
    let runtime = compile::runtime(options.runtime.clone())?;
    let files = ProviderFiles::open(&options.provider_dir)?;
    let (bundled, providers) = bundled(&client, &runtime, &files, options).await?;
    for descriptor in &bundled {
        readiness.awaits(crd_names(descriptor));
    }
    let mut host = controllers(&client, runtime, files, options, &diagnostics.registry).await?.run();
    let crds = Crds { providers, ..crds };
    let keeping = crds.keep(installed.into_iter().flatten().collect(), client.clone(), host.shutdown.clone());
    host.keeping = Some(tokio::spawn(keeping));
    let serving = try_join_all(bundled.iter().map(async |descriptor| {
        if let Err(why) = host.serving(&client, &descriptor.name).await? {
            tracing::error!(provider = descriptor.name, why, "a bundled provider does not serve; the others do");
        }
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

/// CRDs that the host installs.
fn core_crds(options: &Options) -> Result<Vec<Value>> {
    let mut crds = bundle::crds()?;
    crds.retain(|crd| options.core || json::text(crd, "/spec/group") == Some(wasm_provider::GROUP));
    Ok(crds)
}

fn crd_names(descriptor: &Descriptor) -> impl Iterator<Item = String> {
    descriptor.kinds.iter().map(|kind| meta::name(&kind.crd).to_owned())
}

/// Controllers before they run.
struct Controllers {
    manager: Manager,
    recordings: Recordings,
    found: watch::Receiver<Found>,
    watch: Option<FolderWatch>,
}

impl Controllers {
    fn run(self) -> Host {
        let shutdown = CancellationToken::new();
        let running = tokio::spawn({
            let (manager, shutdown) = (self.manager.clone(), shutdown.clone());
            async move { manager.run(shutdown).await }
        });
        let Controllers { recordings, found, watch, .. } = self;
        Host { recordings, running, keeping: None, shutdown, found, _watch: watch }
    }
}

/// Creates the controllers and their metrics.
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
    let connector = Arc::new(FencedConnector(options.fence.clone()));
    let remote = Remote::with(cache.clone(), interests.clone(), connector, Probing::default());
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
    let (finds, found) = watch::channel(Found::new());
    let loader = Loader::new(LoaderDependencies {
        runtime,
        manager: manager.clone(),
        interests,
        remote,
        fence: options.fence.clone(),
        files,
        artifacts: Some(artifacts::registry()),
        require_signatures: options.require_signatures,
        components: options.components_dir.as_deref().map(Components::open).transpose()?,
        recordings: Some(recordings.clone()),
        conversions: options.conversions.clone(),
        calls,
        swaps: SwapMetrics::register(&mut registry.lock()),
        found: finds,
    });
    manager.add(kind, Arc::new(loader), 4);
    Ok(Controllers { manager, recordings, found, watch: watch.ok() })
}

impl Host {
    /// Waits until a provider serves in this process and its WasmProvider is Ready, or until it is plain why that will not be. A status of
    /// an earlier process does not suffice.
    async fn serving(&self, client: &kube::Client, name: &str) -> Result<Result<(), String>> {
        let gvk = GroupVersionKind::gvk(wasm_provider::GROUP, "v1alpha1", wasm_provider::KIND);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
        let status = |object: &DynamicObject| serde_json::json!({"status": object.data.get("status")});
        let says_so = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| capwasm_api::conditions::is_true(&status(object), "Ready"))
        };
        let mut found = self.found.clone();
        let waited = tokio::time::timeout(PROVIDERS_READY, async {
            let serves = found.wait_for(|found| found.contains_key(name)).await?.get(name).cloned();
            if let Some(Err(why)) = serves {
                return Ok(Err(why));
            }
            kube::runtime::wait::await_condition(api.clone(), name, says_so).await?;
            anyhow::Ok(Ok(()))
        });
        if let Ok(Ok(found)) = waited.await {
            return Ok(found);
        }
        let ready = api.get_opt(name).await?.and_then(|object| capwasm_api::conditions::get(&status(&object), "Ready"));
        Ok(Err(match ready {
            Some(ready) => format!("{}: {}", ready.reason, ready.message),
            None => "nothing says why".to_owned(),
        }))
    }

    /// Waits for running passes, then stops.
    pub async fn stop(self) {
        self.shutdown.cancel();
        for task in [Some(self.running), self.keeping].into_iter().flatten() {
            if let Err(error) = task.await {
                tracing::error!(%error, "the controllers panicked");
            }
        }
        self.recordings.close().await;
    }
}

/// Installs WasmProviders of bundled components and returns them with their descriptors. For other files in the folder users
/// write WasmProviders.
async fn bundled(
    client: &kube::Client,
    runtime: &Runtime,
    files: &ProviderFiles,
    options: &Options,
) -> Result<(Vec<Descriptor>, Vec<Value>)> {
    let (mut descriptors, mut objects) = (Vec::new(), Vec::new());
    for name in &options.bundled {
        let file = format!("{name}.wasm");
        if !files.names()?.contains(&file) {
            bail!(
                "provider {file} is not in {}: run `cargo xtask build`, give --provider-dir, or choose others with --providers",
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
        objects.push(object);
    }
    Ok((descriptors, objects))
}

#[cfg(test)]
mod tests;
