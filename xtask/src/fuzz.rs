//! `cargo xtask fuzz`: libFuzzer on the targets of `fuzz/`, with the toolchain that everything else is built with.
//!
//! Crates of this workspace are compiled with counters by a wrapper of rustc (`fuzz/instrument`); cargo keeps them apart from the
//! others, and takes the crates of others as they are. So a first build takes about as long as one of the tests.

mod report;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::{build, shell};
use report::Reached;

/// Seconds after which one input is too slow: a finding as a crash is.
const SLOW: u64 = 60;
/// Memory of the process, MB; the compiler of components lives in it.
const MEMORY: u64 = 4096;

/// Options of `cargo xtask fuzz`.
#[derive(Args)]
pub struct Options {
    /// Only these; all of them when none is given.
    targets: Vec<String>,
    /// Time for each target, or with `--all` of all together.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// All targets, each for its share of the time.
    #[arg(long, conflicts_with = "targets")]
    all: bool,
    /// How to say what was reached.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Say which targets there are.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// A list with an entry for each target.
    Json,
}

/// Runs the fuzzer on each target; an error when one was found to break a rule.
pub fn run(options: &Options) -> Result<()> {
    let known = targets()?;
    if options.list {
        known.iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(*name)) {
        bail!("{unknown:?} is no target; there are {}", known.iter().cloned().collect::<Vec<_>>().join(", "));
    }
    compiler()?;
    let program = program()?;
    let chosen: Vec<&String> =
        if options.targets.is_empty() { known.iter().collect() } else { options.targets.iter().collect() };
    let seconds = share(options, chosen.len() as u64);
    let rows = chosen.into_iter().map(|target| fuzz(&program, target, seconds)).collect::<Result<Vec<Reached>>>()?;
    match options.output {
        Output::Table => print!("{}", report::table(&rows)),
        Output::Json => println!("{:#}", Value::from_iter(rows.iter().map(Reached::json))),
    }
    let found: Vec<&PathBuf> = rows.iter().flat_map(|row| &row.found).collect();
    for file in &found {
        let target = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        eprintln!("FOUND: {}", file.display());
        eprintln!("       again: cargo test --package capwasm-fuzz --test corpus the_target::{target}");
    }
    if found.is_empty() { Ok(()) } else { bail!("{} inputs break a rule; keep them with what mends it", found.len()) }
}

/// Seconds for each of so many targets.
fn share(options: &Options, targets: u64) -> u64 {
    if options.all { (options.seconds / targets.max(1)).max(1) } else { options.seconds }
}

fn corpus() -> PathBuf {
    build::root().join("fuzz/corpus")
}

/// The targets, by their corpora; a test holds them against the code.
fn targets() -> Result<BTreeSet<String>> {
    files(&corpus()).map(|paths| paths.iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
}

fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("unable to read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// libFuzzer comes as C++, which is compiled here.
fn compiler() -> Result<()> {
    let given = std::env::var_os("CXX").is_some();
    if given || ["c++", "g++", "clang++"].into_iter().any(shell::on_path) {
        return Ok(());
    }
    bail!("libFuzzer is C++, and there is no compiler for it: `apt-get install g++`, or set CXX")
}

/// The fuzzer with all targets in it.
fn program() -> Result<PathBuf> {
    let mut command = build::cargo();
    // The selection of the tests, whose crates it shares.
    command.args(["build", "--workspace", "--bin", "capwasm-fuzz", "--features", "capwasm-fuzz/libfuzzer"]);
    command.env("RUSTC_WORKSPACE_WRAPPER", build::root().join("fuzz/instrument")).env("CARGO_INCREMENTAL", "0");
    shell::run(&mut command)?;
    Ok(build::target().join("debug/capwasm-fuzz"))
}

/// Runs one target. Inputs that break a rule are in its corpus afterwards.
fn fuzz(program: &Path, target: &str, seconds: u64) -> Result<Reached> {
    let kept = corpus().join(target);
    let before = files(&kept)?;
    // What merely reaches more code stays here from run to run.
    let work = build::target().join("fuzz").join(target);
    std::fs::create_dir_all(&work).with_context(|| format!("unable to make {}", work.display()))?;
    let mut command = std::process::Command::new(program);
    command.env("CAPWASM_FUZZ_TARGET", target).args([&work, &kept]);
    command.arg(format!("-artifact_prefix={}/", kept.display()));
    command.args([format!("-max_total_time={seconds}"), format!("-timeout={SLOW}"), format!("-rss_limit_mb={MEMORY}")]);
    command.arg("-reload=0").stderr(Stdio::piped());
    eprintln!("+ {target}, {seconds} s");
    let mut child = command.spawn().with_context(|| format!("unable to start {}", program.display()))?;
    let mut reached = Reached { target: target.to_owned(), seconds, ..Reached::default() };
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(|told| told.split(b'\n')) {
        // What it says of an input is not always text.
        let line = String::from_utf8_lossy(&line?).into_owned();
        if !reached.note(&line) {
            eprintln!("{line}");
        }
    }
    let status = child.wait()?;
    reached.found = files(&kept)?.difference(&before).cloned().collect();
    if !status.success() && reached.found.is_empty() {
        bail!("the target {target} ended with {status}, and no input was written");
    }
    Ok(reached)
}
