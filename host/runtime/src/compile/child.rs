//! A compiler in a process of its own, with limits that the kernel holds.
//!
//! ```text
//! parent                                   child (`capwasm compile-component`)
//!   component ───────────── stdin ──────────►  setrlimit, read, compile
//!   compatibility hash, code ◄── stdout ─────  write
//!   exit status, last of stderr ◄────────────  0: compiled, 2: not valid, else: failed
//! ```
//!
//! The child limits itself before it reads the first byte of the component; the parent holds the wall time, takes no more than
//! it allows, and kills the child when nobody waits for it any more. It is the very image that runs (`/proc/self/exe`), also when the
//! file was replaced meanwhile, so that both have the same engine; the hash makes sure.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::{CompileError, Compiler, compatibility, compile};
use crate::engine;

/// Limits of one compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space of the child in bytes.
    pub memory_bytes: u64,
    /// CPU time of all threads in seconds.
    pub cpu_seconds: u64,
    /// Wall time of the child.
    pub wall: Duration,
    /// Size of the native code in bytes.
    pub code_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        CompileLimits { memory_bytes: 2 << 30, cpu_seconds: 120, wall: Duration::from_secs(180), code_bytes: 512 << 20 }
    }
}

/// Exit status for an invalid component.
const NOT_VALID: u8 = 2;
/// Length of the compatibility hash before the code.
const HASH: usize = 16;
/// Bytes of the child's stderr that are kept.
const STDERR: u64 = 8 << 10;

/// Compiles in a child process, which the kernel limits.
#[derive(Clone, Debug)]
pub struct ChildProcess {
    program: PathBuf,
    arguments: Vec<OsString>,
    limits: CompileLimits,
}

impl ChildProcess {
    /// Runs this program with `arguments`, which must lead to [`serve`]. Memory limit (bytes) and CPU limit (seconds)
    /// are appended.
    pub fn this_program(arguments: impl IntoIterator<Item = impl Into<OsString>>, limits: CompileLimits) -> Self {
        Self::program("/proc/self/exe", arguments, limits)
    }

    /// As [`ChildProcess::this_program`], with another program.
    pub fn program(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        limits: CompileLimits,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect(), limits }
    }

    async fn run(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let failed = |what: &str, error: std::io::Error| CompileError::Failed(format!("{what}: {error}"));
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(self.limits.memory_bytes.to_string())
            .arg(self.limits.cpu_seconds.to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed("the compiler cannot be started", error))?;
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(CompileError::Failed("the compiler has no pipes".to_owned()));
        };
        let feed = async move {
            // One that ended early reads no further; its status says why.
            let _ = stdin.write_all(component).await;
            drop(stdin);
            Ok(())
        };
        let unreadable = |error| failed("the compiler cannot be read", error);
        let most = self.limits.code_bytes + HASH as u64;
        let code = async move {
            let mut code = Vec::new();
            stdout.take(most + 1).read_to_end(&mut code).await.map_err(unreadable)?;
            let over = code.len() as u64 > most;
            if over { Err(CompileError::Limit(format!("{} bytes of code", self.limits.code_bytes))) } else { Ok(code) }
        };
        let message = async move {
            let mut message = Vec::new();
            (&mut stderr).take(STDERR).read_to_end(&mut message).await.map_err(unreadable)?;
            // The rest is read, too, so that the child does not wait for a reader.
            tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await.map_err(unreadable)?;
            Ok(message)
        };
        // All at once, so that no pipe fills while another is waited for.
        let ((), code, message) = tokio::try_join!(feed, code, message)?;
        let status = child.wait().await.map_err(|error| failed("the compiler cannot be waited for", error))?;
        self.verdict(status, String::from_utf8_lossy(&message).trim())?;
        fitting(code)
    }

    /// Error of an exit status.
    fn verdict(&self, status: ExitStatus, message: &str) -> Result<(), CompileError> {
        if status.success() {
            return Ok(());
        }
        if status.code() == Some(i32::from(NOT_VALID)) {
            return Err(CompileError::Invalid(message.to_owned()));
        }
        let signal = |signal: rustix::process::Signal| status.signal() == Some(signal.as_raw());
        use rustix::process::Signal;
        // The soft limit sends XCPU, the hard one KILL. Rust aborts when there is no memory, and says so.
        Err(if signal(Signal::XCPU) || signal(Signal::KILL) {
            CompileError::Limit(format!("{} s of CPU time", self.limits.cpu_seconds))
        } else if signal(Signal::ABORT) && message.contains("memory allocation") {
            CompileError::Limit(format!("{} bytes of memory", self.limits.memory_bytes))
        } else {
            CompileError::Failed(format!("the compiler ended with {status}: {message}"))
        })
    }
}

#[async_trait]
impl Compiler for ChildProcess {
    async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        tokio::time::timeout(self.limits.wall, self.run(component))
            .await
            .unwrap_or_else(|_| Err(CompileError::Limit(format!("{:?}", self.limits.wall))))
    }
}

/// The code without its hash; an error if it is for another engine.
fn fitting(mut code: Vec<u8>) -> Result<Vec<u8>, CompileError> {
    let ours = compatibility(&engine::compiler().map_err(|error| CompileError::Failed(format!("{error:#}")))?);
    if code.len() < HASH || code[..HASH] != *ours.as_bytes() {
        return Err(CompileError::Failed("the compiler is of another build than this process".to_owned()));
    }
    Ok(code.split_off(HASH))
}

/// The child: limits itself, reads a component from stdin and writes its code to stdout.
pub fn serve(memory_bytes: u64, cpu_seconds: u64) -> ExitCode {
    let served = confine(memory_bytes, cpu_seconds).map_err(CompileError::Failed).and_then(|()| {
        let failed = |error: std::io::Error| CompileError::Failed(error.to_string());
        let mut component = Vec::new();
        std::io::stdin().lock().read_to_end(&mut component).map_err(failed)?;
        let code = compile(&component)?;
        let engine = engine::compiler().map_err(|error| CompileError::Failed(format!("{error:#}")))?;
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(compatibility(&engine).as_bytes()).map_err(failed)?;
        stdout.write_all(&code).and_then(|()| stdout.flush()).map_err(failed)
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(CompileError::Invalid(message)) => {
            eprintln!("{message}");
            ExitCode::from(NOT_VALID)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Limits memory, CPU time, written files, core dumps and open files, so that a compromised compiler can do little.
fn confine(memory_bytes: u64, cpu_seconds: u64) -> Result<(), String> {
    let hard = |limit: u64| Rlimit { current: Some(limit), maximum: Some(limit) };
    let limits = [
        (Resource::As, hard(memory_bytes)),
        (Resource::Cpu, Rlimit { current: Some(cpu_seconds), maximum: Some(cpu_seconds + 1) }),
        (Resource::Fsize, hard(0)),
        (Resource::Core, hard(0)),
        (Resource::Nofile, hard(64)),
    ];
    for (resource, limit) in limits {
        setrlimit(resource, limit).map_err(|error| format!("unable to limit {resource:?}: {error}"))?;
    }
    Ok(())
}
