//! What the host tells about itself: log lines on stderr (for people by default, JSON on request), and spans to an
//! OpenTelemetry collector where one is named.
//!
//! A pass over an object is a span with a `trace_id`; what happens in it (calls of a provider, its log lines, requests
//! to others, writes) is below it or carries it. The same id is the trace's in the collector.

mod collector;
mod pass_trace;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

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

/// Spans that are not sent yet; sent by [`Telemetry::finish`].
pub struct Telemetry {
    tracers: Option<SdkTracerProvider>,
}

impl Options {
    /// Starts logging, and sending spans from `runtime`. `quiet` commands talk to the user themselves and log errors only.
    /// RUST_LOG wins over both.
    ///
    /// # Errors
    /// The collector's URL is none.
    pub fn start(&self, quiet: bool, runtime: &Handle) -> Result<Telemetry> {
        let level = match (self.verbose, quiet) {
            (0, true) => "error",
            (0, false) => "info",
            (1, _) => "debug",
            _ => "trace",
        };
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match self.log_format {
            Format::Text => lines.with_target(false).boxed(),
            Format::Json => lines.json().boxed(),
        };
        let wanted = EnvFilter::try_from_default_env().unwrap_or_else(|_| ours(level));
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(wanted));
        let Some(endpoint) = &self.otlp_endpoint else {
            subscriber.init();
            return Ok(Telemetry { tracers: None });
        };
        let tracers = collector::tracers(endpoint, runtime)
            .with_context(|| format!("unable to send spans to {endpoint} (--otlp-endpoint)"))?;
        // A span is worth sending whether or not its log lines are shown.
        let sent = if self.verbose == 0 { ours("info") } else { ours(level) };
        subscriber.with(pass_trace::spans(&tracers).with_filter(sent)).init();
        Ok(Telemetry { tracers: Some(tracers) })
    }
}

impl Telemetry {
    /// Sends what is left; says so when it cannot be sent.
    pub fn finish(self) {
        if let Some(Err(error)) = self.tracers.map(|tracers| tracers.shutdown()) {
            eprintln!("warning: the last spans did not reach the collector (--otlp-endpoint): {error}");
        }
    }
}

/// Our own crates at a level, everybody else's errors.
fn ours(level: &str) -> EnvFilter {
    let crates = ["", "_apiserver", "_core", "_providers", "_reconcile", "_registry", "_remote", "_runtime", "_sim"];
    let directives = crates.map(|name| format!("capwasm{name}={level}")).join(",");
    EnvFilter::new(format!("error,{directives}"))
}
