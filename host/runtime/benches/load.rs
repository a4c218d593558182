//! What loading a provider costs: with a cold cache in a compiler process, with a warm one, and the memory of one more. The component is
//! `target/plugins/docker-infra.wasm`; each round makes another one of it, with another digest. Prints one line per figure.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capwasm_runtime::{
    ChildProcess, CompileLimits, Grants, HttpClient, Limits, Runtime, RuntimeOptions, serve_compilation,
};

const ROUNDS: u8 = 10;
const COMPILE: &str = "compile-component";

/// The component with a custom section more, and so another digest.
fn other(component: &[u8], number: u8) -> Vec<u8> {
    [component, &[0, 3, 1, b'n', number]].concat()
}

fn line(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{what}: median {:.1?}, longest {:.1?}", times[times.len() / 2], times[times.len() - 1]);
}

/// Resident memory of this process in bytes.
fn resident() -> Result<usize, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? << 10)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(COMPILE) {
        let limits = CompileLimits::default();
        return Ok(serve_compilation(limits.memory_bytes, limits.cpu_seconds));
    }
    tokio::runtime::Runtime::new()?.block_on(measure())?;
    Ok(ExitCode::SUCCESS)
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let component = std::fs::read(root.join("target/plugins/docker-infra.wasm"))?;
    let folder = tempfile::tempdir()?;
    let options = || RuntimeOptions {
        aot_dir: Some(folder.path().join("aot")),
        compiler: Arc::new(ChildProcess::this_program([COMPILE], CompileLimits::default())),
        ..RuntimeOptions::default()
    };
    println!("component: {} bytes", component.len());
    for what in ["load, cold (compiled in a child process)", "load, warm (from the compiled form)"] {
        let runtime = Runtime::new(options())?;
        let mut times = Vec::new();
        for number in 0..ROUNDS {
            let component = other(&component, number);
            let started = Instant::now();
            runtime.load(&component, Limits::default()).await?;
            times.push(started.elapsed());
        }
        line(what, times);
    }
    let runtime = Runtime::new(options())?;
    let grants = Grants::default();
    let mut loaded = Vec::new();
    let mut before = 0;
    for number in 0..ROUNDS {
        let provider = runtime.load(&other(&component, number), Limits::default()).await?;
        loaded.push((provider, HttpClient::new(&grants, &Limits::default())?));
        if number == 0 {
            before = resident()?;
        }
    }
    let each = resident()?.saturating_sub(before) / (loaded.len() - 1);
    println!("resident memory of one more loaded provider: {:.1} MB", each as f64 / 1e6);
    Ok(())
}
