//! `capwasm quickstart`: provisions a cluster in one process, and deletes it.

mod extra;
mod progress;
mod sample;
mod verify;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use capwasm_contract::descriptor::Descriptor;
use capwasm_server::engine::{self, Engine, Machines};
use capwasm_server::up::{self, Up};
use capwasm_server::{bundle, embedded, files, host};
use clap::Args;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use self::progress::Progress;
use crate::{describe, generate, get, signals, tree};

/// Options of `capwasm quickstart`.
#[derive(Args)]
pub struct Options {
    /// Name of the sample cluster.
    #[arg(default_value = "quick")]
    name: String,
    #[command(flatten)]
    engine: crate::engine::Options,
    /// Kubernetes version of the machines.
    #[arg(long, default_value = "v1.34.0")]
    kubernetes_version: String,
    /// Control-plane machines.
    #[arg(long, default_value_t = 1)]
    control_plane_machine_count: u32,
    /// Worker machines.
    #[arg(long, default_value_t = 2)]
    worker_machine_count: u32,
    /// Leave everything running until Ctrl-C.
    #[arg(long)]
    keep: bool,
    /// Folder with components. Default: `plugins` beside the binary.
    #[arg(long)]
    provider_dir: Option<PathBuf>,
    /// A component to run besides: it is granted what it wants. May be given again.
    #[arg(long, value_name = "FILE")]
    provider: Vec<PathBuf>,
    /// Manifests to apply when the cluster is there; those of kinds of `--provider` are waited for.
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Folder for everything; kept afterwards. Default: a temporary one.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Seconds until giving up. Default: 180, with kindest/node images 1200.
    #[arg(long)]
    timeout: Option<u64>,
}

/// Namespace of the sample cluster.
const NAMESPACE: &str = "default";

pub async fn run(options: Options) -> Result<ExitCode> {
    let started = Instant::now();
    let shutdown = signals::shutdown()?;
    let temporary = match &options.data_dir {
        Some(_) => None,
        None => {
            Some(tempfile::Builder::new().prefix("capwasm-").tempdir().context("unable to make a temporary folder")?)
        }
    };
    let folder = match (&options.data_dir, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => bail!("no data folder"),
    };
    let progress = Progress::new();
    let engine = tokio::select! {
        engine = start_engine(&options, &folder, &progress) => engine?,
        () = shutdown.cancelled() => bail!("interrupted"),
    };
    // However this ends, a simulated engine that was started for it ends too.
    let _simulator = engine.simulator.map(Simulator);
    let sample = options
        .sample
        .as_ref()
        .map(|path| std::fs::read_to_string(path).with_context(|| format!("unable to read {}", path.display())));
    let sample = sample.transpose()?.unwrap_or_default();
    let mut provider_dir = bundle::provider_dir(options.provider_dir.clone())?;
    if !options.provider.is_empty() {
        provider_dir = host::extra::folder(&provider_dir, &folder)?;
    }
    let (up, providers) = tokio::select! {
        up = manage(provider_dir, &folder, engine, &options.provider, &shutdown) => up?,
        () = shutdown.cancelled() => bail!("interrupted"),
    };
    progress.say(&format!(
        "management cluster ready after {:.1?} on {}; machines: {}",
        started.elapsed(),
        up.server.url,
        up.engine.describe()
    ));
    for provider in &providers {
        progress.say(&format!("provider {} {} serves, and is granted all it wants", provider.name, provider.version));
    }
    let limit = options.timeout.unwrap_or(if up.engine.machines == Machines::Kind { 1200 } else { 180 });
    let provisioned = tokio::select! {
        result = tokio::time::timeout(Duration::from_secs(limit), async {
            let workload = provision(&options, &up, &folder, &progress).await?;
            sample::apply(&up.server.client, &sample).await?;
            extra::settled(&up.server.client, &sample, &providers, &progress).await?;
            Ok(workload)
        }) => match result {
            Ok(result) => result,
            Err(_) => Err(anyhow::anyhow!("not everything is there after {limit} s")),
        },
        () = shutdown.cancelled() => Err(anyhow::anyhow!("interrupted")),
    };
    progress.finish();
    let code = match provisioned {
        Ok(workload) => {
            let shown = show(&options, &up, &workload, started).await;
            if options.keep {
                println!("Running until Ctrl-C.");
                shutdown.cancelled().await;
            }
            match shown {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("error: {error:#}");
                    ExitCode::FAILURE
                }
            }
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            if let Ok(tree) = describe::collect(&up.server.client, NAMESPACE, &options.name).await {
                eprintln!("{}", tree::render(&tree, true, Timestamp::now()));
            }
            for line in extra::unsettled(&up.server.client, &sample, &providers).await.unwrap_or_default() {
                eprintln!("{line}");
            }
            ExitCode::FAILURE
        }
    };
    tear_down(&options, up, &sample).await?;
    Ok(code)
}

struct Simulator(u32);

impl Drop for Simulator {
    fn drop(&mut self) {
        if let Err(error) = engine::stop_simulator(self.0) {
            tracing::debug!(%error, "the simulated engine ended by itself");
        }
    }
}

async fn start_engine(options: &Options, folder: &Path, progress: &Progress) -> Result<Engine> {
    embedded::private_folder(folder)?;
    progress.say("starting: container engine, API server, providers");
    engine::start_for(&options.engine.server(), folder, &options.kubernetes_version, &mut |text| progress.say(&text))
        .await
}

/// Starts API server and host on an engine.
async fn manage(
    provider_dir: PathBuf,
    folder: &Path,
    engine: Engine,
    providers: &[PathBuf],
    shutdown: &CancellationToken,
) -> Result<(Up, Vec<Descriptor>)> {
    let server = embedded::Options {
        data_dir: folder.to_owned(),
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        kubeconfig: Some(folder.join("management.kubeconfig")),
    };
    let host = host::Options::new(provider_dir, folder);
    let options = up::Options { server, host, diagnostics: None };
    let up = up::start(&options, engine, shutdown).await?;
    if providers.is_empty() {
        return Ok((up, Vec::new()));
    }
    match host::extra::start(&up.server.client, &up.host, &options.host.on(&up.engine), providers).await {
        Ok(providers) => Ok((up, providers)),
        Err(error) => {
            up.stop().await?;
            Err(error)
        }
    }
}

/// Applies the sample and waits until it is provisioned. Returns the path of the workload kubeconfig.
async fn provision(options: &Options, up: &Up, folder: &Path, progress: &Progress) -> Result<PathBuf> {
    let client = &up.server.client;
    sample::apply(client, &manifests(options, up)).await?;
    progress.say(&format!(
        "applied Cluster {}, a control plane of {} and {} workers",
        options.name, options.control_plane_machine_count, options.worker_machine_count
    ));
    let machines = options.control_plane_machine_count + options.worker_machine_count;
    verify::provisioned(client, NAMESPACE, &options.name, machines, progress).await?;
    let kubeconfig = get::kubeconfig(client.clone(), NAMESPACE, &options.name).await?;
    verify::nodes(&kubeconfig, machines).await?;
    let path = folder.join(format!("{}.kubeconfig", options.name));
    files::write_private(&path, &kubeconfig)?;
    Ok(path)
}

/// Manifests of the sample.
fn manifests(options: &Options, up: &Up) -> String {
    generate::cluster(&generate::Options {
        name: options.name.clone(),
        namespace: NAMESPACE.to_owned(),
        kubernetes_version: options.kubernetes_version.clone(),
        control_plane_machine_count: options.control_plane_machine_count,
        worker_machine_count: options.worker_machine_count,
        // kindest/node ships a CNI; simulated nodes are Ready without one.
        post_init_command: (up.engine.machines == Machines::Kind).then(|| sample::INSTALL_CNI.to_owned()),
    })
}

async fn show(options: &Options, up: &Up, workload: &Path, started: Instant) -> Result<()> {
    let tree = describe::collect(&up.server.client, NAMESPACE, &options.name).await?;
    println!("\n{}", tree::render(&tree, false, Timestamp::now()));
    println!(
        "Cluster {} is provisioned and available after {:.1?}; machines: {}.",
        options.name,
        started.elapsed(),
        up.engine.describe()
    );
    if options.keep {
        println!("  kubectl --kubeconfig {} get clusters,machines", up.server.kubeconfig.display());
        println!("  kubectl --kubeconfig {} get nodes", workload.display());
    } else {
        println!(
            "Everything is torn down again now. To look around, run it with --keep: it prints kubeconfigs for kubectl."
        );
    }
    Ok(())
}

/// Deletes the sample, waits until it is gone, and stops host and server.
async fn tear_down(options: &Options, up: Up, sample: &str) -> Result<()> {
    eprintln!("deleting cluster {}", options.name);
    let deleted = tokio::time::timeout(Duration::from_secs(120), async {
        // Its objects may need the cluster to be there.
        sample::delete(&up.server.client, sample).await?;
        sample::delete(&up.server.client, &manifests(options, &up)).await
    })
    .await;
    up.stop().await?;
    deleted.context("the cluster is not gone after 120 s; look for its containers")?
}
