//! The wasmtime engine of the process, and the thread that increments its epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use wasmtime::{Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig, Result};

/// Length of an epoch: how long a guest computes before it yields to other tasks.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ticks without a call before the thread sleeps.
const IDLE_TICKS: u32 = 100;

/// Core instances of one component at most. wasm32-wasip2 components have a handful, interpreters some dozens.
pub(crate) const CORE_INSTANCES: u32 = 64;
/// Linear memories of one component at most. Each slot reserves about 4 GiB of address space.
pub(crate) const MEMORIES: u32 = 2;
/// Tables of one component at most.
pub(crate) const TABLES: u32 = 16;

/// Bytes of memory that a slot keeps mapped, zeroed, after a call, so that the next one has no page faults there: a
/// sixth of what calls of the bundled providers used.
const KEPT_MEMORY: usize = 512 << 10;
/// As [`KEPT_MEMORY`], for each table.
const KEPT_TABLE: usize = 64 << 10;
/// Slots that stay assigned to a component after its call. Beyond that, slots of the component that was called longest
/// ago are reused first, so that replaced components do not keep theirs.
const WARM_SLOTS: u32 = 8;

const WASM_STACK: usize = 512 << 10;
const ASYNC_STACK: usize = 2 << 20;

/// Settings that determine native code; pooling does not.
fn base() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).max_wasm_stack(WASM_STACK).async_stack_size(ASYNC_STACK).memory_init_cow(true);
    config
}

/// Engine for calls, with a pool for `max_in_flight` of them.
pub(crate) fn pooled(max_in_flight: u32, max_memory_bytes: usize) -> Result<Engine> {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(max_in_flight)
        .total_stacks(max_in_flight)
        .total_core_instances(max_in_flight.saturating_mul(CORE_INSTANCES))
        .total_memories(max_in_flight.saturating_mul(MEMORIES))
        .total_tables(max_in_flight.saturating_mul(TABLES))
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memory_size(max_memory_bytes);
    // Elsewhere all that is kept would have to be cleaned, not only what the call wrote (Linux 6.7).
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.pagemap_scan(Enabled::Auto).linear_memory_keep_resident(KEPT_MEMORY).table_keep_resident(KEPT_TABLE);
        pool.max_unused_warm_slots(WARM_SLOTS);
    }
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config)
}

/// Engine for one compilation: wasmtime 48 keeps the register allocator's contexts for as long as the engine lives
/// (bytecodealliance/wasmtime#14314), and the engine for calls is never dropped.
pub(crate) fn compiler() -> Result<Engine> {
    Engine::new(&base())
}

/// Increments the engine's epoch while calls are in flight. On a thread of its own, since a loaded async runtime would
/// delay ticks, and guests would yield too late or be stopped too early.
#[derive(Debug)]
pub(crate) struct Ticker {
    in_flight: Arc<AtomicUsize>,
    thread: thread::Thread,
}

impl Ticker {
    /// Starts the thread. It ends soon after the engine is dropped.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let in_flight = Arc::new(AtomicUsize::new(0));
        let (engine, calls) = (engine.weak(), in_flight.clone());
        let thread = thread::Builder::new().name("capwasm-epoch".into()).spawn(move || tick(&engine, &calls))?;
        Ok(Ticker { in_flight, thread: thread.thread().clone() })
    }

    /// Keeps the ticks coming until the guard is dropped.
    pub(crate) fn running(&self) -> Running {
        if self.in_flight.fetch_add(1, Ordering::SeqCst) == 0 {
            self.thread.unpark();
        }
        Running(self.in_flight.clone())
    }
}

#[derive(Debug)]
pub(crate) struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(engine: &EngineWeak, in_flight: &AtomicUsize) {
    let mut idle = 0;
    while let Some(engine) = engine.upgrade() {
        idle = if in_flight.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
        engine.increment_epoch();
        drop(engine);
        // Waking a thread costs a call more than a second of useless ticks costs the machine.
        if idle > IDLE_TICKS {
            // Woken by the next call; looks now and then whether the engine is gone.
            thread::park_timeout(Duration::from_secs(1));
        } else {
            thread::sleep(TICK);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use wasmtime::{Instance, Module, Store};

    /// Two mebibytes of memory, more written than a slot keeps; data at the beginning; a table.
    const MODULE: &str = r#"(module
        (memory 32)
        (table (export "table") 4 funcref)
        (elem (i32.const 1) $sum)
        (elem declare func $spoil)
        (data (i32.const 8) "text")
        (func $sum (export "sum") (result i64) (local $at i32) (local $sum i64)
            (loop $next
                (local.set $sum (i64.add (local.get $sum) (i64.load (local.get $at))))
                (local.set $at (i32.add (local.get $at) (i32.const 8)))
                (br_if $next (i32.lt_u (local.get $at) (i32.const 0x200000))))
            (local.get $sum))
        (func $spoil (export "spoil")
            (memory.fill (i32.const 0) (i32.const 0xff) (i32.const 0x180000))
            (drop (memory.grow (i32.const 8)))
            (table.set (i32.const 1) (ref.null func))
            (table.set (i32.const 3) (ref.func $spoil))))"#;

    #[test]
    fn nothing_of_a_call_is_there_in_the_next_one_on_the_same_slot() {
        // One call at a time: each has the slot of the one before.
        let engine = pooled(1, 64 << 20).unwrap();
        let module = Module::new(&engine, wat::parse_str(MODULE).unwrap()).unwrap();
        for round in 0..3 {
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(u64::MAX / 2);
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            let sum = instance.get_typed_func::<(), i64>(&mut store, "sum").unwrap();
            assert_eq!(sum.call(&mut store, ()).unwrap(), i64::from(u32::from_le_bytes(*b"text")), "round {round}");
            let table = instance.get_table(&mut store, "table").unwrap();
            let full: Vec<bool> = (0..4).map(|at| table.get(&mut store, at).unwrap().unwrap_func().is_some()).collect();
            assert_eq!(full, [false, true, false, false], "round {round}");
            instance.get_typed_func::<(), ()>(&mut store, "spoil").unwrap().call(&mut store, ()).unwrap();
            assert_ne!(sum.call(&mut store, ()).unwrap(), i64::from(u32::from_le_bytes(*b"text")), "it was spoilt");
        }
    }
}
