//! Resource limits of a provider. A call that passes one fails; other calls are not affected.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmtime::{ResourceLimiter, Result};

use crate::failure::Stop;

/// `spec.limits` of a WasmProvider. Absent fields take the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Linear memory of one call in bytes.
    pub memory_bytes: u64,
    /// CPU time of one call in milliseconds. Checked on every epoch tick (10 ms), so it may be exceeded by one tick.
    pub cpu_time_ms: u64,
    /// Wall time of one call in milliseconds. Waits for a named endpoint with a timeout of its own do not count.
    pub wall_time_ms: u64,
    /// Body of one HTTP response in bytes.
    pub response_bytes: u64,
    /// Answer and outcome of one call together in bytes; parsed, the outcome may take four times as many. Also the limit of what one host call may pass.
    pub result_bytes: u64,
    /// Reads of one call: objects, lists and Secrets together, of the management and the workload cluster.
    pub lookups: u32,
    /// Requests of one call: HTTP, etcd and serving certificates together.
    pub requests: u32,
    /// Keys and certificates made in one call.
    pub keys: u32,
    /// Lines logged in one call, by `log`, stdout and stderr together.
    pub log_lines: u32,
    /// Concurrent calls of this provider. A host gives one cluster at most a quarter of them.
    pub concurrency: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_bytes: 64 << 20,
            cpu_time_ms: 2_000,
            wall_time_ms: 30_000,
            response_bytes: 8 << 20,
            result_bytes: 4 << 20,
            lookups: 4_096,
            requests: 256,
            keys: 32,
            log_lines: 500,
            concurrency: 32,
        }
    }
}

impl Limits {
    /// [`Limits::cpu_time_ms`] as a duration.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_millis(self.cpu_time_ms)
    }

    /// [`Limits::wall_time_ms`] as a duration.
    pub fn wall_time(&self) -> Duration {
        Duration::from_millis(self.wall_time_ms)
    }

    /// Limits of `describe()`, which is cheap whatever else the provider is allowed.
    pub(crate) fn for_describe(&self) -> Limits {
        let tight = Limits {
            cpu_time_ms: 1_000,
            wall_time_ms: 5_000,
            requests: 0,
            keys: 0,
            log_lines: 20,
            concurrency: 1,
            ..Limits::default()
        };
        Limits { memory_bytes: self.memory_bytes.min(tight.memory_bytes), ..tight }
    }
}

impl Limits {
    /// Limits of conversion and admission, which wait for nothing, while clients wait for them.
    pub(crate) fn for_pure(&self) -> Limits {
        Limits { memory_bytes: self.memory_bytes, result_bytes: 64 << 20, ..self.for_describe() }
    }
}

/// Limits linear memory and tables of one instance. Growing past the limit traps at once, so that the backtrace shows
/// the cause; after a failed `memory.grow` a guest would trap later, somewhere else.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    limit: usize,
    current: usize,
    peak: usize,
}

/// Entries of one table at most; Rust and C guests need some hundreds, interpreters some thousands.
const TABLE_ELEMENTS: usize = 20_000;

impl MemoryLimit {
    pub(crate) fn new(limit: u64) -> Self {
        MemoryLimit { limit: usize::try_from(limit).unwrap_or(usize::MAX), current: 0, peak: 0 }
    }

    pub(crate) fn peak(&self) -> usize {
        self.peak
    }
}

impl ResourceLimiter for MemoryLimit {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let total = self.current.saturating_add(desired.saturating_sub(current));
        if total > self.limit {
            return Err(Stop::Memory { asked: total, limit: self.limit }.into());
        }
        self.current = total;
        self.peak = self.peak.max(total);
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        crate::engine::CORE_INSTANCES as usize
    }

    fn memories(&self) -> usize {
        crate::engine::MEMORIES as usize
    }

    fn tables(&self) -> usize {
        crate::engine::TABLES as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn memory_is_counted_over_all_linear_memories() {
        let mut memory = MemoryLimit::new(300);
        assert!(memory.memory_growing(0, 100, None).unwrap());
        assert!(memory.memory_growing(0, 150, None).unwrap());
        assert!(memory.memory_growing(100, 120, None).unwrap());
        let error = memory.memory_growing(150, 200, None).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(Stop::Memory { asked: 320, limit: 300 })));
        assert_eq!(memory.peak(), 270);
    }

    #[test]
    fn limits_take_defaults_for_what_is_missing() {
        let limits: Limits = serde_json::from_str(r#"{"memoryBytes": 1048576, "cpuTimeMs": 500}"#).unwrap();
        assert_eq!(limits, Limits { memory_bytes: 1 << 20, cpu_time_ms: 500, ..Limits::default() });
    }
}
