//! Telemetry of the host: log lines on stderr (for people by default, JSON on request), and spans to an
//! OpenTelemetry collector where one is named.
//!
//! A pass over an object is a span with a `trace_id`; what happens in it (calls of a provider, its log lines, requests
//! to others, writes) is below it or carries it. The same id is the trace's in the collector.

mod collector;
mod pass_trace;

use std::io::IsTerminal;

use anyhow::{Context, Result};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Options of logs and spans.
#[derive(Clone, Debug)]
pub struct Options {
    /// Level of the project's own crates without RUST_LOG: `error`, `info`, `debug`, `trace`.
    pub level: &'static str,
    /// Format of log lines.
    pub format: Format,
    /// OpenTelemetry collector for spans, such as http://localhost:4318 (OTLP over HTTP).
    pub otlp_endpoint: Option<String>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// Human-readable.
    Text,
    /// One JSON object per line.
    Json,
}

/// Buffered spans; [`Telemetry::finish`] sends them.
pub struct Telemetry {
    tracers: Option<SdkTracerProvider>,
}

impl Options {
    /// Starts logging, and sends spans from `runtime`.
    ///
    /// # Errors
    /// The collector's URL is none.
    pub fn start(&self, runtime: &Handle) -> Result<Telemetry> {
        // Files and pipes get text without colours.
        let colours = std::io::stderr().is_terminal();
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match self.format {
            Format::Text => lines.with_target(false).boxed(),
            Format::Json => lines.json().boxed(),
        };
        let wanted = EnvFilter::try_from_default_env().unwrap_or_else(|_| ours(self.level));
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(wanted));
        let Some(endpoint) = &self.otlp_endpoint else {
            subscriber.init();
            return Ok(Telemetry { tracers: None });
        };
        let tracers = collector::tracers(endpoint, runtime)
            .with_context(|| format!("unable to send spans to {endpoint} (--otlp-endpoint)"))?;
        // A span is worth sending whether or not its log lines are shown.
        let sent = if self.level == "error" { ours("info") } else { ours(self.level) };
        subscriber.with(pass_trace::spans(&tracers).with_filter(sent)).init();
        Ok(Telemetry { tracers: Some(tracers) })
    }
}

impl Telemetry {
    /// Sends buffered spans; logs a failure.
    pub fn finish(self) {
        if let Some(Err(error)) = self.tracers.map(|tracers| tracers.shutdown()) {
            eprintln!("warning: the last spans did not reach the collector (--otlp-endpoint): {error}");
        }
    }
}

/// Log filter: own crates at a level (a directive matches all names that begin like it), others at `error`.
fn ours(level: &str) -> EnvFilter {
    EnvFilter::new(format!("error,capwasm={level}"))
}
