//! Metrics of provider calls and updates.

use std::time::Duration;

use capwasm_contract::Operation;
use capwasm_runtime::{CallError, CallStats, PureError, PureReply, Reply};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    provider: String,
    /// As in the contract: `infrastructure-machine.provision`, `admission.validate`.
    function: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    provider: String,
    function: &'static str,
    /// `ok`, `problem`, or the reason of a failure: `ProviderTrapped`, `ProviderCpuLimit` …
    result: &'static str,
}

/// Labels of the operations that calls ask for.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OperationLabels {
    provider: String,
    /// `create`, `apply`, `patch`, `set_condition`, `delete`, or `refused` without a grant.
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SwapLabels {
    provider: String,
    /// `started`, `swapped`, `rolled_back`, `refused` or `held`.
    result: &'static str,
}

/// Counts attempts to serve another component by result.
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

/// Calls by provider and function. Failed calls are counted, but not in the histograms.
#[derive(Clone, Debug)]
pub struct CallMetrics {
    seconds: Histograms,
    cpu: Histograms,
    outside: Histograms,
    memory: Histograms,
    results: Family<ResultLabels, Counter>,
    operations: Family<OperationLabels, Counter>,
}

fn buckets() -> Histogram {
    Histogram::new([
        0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0006, 0.0008, 0.001, 0.00125, 0.0015, 0.002, 0.005, 0.01, 0.05, 0.1,
        0.5, 1.0, 5.0, 30.0,
    ])
}

/// From half a mebibyte to the largest limit.
fn memory_buckets() -> Histogram {
    Histogram::new((0..11).map(|power| f64::from(1u32 << power) * 524_288.0))
}

fn name(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create { .. } => "create",
        Operation::Apply { .. } => "apply",
        Operation::Patch { .. } => "patch",
        Operation::SetConditionOf { .. } => "set_condition",
        Operation::Delete { .. } => "delete",
        Operation::Refused { .. } => "refused",
    }
}

impl Default for CallMetrics {
    /// Unregistered.
    fn default() -> Self {
        let family = || Family::new_with_constructor(buckets as fn() -> Histogram);
        CallMetrics {
            seconds: family(),
            cpu: family(),
            outside: family(),
            memory: Family::new_with_constructor(memory_buckets as fn() -> Histogram),
            results: Family::default(),
            operations: Family::default(),
        }
    }
}

impl CallMetrics {
    /// Registers `capwasm_provider_call_seconds`, `…_cpu_seconds`, `…_outside_cpu_seconds` and `…_memory_bytes`, and the counters
    /// `capwasm_provider_calls_total` and `capwasm_provider_operations_total`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("capwasm_provider_calls", "Calls, by how they ended", self.results.clone());
        let operations = "Writes that calls asked for; how they end is in capwasm_api_writes_total";
        registry.register("capwasm_provider_operations", operations, self.operations.clone());
        let calls = registry.sub_registry_with_prefix("capwasm_provider_call");
        calls.register("seconds", "From instantiation to answer, waits on others included", self.seconds.clone());
        calls.register("cpu_seconds", "CPU time of guest and host, without any wait", self.cpu.clone());
        let outside = "CPU time of the host for HTTP, etcd, workload clusters and Secrets, besides cpu_seconds";
        calls.register("outside_cpu_seconds", outside, self.outside.clone());
        calls.register("memory_bytes", "Largest linear memory of a call", self.memory.clone());
    }

    /// Counts a call for an object.
    pub(crate) fn count(&self, provider: &str, function: &'static str, call: Result<&Reply, &CallError>) {
        let ended = call.map(|reply| (reply.answer.is_ok(), &reply.stats)).map_err(|error| error.failure.reason());
        self.ended(provider, function, ended);
        for operation in call.iter().flat_map(|reply| &reply.outcome.operations) {
            let labels = OperationLabels { provider: provider.to_owned(), operation: name(operation) };
            self.operations.get_or_create(&labels).inc();
        }
    }

    /// Counts a conversion or an admission.
    pub(crate) fn count_pure<T>(
        &self,
        provider: &str,
        function: &'static str,
        call: Result<&PureReply<T>, &PureError>,
    ) {
        let ended = call.map(|reply| (reply.answer.is_ok(), &reply.stats)).map_err(PureError::reason);
        self.ended(provider, function, ended);
    }

    /// Whether the call answered without a problem, and its cost; or the reason of its failure.
    fn ended(&self, provider: &str, function: &'static str, ended: Result<(bool, &CallStats), &'static str>) {
        let result = match ended {
            Ok((true, _)) => "ok",
            Ok((false, _)) => "problem",
            Err(reason) => reason,
        };
        self.results.get_or_create(&ResultLabels { provider: provider.to_owned(), function, result }).inc();
        let Ok((_, stats)) = ended else { return };
        let labels = CallLabels { provider: provider.to_owned(), function };
        let observe = |histograms: &Histograms, time: Duration| {
            histograms.get_or_create(&labels).observe(time.as_secs_f64());
        };
        observe(&self.seconds, stats.duration);
        observe(&self.cpu, stats.cpu);
        observe(&self.outside, stats.cpu_outside);
        self.memory.get_or_create(&labels).observe(stats.peak_memory as f64);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use capwasm_contract::{Answer, Failure, Outcome, Place};
    use capwasm_runtime::CallStats;
    use serde_json::Value;

    use super::*;

    #[test]
    fn waits_are_told_apart_from_work() {
        let mut registry = Registry::default();
        let metrics = CallMetrics::default();
        metrics.register(&mut registry);
        let stats = CallStats {
            duration: Duration::from_millis(40),
            cpu: Duration::from_micros(250),
            cpu_outside: Duration::from_micros(750),
            peak_memory: 2 << 20,
            ..CallStats::default()
        };
        let outcome = Outcome {
            operations: vec![Operation::Create { key: "a".into(), place: Place::Management, object: Value::Null }],
            ..Outcome::default()
        };
        metrics.count("p", "bootstrap.generate", Ok(&Reply { answer: Ok(Answer::Reconciled), outcome, stats }));
        let failed = CallError {
            provider: "p".into(),
            digest: "0".into(),
            function: "bootstrap.generate".into(),
            failure: Failure::NotExported,
        };
        metrics.count("p", "bootstrap.generate", Err(&failed));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"capwasm_provider_call_seconds_bucket{le="0.01",provider="p",function="bootstrap.generate"} 0"#,
            r#"capwasm_provider_call_seconds_bucket{le="0.05",provider="p",function="bootstrap.generate"} 1"#,
            r#"capwasm_provider_call_cpu_seconds_bucket{le="0.0002",provider="p",function="bootstrap.generate"} 0"#,
            r#"capwasm_provider_call_cpu_seconds_bucket{le="0.0003",provider="p",function="bootstrap.generate"} 1"#,
            r#"capwasm_provider_call_outside_cpu_seconds_bucket{le="0.0006",provider="p",function="bootstrap.generate"} 0"#,
            r#"capwasm_provider_call_outside_cpu_seconds_bucket{le="0.0008",provider="p",function="bootstrap.generate"} 1"#,
            r#"capwasm_provider_call_memory_bytes_bucket{le="2097152.0",provider="p",function="bootstrap.generate"} 1"#,
            r#"capwasm_provider_calls_total{provider="p",function="bootstrap.generate",result="ok"} 1"#,
            r#"capwasm_provider_calls_total{provider="p",function="bootstrap.generate",result="ProviderRoleMissing"} 1"#,
            r#"capwasm_provider_operations_total{provider="p",operation="create"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
