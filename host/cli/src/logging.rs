//! Log lines on stderr: human by default, JSON on request.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// Options of every command.
#[derive(Args)]
#[group(skip)]
pub struct Options {
    /// More log lines: -v for debug, -vv for trace of our own crates.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Form of the log lines.
    #[arg(long, global = true, value_enum, default_value = "text")]
    log_format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Options {
    /// Starts logging. `quiet` commands talk to the user themselves and log warnings only. RUST_LOG wins over both.
    pub fn start(&self, quiet: bool) {
        let ours = match (self.verbose, quiet) {
            (0, true) => "error",
            (0, false) => "info",
            (1, _) => "debug",
            _ => "trace",
        };
        let crates = [
            "capwasm",
            "capwasm_apiserver",
            "capwasm_core",
            "capwasm_providers",
            "capwasm_reconcile",
            "capwasm_remote",
            "capwasm_runtime",
            "capwasm_sim",
        ];
        let directives = crates.map(|name| format!("{name}={ours}")).join(",");
        let filter =
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("error,{directives}")));
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        match self.log_format {
            Format::Text => lines.with_target(false).init(),
            Format::Json => lines.json().init(),
        }
    }
}
