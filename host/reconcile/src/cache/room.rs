//! How much the caches of one API server may hold. Who controls that server decides how many objects there are.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::store::Entry;

/// Memory of an entry besides its texts in bytes, about: itself, and its places in the indices.
const ENTRY: usize = 512;
/// The same of a label or an owner.
const MARK: usize = 128;

/// Bytes that are held, of those that may be.
#[derive(Debug)]
pub(super) struct Room {
    most: usize,
    held: AtomicUsize,
}

impl Room {
    pub(super) fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }

    pub(super) fn take(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The limit, when more is held.
    pub(super) fn passed(&self) -> Option<usize> {
        (self.held.load(Ordering::Relaxed) > self.most).then_some(self.most)
    }
}

/// Memory of an entry in bytes, about.
pub(super) fn cost(entry: &Entry) -> usize {
    let labels: usize = entry.labels().iter().map(|label| MARK + label.0.len() + label.1.len()).sum();
    let owners: usize = entry.owners().iter().map(|owner| MARK + owner.len()).sum();
    ENTRY + entry.held_bytes() + labels + owners
}
