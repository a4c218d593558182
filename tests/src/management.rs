//! A running management cluster: `capwasm up` on the simulator, as a process that can be killed and started again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use crate::binary;
use crate::engine::Engine;
use crate::folder::Folder;
use crate::objects::Objects;

/// A process may have to compile three components with an unoptimised compiler.
const READY: Duration = Duration::from_secs(120);

/// A management cluster with a folder of its own.
pub struct Management {
    folder: Folder,
    provider_dir: PathBuf,
    /// `--engine` and its companions, and other options.
    engine: Vec<String>,
    /// Host and port of the API server and of the diagnostics; the same after a restart.
    listen: String,
    diagnostics: String,
    process: Mutex<Option<Process>>,
}

/// A started binary that has said that it is ready.
pub struct Process {
    child: Child,
    /// The line of its output that said so.
    pub ready: String,
}

impl Management {
    /// Starts one with the bundled providers, and waits until it is ready.
    pub fn start() -> Management {
        Management::start_with(binary::provider_dir())
    }

    /// Starts one with the components in a folder.
    pub fn start_with(provider_dir: PathBuf) -> Management {
        Management::start_on(&["--engine", "sim"], provider_dir)
    }

    /// Starts one with the components in a folder, and more options of `capwasm up`.
    pub fn start_with_options(provider_dir: PathBuf, options: &[&str]) -> Management {
        Management::start_on(&[&["--engine", "sim"], options].concat(), provider_dir)
    }

    /// Starts one on the Docker engine, with a load balancer and images of simulated nodes of this version.
    pub fn start_on_docker(version: &str) -> Management {
        Management::start_on(&["--engine", "docker", "--simulated-nodes", version], binary::provider_dir())
    }

    /// Starts one with the bundled providers that looks at every object in this period (`2s`), also when nothing changes.
    pub fn start_syncing(period: &str) -> Management {
        Management::start_on(&["--engine", "sim", "--sync-period", period], binary::provider_dir())
    }

    fn start_on(engine: &[&str], provider_dir: PathBuf) -> Management {
        let management = Management {
            folder: Folder::new(),
            provider_dir,
            engine: engine.iter().map(|argument| (*argument).to_owned()).collect(),
            listen: free_address(),
            diagnostics: free_address(),
            process: Mutex::new(None),
        };
        give_compiled(&management.data_dir().join("aot"));
        management.restart();
        management.keep_compiled();
        management
    }

    /// Keeps what it has compiled for later test processes.
    pub fn keep_compiled(&self) {
        keep_compiled(&self.data_dir().join("aot"));
    }

    /// One for all tests of a test binary. It ends with the binary.
    pub fn shared() -> &'static Management {
        static SHARED: OnceLock<Management> = OnceLock::new();
        SHARED.get_or_init(Management::start)
    }

    /// Its folder, as `--data-dir` has it.
    pub fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// File of the admin kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Where its process writes its log lines.
    pub fn log(&self) -> PathBuf {
        self.folder.join("up.log")
    }

    /// A client of its simulated engine.
    pub fn engine(&self) -> Engine {
        Engine::on(&self.data_dir().join("sim.sock"))
    }

    /// Ends the process with SIGKILL.
    pub fn kill(&self) {
        if let Some(mut process) = self.process().take() {
            process.child.kill().expect("the process can be killed");
            process.child.wait().expect("the process can be waited for");
        }
    }

    /// Ends the process with SIGTERM; whether it ended with success.
    pub fn stop(&self) -> bool {
        self.process().take().is_some_and(Process::stop)
    }

    /// Starts the process on its folder again.
    pub fn restart(&self) {
        self.kill();
        let mut command = Command::new(binary::capwasm());
        command.arg("up").arg("--data-dir").arg(self.data_dir()).args(["--listen", &self.listen]);
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(&self.engine);
        command.arg("--provider-dir").arg(&self.provider_dir).args(["--diagnostics", &self.diagnostics]);
        *self.process() = Some(Process::spawn(command, &self.log(), "capwasm is ready on"));
    }

    /// Starts the simulated engine again, as its host does when it starts.
    pub fn restart_engine(&self) {
        let mut command = Command::new(binary::capwasm());
        command.arg("sim").arg("--socket").arg(self.data_dir().join("sim.sock"));
        command.arg("--data-dir").arg(self.data_dir().join("sim"));
        let log = File::options().append(true).create(true).open(self.folder.join("sim.log")).expect("a log file");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut engine = command.spawn().expect("capwasm starts");
        // It outlives this call and is killed later; whoever waits for it keeps it from staying a zombie.
        std::thread::spawn(move || engine.wait());
    }

    /// Resident memory of its process, bytes.
    pub fn resident(&self) -> u64 {
        let process = self.process();
        let id = process.as_ref().expect("it runs").child.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }

    /// A client that speaks TLS to it as the admin.
    pub async fn client(&self) -> kube::Client {
        client(&self.kubeconfig()).await
    }

    /// The objects of a namespace, which is made if it is not there.
    pub async fn objects(&self, namespace: &str) -> Objects {
        Objects::in_new(self.client().await, namespace).await
    }

    /// Its metrics, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.diagnostics).expect("the diagnostics are served");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: capwasm\r\nConnection: close\r\n\r\n").expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("metrics are text");
        text
    }

    /// The value of a metric line that starts like this.
    pub fn metric(&self, line: &str) -> u64 {
        let text = self.metrics();
        let value = text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
        value.unwrap_or(0)
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the end of the log of capwasm up:\n{}", end_of(&self.log()));
        }
        self.kill();
    }
}

impl Process {
    /// Starts it and waits for the line on stdout that starts like `ready`. stderr is appended to a file.
    pub fn spawn(mut command: Command, log: &Path, ready: &str) -> Process {
        let stderr = File::options().append(true).create(true).open(log).expect("a log file");
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().expect("capwasm starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Nobody listens any more once it was ready; the pipe is read all the same, so that it never fills.
                let _ = sender.send(line);
            }
        });
        loop {
            let line = match receiver.recv_timeout(READY) {
                Ok(line) => line,
                Err(problem) => {
                    let _ = child.kill();
                    let status = child.wait();
                    let ended = matches!(problem, RecvTimeoutError::Disconnected);
                    let what = if ended { "ended before it was ready" } else { "is not ready" };
                    panic!("{command:?} {what} ({status:?}); the end of its log:\n{}", end_of(log));
                }
            };
            if line.starts_with(ready) {
                return Process { child, ready: line };
            }
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).expect("it takes signals");
    }

    /// Sends SIGTERM and waits; whether it ended with success.
    pub fn stop(mut self) -> bool {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().expect("it can be waited for").success()
    }

    /// Whether the process still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_none()
    }

    /// Ends the process with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("the process can be killed");
        self.child.wait().expect("the process can be waited for");
    }
}

/// A client of the current context of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> kube::Client {
    client_of(&fs::read_to_string(kubeconfig).expect("a kubeconfig")).await
}

/// A client of the current context of a kubeconfig's text.
pub async fn client_of(text: &str) -> kube::Client {
    let config = kube::config::Kubeconfig::from_yaml(text).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.expect("a usable kubeconfig");
    kube::Client::try_from(config).expect("a client")
}

/// An address that is free now. Nothing else on this machine takes ports in the moment until it is used, or hardly ever.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// Compiled components of earlier test processes: an unoptimised compiler takes ten seconds for them.
fn compiled() -> PathBuf {
    binary::target().join("tests-aot")
}

/// Gives a host's folder of compiled components what earlier test processes have compiled.
pub fn give_compiled(to: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to).expect("a folder");
    copy_compiled(&compiled(), to);
}

/// Keeps what a host has compiled for later test processes.
pub fn keep_compiled(from: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(compiled()).expect("a folder");
    copy_compiled(from, &compiled());
}

fn copy_compiled(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    for entry in entries.filter_map(Result::ok) {
        let (name, done) = (entry.file_name(), to.join(entry.file_name()));
        if !name.to_string_lossy().ends_with(".cwasm") || done.exists() {
            continue;
        }
        let draft = to.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let bytes = fs::read(entry.path()).expect("a compiled component");
        let mut file =
            File::options().create(true).truncate(true).write(true).mode(0o600).open(&draft).expect("a file");
        file.write_all(&bytes).expect("it is written");
        fs::rename(&draft, &done).expect("it is moved");
    }
}
