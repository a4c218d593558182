//! Metrics under the names that controller-runtime gives them, so that existing dashboards and alerts work.
//!
//! prometheus-client appends `_total` to counters. `capwasm_api_writes_total` is ours: every write request by verb and kind.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Label of metrics by controller.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ControllerLabel {
    /// Name of the controller, such as `machine`.
    pub controller: String,
}

/// Labels of finished passes.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ResultLabels {
    /// Name of the controller.
    pub controller: String,
    /// `success`, `error`, `requeue` or `requeue_after`.
    pub result: &'static str,
}

/// Labels of queue metrics; both names are the same, as upstream.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct QueueLabels {
    /// Name of the queue.
    pub name: String,
    /// Name of the controller.
    pub controller: String,
}

/// Labels of a write request.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct WriteLabels {
    /// Name of the controller.
    pub controller: String,
    /// `create`, `apply`, `patch`, `patch_status`, `delete` or `evict`.
    pub verb: &'static str,
    /// API group of the kind.
    pub group: String,
    /// Kind of the object.
    pub kind: String,
    /// `management` or `workload`.
    pub place: &'static str,
    /// `ok`, `conflict` or `error`.
    pub outcome: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Metrics of controllers, queues and writes.
#[derive(Clone)]
pub struct Metrics {
    pub(crate) reconciles: Family<ResultLabels, Counter>,
    pub(crate) errors: Family<ControllerLabel, Counter>,
    pub(crate) panics: Family<ControllerLabel, Counter>,
    pub(crate) seconds: Histograms<ControllerLabel>,
    pub(crate) active: Family<ControllerLabel, Gauge>,
    pub(crate) limit: Family<ControllerLabel, Gauge>,
    pub(crate) depth: Family<QueueLabels, Gauge>,
    pub(crate) adds: Family<QueueLabels, Counter>,
    pub(crate) retries: Family<QueueLabels, Counter>,
    pub(crate) waited: Histograms<QueueLabels>,
    pub(crate) worked: Histograms<QueueLabels>,
    pub(crate) writes: Family<WriteLabels, Counter>,
}

fn reconcile_buckets() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
        1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    ])
}

fn queue_buckets() -> Histogram {
    Histogram::new([1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0])
}

impl Metrics {
    /// Registers all metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::unregistered();
        let runtime = registry.sub_registry_with_prefix("controller_runtime");
        runtime.register("reconcile", "Passes by result", metrics.reconciles.clone());
        runtime.register("reconcile_errors", "Failed passes", metrics.errors.clone());
        runtime.register("reconcile_panics", "Passes that panicked", metrics.panics.clone());
        runtime.register("reconcile_time_seconds", "Duration of a pass", metrics.seconds.clone());
        runtime.register("active_workers", "Passes running now", metrics.active.clone());
        runtime.register("max_concurrent_reconciles", "Most passes at a time", metrics.limit.clone());
        let queue = registry.sub_registry_with_prefix("workqueue");
        queue.register("depth", "Keys ready to run", metrics.depth.clone());
        queue.register("adds", "Keys added", metrics.adds.clone());
        queue.register("retries", "Keys added again after a failure", metrics.retries.clone());
        queue.register("queue_duration_seconds", "Time between ready and running", metrics.waited.clone());
        queue.register("work_duration_seconds", "Time from running to applied", metrics.worked.clone());
        registry.register("capwasm_api_writes", "Write requests to API servers", metrics.writes.clone());
        metrics
    }

    /// Unregistered metrics, for tests and tools.
    pub fn unregistered() -> Self {
        Self {
            reconciles: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            seconds: Family::new_with_constructor(reconcile_buckets as fn() -> Histogram),
            active: Family::default(),
            limit: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waited: Family::new_with_constructor(queue_buckets as fn() -> Histogram),
            worked: Family::new_with_constructor(queue_buckets as fn() -> Histogram),
            writes: Family::default(),
        }
    }

    /// Counts a write request in `capwasm_api_writes_total`.
    pub fn count_write(&self, labels: &WriteLabels) {
        self.writes.get_or_create(labels).inc();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn names_are_those_of_controller_runtime() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let controller = "machine".to_owned();
        let label = ControllerLabel { controller: controller.clone() };
        metrics.reconciles.get_or_create(&ResultLabels { controller: controller.clone(), result: "success" }).inc();
        metrics.errors.get_or_create(&label).inc();
        metrics.seconds.get_or_create(&label).observe(0.1);
        let queue = QueueLabels { name: controller.clone(), controller: controller.clone() };
        metrics.depth.get_or_create(&queue).set(3);
        metrics.count_write(&WriteLabels {
            controller,
            verb: "create",
            group: "cluster.x-k8s.io".to_owned(),
            kind: "Machine".to_owned(),
            place: "management",
            outcome: "ok",
        });
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"controller_runtime_reconcile_total{controller="machine",result="success"} 1"#,
            r#"controller_runtime_reconcile_errors_total{controller="machine"} 1"#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="machine"} 1"#,
            r#"workqueue_depth{name="machine",controller="machine"} 3"#,
            "capwasm_api_writes_total{controller=\"machine\",verb=\"create\",group=\"cluster.x-k8s.io\",kind=\"Machine\",\
             place=\"management\",outcome=\"ok\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
