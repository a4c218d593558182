//! A running `capwasm up`, and what its processes took.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A running `capwasm up` on the simulated engine. Its bundled components are compiled already, as a build leaves them.
pub struct Host {
    process: Child,
    /// Port of its metrics.
    pub diagnostics: u16,
    /// From its start until it said that it is ready.
    pub start: Duration,
    folder: PathBuf,
}

impl Host {
    pub fn start(binary: &Path, folder: &Path) -> Result<Self> {
        let diagnostics = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let started = Instant::now();
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
        Ok(Self { process, diagnostics, start: started.elapsed(), folder: folder.to_owned() })
    }

    pub fn process(&self) -> Process {
        Process(self.process.id())
    }

    /// The simulated engine of this host.
    pub fn simulator(&self) -> Result<Process> {
        simulator(&self.folder)
    }

    pub fn stop(&mut self) -> Result<()> {
        signal(self.process.id())?;
        self.process.wait()?;
        if let Ok(Process(simulator)) = simulator(&self.folder) {
            signal(simulator)?;
            // The next one on this folder is refused until it is gone.
            while Path::new(&format!("/proc/{simulator}")).exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }
}

/// `USER_HZ`: what Linux tells programs in, whatever it counts in itself.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running process, by its number.
#[derive(Clone, Copy)]
pub struct Process(u32);

impl Process {
    /// Resident memory in MB.
    pub fn resident(self) -> Result<f64> {
        self.memory("VmRSS:")
    }

    /// Most resident memory so far, in MB.
    pub fn peak(self) -> Result<f64> {
        self.memory("VmHWM:")
    }

    fn memory(self, field: &str) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = text.lines().find(|line| line.starts_with(field)).with_context(|| format!("no {field}"))?;
        let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes / 1e3)
    }

    /// CPU time so far, user and system, in seconds.
    pub fn cpu(self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        // The name before it may have spaces. From there on: state is the first, utime the twelfth, stime the thirteenth.
        let fields = text.rsplit_once(')').context("no name")?.1;
        let ticks = |field: &str| field.parse::<f64>().context("no number");
        let mut times = fields.split_whitespace().skip(11);
        let sum = ticks(times.next().context("no utime")?)? + ticks(times.next().context("no stime")?)?;
        Ok(sum / TICKS_PER_SECOND)
    }
}

fn signal(process: u32) -> Result<()> {
    let status = Command::new("kill").arg(process.to_string()).status()?;
    if !status.success() {
        bail!("unable to end process {process}");
    }
    Ok(())
}

/// The simulated engine on a folder.
fn simulator(folder: &Path) -> Result<Process> {
    let socket = folder.join("sim.sock");
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if line.contains("\0sim\0") && line.contains(&*socket.to_string_lossy()) {
            return Ok(Process(process));
        }
    }
    bail!("there is no simulated engine on {}", socket.display())
}
