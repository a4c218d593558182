//! `capwasm replay`: makes a recorded call again, without the cluster in which it ran.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use capwasm_contract::recording::{Answered, Ended, Entry, Given};
use capwasm_object::meta;
use capwasm_providers::rehearse::{self, Difference, Paint, Report, With};
use capwasm_runtime::Provider;
use capwasm_runtime::record::{self, Recording, Replay};
use capwasm_server::bundle;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::compile;
use crate::output::Output;

/// Exit code for a difference; 1 is an error, 2 wrong arguments.
pub const DIFFERS: u8 = 3;

/// Options of `capwasm replay`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Ends with 0 when the call came to the same, 3 when it did not, 1 when it could not be made.")]
pub struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// The recording.
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// The component. Another one than was recorded is rehearsed: reads may come in any order, and what it would do
    /// otherwise is shown. Default: the one in the provider folder that has the recorded digest.
    #[arg(long, value_name = "FILE")]
    provider: Option<PathBuf>,
    /// Folder in which the recorded component is looked for. Default: `plugins` beside the binary.
    #[arg(long, value_name = "DIR")]
    provider_dir: Option<PathBuf>,
    /// Print what the provider asked and was answered with, too. No header, body or value is shown.
    #[arg(long)]
    requests: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Subcommand)]
enum Command {
    /// Write a recording to read or to share.
    Export(Export),
}

/// Options of `capwasm replay export`.
#[derive(Args)]
struct Export {
    /// The recording.
    file: PathBuf,
    /// Replace tokens, keys, passwords and what Secrets hold. The copy says that it is inexact: it may not replay to the
    /// end. Look through it before you share it.
    #[arg(long)]
    redact: bool,
    /// Where to, with mode 0600. Default: standard output.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub async fn run(options: Options) -> Result<ExitCode> {
    match (options.command, options.file) {
        (Some(Command::Export(export)), _) => write(&export).map(|()| ExitCode::SUCCESS),
        (None, Some(file)) => {
            let recording = read(&file)?;
            let provider = component(&recording, options.provider.as_deref(), options.provider_dir).await?;
            let replayed = if provider.digest() == recording.digest {
                again(&provider, &recording).await?
            } else {
                Replayed::Rehearsed(rehearse::rehearse(&provider, &With::default(), [&recording]).await)
            };
            options.output.print(&replayed, |replayed| {
                let requests = if options.requests { requests(&recording) } else { String::new() };
                format!("{}{requests}{}", header(&recording), people(replayed))
            })?;
            Ok(if replayed.is_same() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERS) })
        }
        (None, None) => bail!("no recording is named"),
    }
}

pub fn read(file: &Path) -> Result<Recording> {
    let open = File::open(file).with_context(|| format!("unable to open {}", file.display()))?;
    record::read(open).with_context(|| file.display().to_string())
}

/// The component to replay with, under the limits of the recorded call.
async fn component(recording: &Recording, file: Option<&Path>, folder: Option<PathBuf>) -> Result<Arc<Provider>> {
    let (file, bytes) = match file {
        Some(file) => (file.to_owned(), compile::read(file)?),
        None => recorded_component(recording, folder)?,
    };
    compile::load(&file, &bytes, recording.limits.clone()).await
}

fn recorded_component(recording: &Recording, folder: Option<PathBuf>) -> Result<(PathBuf, Vec<u8>)> {
    let folder = bundle::provider_dir(folder)?;
    let entries = std::fs::read_dir(&folder).with_context(|| format!("unable to list {}", folder.display()))?;
    for entry in entries {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "wasm") {
            let bytes = compile::read(&file)?;
            if capwasm_runtime::digest(&bytes) == recording.digest {
                return Ok((file, bytes));
            }
        }
    }
    bail!(
        "no component in {} has the recorded digest {} ({} {}): give it with --provider, or another version to see what it \
         would do",
        folder.display(),
        recording.digest,
        recording.provider,
        recording.version
    )
}

/// Result of a replay.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", untagged)]
enum Replayed {
    /// With the recorded component.
    Again(Again),
    /// With another component.
    Rehearsed(Report),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Again {
    same: bool,
    /// Whether the recording was redacted.
    inexact: bool,
    /// Number of requests.
    requests: usize,
    /// Where it left the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    diverged: Option<String>,
    /// Differences of the outcome.
    differences: Vec<Difference>,
    /// Result in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
}

impl Replayed {
    fn is_same(&self) -> bool {
        match self {
            Replayed::Again(again) => again.same,
            Replayed::Rehearsed(report) => report.is_empty(),
        }
    }
}

async fn again(provider: &Provider, recording: &Recording) -> Result<Replayed> {
    let replayed = provider.replay(recording, &Replay::Exact).await?;
    let same = replayed.is_as_recorded(recording);
    let differs = replayed.ended.as_ref().filter(|_| !same);
    Ok(Replayed::Again(Again {
        same,
        inexact: recording.inexact,
        requests: replayed.requests,
        differences: differs.map(|ended| rehearse::differences(&recording.ended, ended)).unwrap_or_default(),
        diverged: replayed.divergence.as_ref().map(ToString::to_string),
        ended: replayed.ended.as_ref().map(line),
    }))
}

/// Result of a call as text.
fn line(ended: &Ended) -> String {
    match ended {
        Ended::Failed(failure) => failure.to_string(),
        Ended::Replied { answer: Err(problem), outcome } => {
            format!("{:?} problem: {problem}; {}", problem.fault, operations(outcome.operations.len()))
        }
        Ended::Replied { answer: Ok(_), outcome } => format!("answered; {}", operations(outcome.operations.len())),
    }
}

fn operations(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}

fn header(recording: &Recording) -> String {
    let object = recording.object();
    format!(
        "{} {} ({})\n{} of {} {}/{}, call {}\nrecorded  {}\n",
        recording.provider,
        recording.version,
        recording.digest.get(..19).unwrap_or(&recording.digest),
        recording.function,
        meta::kind(&object),
        meta::namespace(&object),
        meta::name(&object),
        recording.facts.id,
        line(&recording.ended)
    )
}

fn requests(recording: &Recording) -> String {
    let answered = |entry: &Entry| match &entry.answer {
        Some(Answered::Given(Given::Response(response))) => response.status.to_string(),
        Some(Answered::Given(_)) => "answered".to_owned(),
        Some(Answered::Refused(refused)) => refused.to_string(),
        None => "never answered".to_owned(),
    };
    let line =
        |(at, entry): (usize, &Entry)| format!("  {:>3}  {}: {}\n", at + 1, entry.request.line(), answered(entry));
    recording.tape.iter().enumerate().map(line).collect()
}

fn people(replayed: &Replayed) -> String {
    let again = match replayed {
        Replayed::Rehearsed(report) => return format!("\n{}", report.people(Paint::of_stdout())),
        Replayed::Again(again) => again,
    };
    let mut text = String::new();
    if again.same {
        text += &format!("replayed  the same, {} requests\n", again.requests);
    } else {
        if let Some(ended) = &again.ended {
            text += &format!("replayed  {ended}\n");
        }
        if let Some(diverged) = &again.diverged {
            text += &format!("diverged  {diverged}\n");
        }
        text += &rehearse::describe(&again.differences, Paint::of_stdout());
    }
    if again.inexact {
        text += "The recording was redacted: that it differs may come from that alone.\n";
    }
    text
}

fn write(export: &Export) -> Result<()> {
    let recording = read(&export.file)?;
    let recording = if export.redact { record::redact(&recording)? } else { recording };
    let value: serde_json::Value = serde_json::from_slice(&record::to_json(&recording)?)?;
    let text = serde_json::to_string_pretty(&value)?;
    let Some(to) = &export.to else {
        println!("{text}");
        return Ok(());
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)
        .with_context(|| format!("unable to make {}", to.display()))?;
    writeln!(file, "{text}").with_context(|| format!("unable to write {}", to.display()))
}
