//! Metrics of the embedded API server's store: whether it takes writes, and whether it is whole.

use std::fmt;
use std::sync::{Arc, Weak};

use capwasm_apiserver::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Does not keep the store open.
struct StoreMetrics(Weak<Store>);

/// Adds the metrics of a store, for as long as that is open.
pub fn register(registry: &mut Registry, store: &Arc<Store>) {
    registry.register_collector(Box::new(StoreMetrics(Arc::downgrade(store))));
}

impl fmt::Debug for StoreMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreMetrics")
    }
}

impl Collector for StoreMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(store) = self.0.upgrade() else { return Ok(()) };
        let damaged = i64::try_from(store.damaged()).unwrap_or(i64::MAX);
        for (name, help, value) in [
            ("capwasm_store_refuses_writes", "1 while the disk is full or fails", store.trouble().is_some().into()),
            ("capwasm_store_damaged_objects", "Objects that are not what was written", damaged),
        ] {
            let gauge = ConstGauge::<i64>::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_store_is_told_while_it_is_open() {
        let mut registry = Registry::default();
        let store = Store::memory().unwrap();
        register(&mut registry, &store);
        let told = || {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(told(), ["capwasm_store_refuses_writes 0", "capwasm_store_damaged_objects 0"]);
        drop(store);
        assert_eq!(told(), Vec::<String>::new());
    }
}
