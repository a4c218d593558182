//! Options of logs and spans.

use capwasm_server::telemetry;
use clap::{Args, ValueEnum};

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
    /// Send spans to this OpenTelemetry collector, as in http://localhost:4318 (OTLP over HTTP).
    #[arg(long, global = true, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    otlp_endpoint: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Options {
    /// For a command; `quiet` ones talk to the user themselves and log errors only.
    pub fn server(self, quiet: bool) -> telemetry::Options {
        let level = match (self.verbose, quiet) {
            (0, true) => "error",
            (0, false) => "info",
            (1, _) => "debug",
            _ => "trace",
        };
        let format = match self.log_format {
            Format::Text => telemetry::Format::Text,
            Format::Json => telemetry::Format::Json,
        };
        telemetry::Options { level, format, otlp_endpoint: self.otlp_endpoint }
    }
}
