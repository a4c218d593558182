//! Clusters on the simulator: time, peak memory, and API writes per machine. Prints a row per shape, and below it the writes per
//! machine of each kind and the cost of provider calls. Usage: `scale CAPWASM_BINARY [--openstack] SHAPE...`, where a shape is a
//! number of single-node clusters (`100`) or one cluster's control-plane machines and workers (`3+50`). With `--openstack` the
//! machines are servers of a fake OpenStack, which runs in this process.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use capwasm_sim_openstack::{Nodes, OpenStack, Options};
use capwasm_tests::openstack::{Access, manifests};
use capwasm_tests::sample::VERSION;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// Longest time for all clusters of one row.
const LONGEST: Duration = Duration::from_secs(600);
/// Time between ready and the look at idle memory.
const REST: Duration = Duration::from_secs(20);
/// Kinds whose writes make up a machine.
const MACHINE_KINDS: [&str; 6] =
    ["Machine", "KubeadmConfig", "DockerMachine", "OpenStackMachine", "OpenStackServer", "Secret"];

/// What is provisioned at once.
#[derive(Clone, Copy)]
struct Shape {
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

    fn machines(self) -> f64 {
        (self.clusters * (self.control_planes + self.workers)) as f64
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let binary = PathBuf::from(arguments.next().context("usage: scale CAPWASM_BINARY SHAPE...")?);
    let shapes: Vec<_> = arguments.collect();
    let on_openstack = shapes.iter().any(|text| text == "--openstack");
    let shapes: Vec<(String, Shape)> = shapes
        .into_iter()
        .filter(|text| text != "--openstack")
        .map(|text| Ok((text.to_string_lossy().into_owned(), Shape::parse(&text.to_string_lossy())?)))
        .collect::<Result<_>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{} cores, {:.1} ms per fsync of 4 kB", std::thread::available_parallelism()?, fsync_millis()?);
    println!("   shape  seconds  s/machine  host idle MB  host peak MB  sim peak MB  writes/machine  its objects only");
    for (text, shape) in shapes {
        let row = runtime.block_on(measure(&binary, shape, on_openstack))?;
        let machines = shape.machines();
        println!(
            "{text:>8}  {:7.1}  {:9.3}  {:12.0}  {:12.0}  {:11.0}  {:14.1}  {:16.1}",
            row.seconds,
            row.seconds / machines,
            row.idle_mb,
            row.host_mb,
            row.sim_mb,
            row.writes / machines,
            row.machine_writes / machines
        );
        let kinds: Vec<String> =
            row.kinds.iter().map(|(kind, writes)| format!("{kind} {:.1}", writes / machines)).collect();
        println!("          {}", kinds.join(", "));
        for (what, medians) in [("a call", &row.calls), ("what a call asks of others", &row.asked)] {
            let medians: Vec<String> =
                medians.iter().map(|(function, median)| format!("{function} {} ms", median * 1e3)).collect();
            println!("          median CPU time of {what} at most: {}", medians.join(", "));
        }
    }
    Ok(())
}

struct Row {
    seconds: f64,
    idle_mb: f64,
    host_mb: f64,
    sim_mb: f64,
    writes: f64,
    machine_writes: f64,
    kinds: BTreeMap<String, f64>,
    calls: BTreeMap<String, f64>,
    asked: BTreeMap<String, f64>,
}

async fn measure(binary: &Path, shape: Shape, on_openstack: bool) -> Result<Row> {
    let folder = tempfile::tempdir()?;
    let mut host = Host::start(binary, folder.path())?;
    let result = provision(binary, &host, folder.path(), shape, on_openstack).await;
    host.stop()?;
    result
}

async fn provision(binary: &Path, host: &Host, folder: &Path, shape: Shape, on_openstack: bool) -> Result<Row> {
    let config = Kubeconfig::read_from(folder.join("kubeconfig"))?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = kube::Client::try_from(config)?;
    let cloud = if on_openstack { Some(openstack(&client, folder).await?) } else { None };
    // The allocator gives back what starting took.
    tokio::time::sleep(REST).await;
    let idle_mb = memory(host.process.id(), "VmRSS:")?;
    let before = writes(&metrics(host.diagnostics)?)?;
    let started = Instant::now();
    let (planes, workers) = (shape.control_planes.to_string(), shape.workers.to_string());
    for index in 0..shape.clusters {
        if on_openstack {
            let (name, spec) = (format!("c{index}"), manifests::cluster_spec());
            let documents = manifests::kubeadm("default", &name, VERSION, shape.control_planes, shape.workers, spec);
            for document in documents {
                apply_one(&client, &document).await?;
            }
            continue;
        }
        let manifests = Command::new(binary)
            .args(["generate", "cluster", &format!("c{index}"), "--control-plane-machine-count", &planes])
            .args(["--worker-machine-count", &workers])
            .output()?;
        apply(&client, &String::from_utf8(manifests.stdout)?).await?;
    }
    let all = |kind: &str| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", kind));
        Api::all_with(client.clone(), &resource)
    };
    let (clusters, machines) = (all("Cluster"), all("Machine"));
    loop {
        let available = count(&clusters, is_available).await?;
        if available == shape.clusters && count(&machines, is_running).await? as f64 == shape.machines() {
            break;
        }
        if started.elapsed() > LONGEST {
            bail!("{available} of {} clusters are available after {LONGEST:?}", shape.clusters);
        }
        tokio::time::sleep(Duration::from_millis(if shape.clusters < 20 { 50 } else { 500 })).await;
    }
    let seconds = started.elapsed().as_secs_f64();
    if let Some(cloud) = cloud {
        let calls = cloud.journal().len() as f64;
        eprintln!("{calls} requests to OpenStack, {:.1} for each machine", calls / shape.machines());
        cloud.stop().await;
    }
    let metrics = metrics(host.diagnostics)?;
    let after = writes(&metrics)?;
    let of = |kinds: Option<&[&str]>| {
        let sum = |counts: &BTreeMap<String, f64>| -> f64 {
            counts
                .iter()
                .filter(|(kind, _)| kinds.is_none_or(|kinds| kinds.contains(&kind.as_str())))
                .map(|(_, count)| count)
                .sum()
        };
        sum(&after) - sum(&before)
    };
    Ok(Row {
        seconds,
        idle_mb,
        host_mb: memory(host.process.id(), "VmHWM:")?,
        sim_mb: memory(simulator(folder)?, "VmHWM:")?,
        writes: of(None),
        machine_writes: of(Some(&MACHINE_KINDS)),
        kinds: after
            .iter()
            .map(|(kind, writes)| (kind.clone(), writes - before.get(kind).copied().unwrap_or_default()))
            .filter(|(_, writes)| *writes > 0.0)
            .collect(),
        calls: medians(&metrics, "cpu")?,
        asked: medians(&metrics, "outside_cpu")?,
    })
}

async fn apply(client: &kube::Client, manifests: &str) -> Result<()> {
    for text in manifests.split("\n---\n") {
        apply_one(client, &serde_saphyr::from_str(text)?).await?;
    }
    Ok(())
}

async fn apply_one(client: &kube::Client, document: &Value) -> Result<()> {
    let api_version = document["apiVersion"].as_str().context("no apiVersion")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, document["kind"].as_str().unwrap_or_default());
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = if kind.kind == "WasmProvider" {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), "default", &resource)
    };
    let name = document["metadata"]["name"].as_str().context("no name")?;
    api.patch(name, &PatchParams::apply("scale").force(), &Patch::Apply(document)).await?;
    Ok(())
}

/// A fake OpenStack whose servers become nodes of the host's simulated engine, which the provider may reach.
async fn openstack(client: &kube::Client, folder: &Path) -> Result<OpenStack> {
    let nodes = Nodes { engine: folder.join("sim.sock"), version: VERSION.to_owned() };
    let cloud = OpenStack::start(Options { nodes: Some(nodes), ..Options::default() }).await?;
    let access = Access::of(&cloud.clouds_yaml(), "ost-demo");
    apply_one(client, &manifests::identity("default", &access.clouds_yaml(), None)).await?;
    let origin = format!("http://{}", cloud.address());
    let grants = json!({
        "apiVersion": "capwasm.dev/v1alpha1", "kind": "WasmProvider", "metadata": {"name": "openstack-infra"},
        "spec": {"grants": {"origins": [origin]}},
    });
    apply_one(client, &grants).await?;
    Ok(cloud)
}

async fn count(api: &Api<DynamicObject>, is: fn(&Value) -> bool) -> Result<usize> {
    Ok(api.list(&ListParams::default()).await?.items.iter().filter(|object| is(&object.data)).count())
}

fn is_running(data: &Value) -> bool {
    data["status"]["phase"] == "Running"
}

fn is_available(data: &Value) -> bool {
    let conditions = data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|list| {
        list.iter().any(|condition| condition["type"] == "Available" && condition["status"] == "True")
    })
}

/// A running `capwasm up`.
struct Host {
    process: Child,
    diagnostics: u16,
    folder: PathBuf,
}

impl Host {
    fn start(binary: &Path, folder: &Path) -> Result<Self> {
        // The provider's compiled code comes from a warm cache, as on every start but the first.
        for _ in 0..2 {
            let mut host = Self::spawn(binary, folder)?;
            if host.is_warm() {
                return Ok(host);
            }
            host.stop()?;
        }
        bail!("`capwasm up` compiles its providers at every start")
    }

    fn spawn(binary: &Path, folder: &Path) -> Result<Self> {
        let warm = folder.join("aot").is_dir();
        let diagnostics = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut process = Command::new(binary)
            .args(["up", "--engine", "sim", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder)
            .arg("--kubeconfig")
            .arg(folder.join("kubeconfig"))
            .args(["--diagnostics", &format!("127.0.0.1:{diagnostics}")])
            .env("RUST_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("unable to start {}", binary.display()))?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        if !line.contains("ready") {
            bail!("`capwasm up` did not become ready: {line}");
        }
        std::fs::write(folder.join("warm"), if warm { "1" } else { "0" })?;
        Ok(Self { process, diagnostics, folder: folder.to_owned() })
    }

    fn is_warm(&mut self) -> bool {
        std::fs::read_to_string(self.folder.join("warm")).is_ok_and(|text| text == "1")
    }

    fn stop(&mut self) -> Result<()> {
        signal(self.process.id())?;
        self.process.wait()?;
        if let Ok(simulator) = simulator(&self.folder) {
            signal(simulator)?;
            // The next one on this folder is refused until it is gone.
            while Path::new(&format!("/proc/{simulator}")).exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }
}

fn signal(process: u32) -> Result<()> {
    let status = Command::new("kill").arg(process.to_string()).status()?;
    if !status.success() {
        bail!("unable to end process {process}");
    }
    Ok(())
}

/// Process id of the simulated engine on a folder.
fn simulator(folder: &Path) -> Result<u32> {
    let socket = folder.join("sim.sock");
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if line.contains("\0sim\0") && line.contains(&*socket.to_string_lossy()) {
            return Ok(process);
        }
    }
    bail!("there is no simulated engine on {}", socket.display())
}

/// A line of /proc/PID/status, in MB.
fn memory(process: u32, field: &str) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find(|line| line.starts_with(field)).with_context(|| format!("no {field}"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kilobytes / 1e3)
}

/// What the host measures, as Prometheus reads it.
fn metrics(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// API writes so far, by kind.
fn writes(metrics: &str) -> Result<BTreeMap<String, f64>> {
    let mut counts = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with("capwasm_api_writes_total{")) {
        let kind = label(line, "kind").unwrap_or_default();
        let count: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        *counts.entry(kind.to_owned()).or_default() += count;
    }
    Ok(counts)
}

/// The bucket that the median of each provider function's CPU time lies in, and that of all calls: its upper limit in seconds.
/// `of` is `cpu` or `outside_cpu`.
fn medians(metrics: &str, of: &str) -> Result<BTreeMap<String, f64>> {
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let prefix = format!("capwasm_provider_call_{of}_seconds_bucket{{");
    for line in metrics.lines().filter(|line| line.starts_with(&prefix)) {
        let (limit, function) = (label(line, "le").unwrap_or_default(), label(line, "function").unwrap_or_default());
        let count: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        let limit = if limit == "+Inf" { f64::INFINITY } else { limit.parse()? };
        buckets.entry(function.to_owned()).or_default().push((limit, count));
    }
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (limit, count) in buckets.values().flatten() {
        match all.iter_mut().find(|(known, _)| known == limit) {
            Some((_, sum)) => *sum += count,
            None => all.push((*limit, *count)),
        }
    }
    buckets.insert("all calls".to_owned(), all);
    let median = |mut counts: Vec<(f64, f64)>| {
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = counts.last().map_or(0.0, |(_, all)| all / 2.0);
        counts.into_iter().find(|(_, count)| *count >= half).map_or(0.0, |(limit, _)| limit)
    };
    Ok(buckets.into_iter().map(|(function, counts)| (function, median(counts))).collect())
}

/// The value of a label in a line of metrics.
fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name}=\""))?;
    rest.split('"').next()
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
