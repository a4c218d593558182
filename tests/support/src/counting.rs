//! An allocator that counts, for tests and benches of memory: `#[global_allocator] static ALLOCATOR: Counting = Counting;`.

// An allocator is the only place where all allocations pass.
#![allow(unsafe_code, reason = "counts what the system's allocator is asked for, and hands it on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counted. What one thread allocates and another frees is right for the process alone.
pub struct Counting;

// SAFETY: every call is handed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        HELD.set(HELD.get().wrapping_add(layout.size()));
        PEAK.set(PEAK.get().max(HELD.get()));
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Bytes that all threads have ever allocated.
pub fn allocated() -> u64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// Bytes that this thread holds.
pub fn held() -> usize {
    HELD.get()
}

/// Begins to look for the most that this thread holds; answers what it holds now.
pub fn watch_peak() -> usize {
    PEAK.set(HELD.get());
    HELD.get()
}

/// The most that this thread held since [`watch_peak`], in bytes.
pub fn peak() -> usize {
    PEAK.get()
}
