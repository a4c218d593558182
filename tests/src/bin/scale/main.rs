//! Clusters on the simulator: time, CPU time, peak memory, API writes and provider calls. Prints a row per shape, and details
//! below it. Usage: `scale CAPWASM_BINARY [--openstack] [--kubectl PROCESSES] [--delete] SHAPE...`, where a shape is a number of
//! single-node clusters (`100`) or one cluster's control-plane machines and workers (`3+50`). With `--openstack` the machines are
//! servers of a fake OpenStack, which runs in this process. With `--kubectl` the manifests are created by that many processes at
//! the same time instead of by this one; with `--delete` all clusters are deleted in the end.

mod client;
mod host;
mod metrics;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use client::Client;
use host::Host;

/// Longest time for all clusters of one row.
const LONGEST: Duration = Duration::from_secs(600);
/// Time between ready and the look at idle memory.
const REST: Duration = Duration::from_secs(20);
/// Kinds whose writes make up a machine.
const MACHINE_KINDS: [&str; 6] =
    ["Machine", "KubeadmConfig", "DockerMachine", "OpenStackMachine", "OpenStackServer", "Secret"];

/// What is provisioned at once.
#[derive(Clone, Copy)]
pub struct Shape {
    clusters: usize,
    control_planes: usize,
    workers: usize,
}

impl Shape {
    fn parse(text: &str) -> Result<Shape> {
        let number = |text: &str| text.parse().with_context(|| format!("{text:?} is not a number"));
        Ok(match text.split_once('+') {
            Some((planes, workers)) => {
                Shape { clusters: 1, control_planes: number(planes)?, workers: number(workers)? }
            }
            None => Shape { clusters: number(text)?, control_planes: 1, workers: 0 },
        })
    }

    fn machines(self) -> usize {
        self.clusters * (self.control_planes + self.workers)
    }

    /// Between two looks at how far it is. Looking costs the host as well.
    fn interval(self) -> Duration {
        Duration::from_millis(50.max(2 * self.clusters as u64))
    }
}

/// How it is measured.
#[derive(Default)]
struct How {
    openstack: bool,
    /// Processes of kubectl that create the manifests; none: this process applies them.
    kubectl: Option<usize>,
    delete: bool,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: scale CAPWASM_BINARY [--openstack] [--kubectl PROCESSES] [--delete] SHAPE...";
    let binary = PathBuf::from(arguments.next().context(usage)?);
    let mut how = How::default();
    let mut shapes = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--openstack" => how.openstack = true,
            "--delete" => how.delete = true,
            "--kubectl" => how.kubectl = Some(arguments.next().context(usage)?.parse().context(usage)?),
            shape => shapes.push((argument.clone(), Shape::parse(shape)?)),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{} cores, {:.1} ms per fsync of 4 kB", std::thread::available_parallelism()?, fsync_millis()?);
    println!(
        "   shape  start s  idle MB  seconds  s/machine  host ms CPU/machine  host peak MB  sim ms CPU/machine  sim peak MB  \
         writes/machine  its objects only  deleted s"
    );
    for (text, shape) in shapes {
        let row = runtime.block_on(measure(&binary, shape, &how))?;
        row.print(&text, shape.machines() as f64);
    }
    Ok(())
}

/// What was measured of one shape.
struct Row {
    start: f64,
    idle_mb: f64,
    seconds: f64,
    host: Cost,
    sim: Cost,
    /// API writes to each kind.
    writes: BTreeMap<String, f64>,
    /// Calls of each provider function, until all was there, and for the deletion.
    calls: [BTreeMap<String, f64>; 2],
    /// Medians of the CPU time of calls by function, in seconds: their own, and what they ask of others.
    medians: [BTreeMap<String, f64>; 2],
    deleted: Option<f64>,
}

/// What a process took.
struct Cost {
    cpu_seconds: f64,
    peak_mb: f64,
}

impl Row {
    fn print(&self, shape: &str, machines: f64) {
        let all: f64 = self.writes.values().sum();
        let own: f64 = MACHINE_KINDS.iter().filter_map(|kind| self.writes.get(*kind)).sum();
        println!(
            "{shape:>8}  {:7.2}  {:7.0}  {:7.1}  {:9.3}  {:19.1}  {:12.0}  {:18.1}  {:11.0}  {:14.1}  {:16.1}  {}",
            self.start,
            self.idle_mb,
            self.seconds,
            self.seconds / machines,
            self.host.cpu_seconds * 1e3 / machines,
            self.host.peak_mb,
            self.sim.cpu_seconds * 1e3 / machines,
            self.sim.peak_mb,
            all / machines,
            own / machines,
            self.deleted.map_or("        -".to_owned(), |seconds| format!("{seconds:9.1}")),
        );
        print_by("writes per machine", &self.writes, |writes| format!("{:.1}", writes / machines));
        print_by("calls per machine", &self.calls[0], |calls| format!("{:.1}", calls / machines));
        if self.deleted.is_some() {
            print_by("calls per machine to delete it", &self.calls[1], |calls| format!("{:.1}", calls / machines));
        }
        for (what, medians) in ["a call", "what a call asks of others"].iter().zip(&self.medians) {
            print_by(&format!("median CPU time of {what} at most"), medians, |median| format!("{} ms", median * 1e3));
        }
    }
}

fn print_by(what: &str, figures: &BTreeMap<String, f64>, show: impl Fn(f64) -> String) {
    let figures: Vec<String> = figures.iter().map(|(name, figure)| format!("{name} {}", show(*figure))).collect();
    println!("          {what}: {}", figures.join(", "));
}

async fn measure(binary: &Path, shape: Shape, how: &How) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let mut host = Host::start(binary, folder.path())?;
    let result = provision(binary, &host, folder.path(), shape, how).await;
    host.stop()?;
    result
}

async fn provision(binary: &Path, host: &Host, folder: &Path, shape: Shape, how: &How) -> Result<Row> {
    let client = Client::of(&folder.join("kubeconfig")).await?;
    let cloud = if how.openstack { Some(client.openstack(folder).await?) } else { None };
    let manifests = client::Manifests::of(binary, shape)?;
    // The allocator gives back what starting took.
    tokio::time::sleep(REST).await;
    let idle_mb = host.process().resident()?;
    let simulator = host.simulator()?;
    let before = metrics::read(host.diagnostics)?;
    let cpu = (host.process().cpu()?, simulator.cpu()?);
    let started = Instant::now();
    match how.kubectl {
        Some(processes) => manifests.create(processes, folder).await?,
        None if how.openstack => client.apply_openstack(shape).await?,
        None => client.apply(&manifests).await?,
    }
    while !client.is_provisioned(shape).await? {
        if started.elapsed() > LONGEST {
            bail!("{} of {} clusters are available after {LONGEST:?}", client.available().await?, shape.clusters);
        }
        tokio::time::sleep(shape.interval()).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    let after = metrics::read(host.diagnostics)?;
    let cpu = (host.process().cpu()? - cpu.0, simulator.cpu()? - cpu.1);
    let (host_cost, sim_cost) = (
        Cost { cpu_seconds: cpu.0, peak_mb: host.process().peak()? },
        Cost { cpu_seconds: cpu.1, peak_mb: simulator.peak()? },
    );
    let deleted = match how.delete {
        true => Some(client.delete_all(shape).await?.as_secs_f64()),
        false => None,
    };
    if let Some(cloud) = cloud {
        let requests = cloud.journal().len() as f64;
        eprintln!("{requests} requests to OpenStack, {:.1} for each machine", requests / shape.machines() as f64);
        cloud.stop().await;
    }
    let end = metrics::read(host.diagnostics)?;
    let called = [metrics::calls(&before)?, metrics::calls(&after)?, metrics::calls(&end)?];
    Ok(Row {
        start: host.start.as_secs_f64(),
        idle_mb,
        seconds,
        host: host_cost,
        sim: sim_cost,
        writes: since(&metrics::writes(&before)?, &metrics::writes(&after)?),
        calls: [since(&called[0], &called[1]), since(&called[1], &called[2])],
        medians: [metrics::medians(&after, "cpu")?, metrics::medians(&after, "outside_cpu")?],
        deleted,
    })
}

/// How much each count has grown, of those that have.
fn since(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    after
        .iter()
        .map(|(name, count)| (name.clone(), count - before.get(name).copied().unwrap_or_default()))
        .filter(|(_, count)| *count > 0.0)
        .collect()
}

/// What a durable write costs on this disk.
fn fsync_millis() -> Result<f64> {
    let mut file = tempfile::tempfile()?;
    let started = Instant::now();
    for _ in 0..100 {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    Ok(started.elapsed().as_secs_f64() * 10.0)
}
