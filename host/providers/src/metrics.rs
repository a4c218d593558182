//! What calls of providers cost, for `/metrics`.

use std::time::Duration;

use capwasm_runtime::CallStats;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// Labels of a call that answered.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    provider: String,
    /// As in the contract: `infrastructure-machine.provision`.
    function: &'static str,
}

/// Labels of a step in a provider's life.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SwapLabels {
    provider: String,
    /// `started`, `swapped`, `rolled_back`, `refused` or `held`.
    result: &'static str,
}

/// How attempts to let another component serve ended.
#[derive(Clone, Default)]
pub struct SwapMetrics(Family<SwapLabels, Counter>);

impl SwapMetrics {
    /// Registers `capwasm_provider_swaps_total`.
    pub fn register(registry: &mut Registry) -> SwapMetrics {
        let metrics = SwapMetrics::default();
        registry.register("capwasm_provider_swaps", "Components that came to serve, or did not", metrics.0.clone());
        metrics
    }

    pub(crate) fn count(&self, provider: &str, result: &'static str) {
        self.0.get_or_create(&SwapLabels { provider: provider.to_owned(), result }).inc();
    }
}

type Histograms = Family<CallLabels, Histogram, fn() -> Histogram>;

/// Durations of calls, by provider and function. Calls that trap or pass a limit are not in them.
#[derive(Clone)]
pub struct CallMetrics {
    seconds: Histograms,
    cpu: Histograms,
}

fn buckets() -> Histogram {
    Histogram::new([
        0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0006, 0.0008, 0.001, 0.0015, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0,
        5.0, 30.0,
    ])
}

impl CallMetrics {
    /// Registers `capwasm_provider_call_seconds` and `capwasm_provider_call_cpu_seconds`.
    pub fn register(registry: &mut Registry) -> CallMetrics {
        let family = || Family::new_with_constructor(buckets as fn() -> Histogram);
        let metrics = CallMetrics { seconds: family(), cpu: family() };
        let calls = registry.sub_registry_with_prefix("capwasm_provider_call");
        calls.register("seconds", "From instantiation to answer, waits on others included", metrics.seconds.clone());
        calls.register("cpu_seconds", "CPU time of guest and host, without any wait", metrics.cpu.clone());
        metrics
    }

    /// Counts a call that answered.
    pub(crate) fn count(&self, provider: &str, function: &'static str, stats: CallStats) {
        let labels = CallLabels { provider: provider.to_owned(), function };
        let observe = |histograms: &Histograms, time: Duration| {
            histograms.get_or_create(&labels).observe(time.as_secs_f64());
        };
        observe(&self.seconds, stats.duration);
        observe(&self.cpu, stats.cpu);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn waits_are_told_apart_from_work() {
        let mut registry = Registry::default();
        let metrics = CallMetrics::register(&mut registry);
        let stats =
            CallStats { duration: Duration::from_millis(40), cpu: Duration::from_micros(250), ..CallStats::default() };
        metrics.count("p", "bootstrap.generate", stats);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"capwasm_provider_call_seconds_bucket{le="0.01",provider="p",function="bootstrap.generate"} 0"#,
            r#"capwasm_provider_call_seconds_bucket{le="0.05",provider="p",function="bootstrap.generate"} 1"#,
            r#"capwasm_provider_call_cpu_seconds_bucket{le="0.0002",provider="p",function="bootstrap.generate"} 0"#,
            r#"capwasm_provider_call_cpu_seconds_bucket{le="0.0003",provider="p",function="bootstrap.generate"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
