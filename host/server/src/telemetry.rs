//! What the host tells about itself: log lines on stderr (for people by default, JSON on request), and spans to an
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

/// What is told, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much of our own crates is told where RUST_LOG does not say: `error`, `info`, `debug`, `trace`.
    pub level: &'static str,
    /// Form of the log lines.
    pub format: Format,
    /// OpenTelemetry collector that spans are sent to, as in http://localhost:4318 (OTLP over HTTP).
    pub otlp_endpoint: Option<String>,
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug)]
pub enum Format {
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
    /// Starts logging, and sending spans from `runtime`.
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
    /// Sends what is left; says so when it cannot be sent.
    pub fn finish(self) {
        if let Some(Err(error)) = self.tracers.map(|tracers| tracers.shutdown()) {
            eprintln!("warning: the last spans did not reach the collector (--otlp-endpoint): {error}");
        }
    }
}

/// Our own crates at a level (their names begin alike, and a directive names all that begins so), everybody else's errors.
fn ours(level: &str) -> EnvFilter {
    EnvFilter::new(format!("error,capwasm={level}"))
}
