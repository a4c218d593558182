//! Gives traces the ids of their passes: the field `trace_id` of a pass's span, which is also in logs and calls of
//! providers.

use std::cell::Cell;

use opentelemetry::trace::{SpanId, TraceId, TracerProvider};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracerProvider};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

thread_local! {
    /// Id of the pass whose span was entered last on this thread.
    static CURRENT: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// Layer that passes spans to `tracers`.
pub fn spans<S>(tracers: &SdkTracerProvider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    // Entered first: OpenTelemetry asks for a trace's id when its first span is entered.
    NotePass.and_then(tracing_opentelemetry::layer().with_tracer(tracers.tracer("capwasm")))
}

/// Trace ids: that of the entered pass, else random.
#[derive(Debug, Default)]
pub struct PassTraceIds(RandomIdGenerator);

impl IdGenerator for PassTraceIds {
    fn new_trace_id(&self) -> TraceId {
        CURRENT.take().unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}

struct NotePass;

struct PassTrace(TraceId);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for NotePass {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut found = FindTrace(None);
        attributes.record(&mut found);
        if let (Some(trace), Some(span)) = (found.0, context.span(id)) {
            span.extensions_mut().insert(PassTrace(trace));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(PassTrace(trace)) = span.extensions().get() {
            CURRENT.set(Some(*trace));
        }
    }

    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        CURRENT.set(None);
    }
}

struct FindTrace(Option<TraceId>);

impl Visit for FindTrace {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "trace_id" {
            self.0 = TraceId::from_hex(value).ok().filter(|trace| *trace != TraceId::INVALID);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use opentelemetry_sdk::trace::InMemorySpanExporter;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    const PASS: &str = "0123456789abcdef0000018bcfe56800";

    #[test]
    fn a_trace_has_the_id_of_its_pass() {
        let exporter = InMemorySpanExporter::default();
        let tracers = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .with_id_generator(PassTraceIds::default())
            .build();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(spans(&tracers)), || {
            let pass = tracing::info_span!("pass", trace_id = PASS);
            pass.in_scope(|| tracing::info_span!("call").in_scope(|| tracing::info!("a line of the guest")));
            drop(pass);
            tracing::info_span!("other").in_scope(|| ());
        });
        tracers.force_flush().unwrap();
        let spans = exporter.get_finished_spans().unwrap();
        let trace = |name: &str| {
            let span = spans.iter().find(|span| span.name == name).unwrap();
            span.span_context.trace_id().to_string()
        };
        assert_eq!([trace("pass"), trace("call")], [PASS, PASS]);
        assert_ne!(trace("other"), PASS);
    }
}
