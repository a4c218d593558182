//! `capwasm provider diff`: what another component would have done in the calls that were recorded.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use capwasm_providers::RecordingFolder;
use capwasm_providers::rehearse::{Paint, With, rehearse};
use capwasm_runtime::Limits;
use clap::Args;

use crate::output::Output;
use crate::replay::{self, DIFFERS};

/// Options of `capwasm provider diff`.
#[derive(Args)]
#[command(after_help = "Ends with 0 when nothing differs, 3 when something does, 1 when nothing could be compared.")]
pub struct Options {
    /// Name of the provider.
    name: String,
    /// The other component.
    file: PathBuf,
    /// Folder of recordings: what `--record` of the host names, or `recordings` of its data folder.
    #[arg(long, value_name = "DIR")]
    recordings: PathBuf,
    /// Look at this many calls, the last ones; 0 is all.
    #[arg(long, default_value_t = 1_000)]
    last: usize,
    #[command(flatten)]
    output: Output,
}

/// Runs it.
pub async fn run(options: Options) -> Result<ExitCode> {
    let recordings = RecordingFolder::open(&options.recordings)?.last(&options.name, options.last)?;
    let Some(newest) = recordings.last() else {
        bail!(
            "no call of provider {} is recorded in {}: start the host with --record DIR, or set spec.record of its \
             WasmProvider",
            options.name,
            options.recordings.display()
        );
    };
    let bytes = std::fs::read(&options.file).with_context(|| format!("unable to read {}", options.file.display()))?;
    // Limits of the last call: those that the next one would have, too.
    let candidate = replay::load(&bytes, Limits { concurrency: 1, ..newest.limits.clone() }).await?;
    let name = &candidate.descriptor().name;
    if *name != options.name {
        bail!("{} is provider {name}, not {}", options.file.display(), options.name);
    }
    let report = rehearse(&candidate, &With::default(), &recordings).await;
    options.output.print(&report, |report| report.people(Paint::of_stdout()))?;
    if report.is_empty() { Ok(ExitCode::SUCCESS) } else { Ok(ExitCode::from(DIFFERS)) }
}
