//! How much the caches of one API server may hold. Who controls that server decides how many objects there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

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
    parts: Mutex<Vec<Weak<Held>>>,
}

/// What one kind holds of the room.
#[derive(Debug)]
pub(super) struct Part {
    room: Arc<Room>,
    held: Arc<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: AtomicUsize,
    too_much: Notify,
}

impl Room {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: AtomicUsize::new(0), parts: Mutex::default() })
    }

    /// A part of it, which holds nothing yet.
    pub(super) fn part(self: &Arc<Self>) -> Part {
        let held = Arc::new(Held::default());
        let mut parts = self.parts.lock();
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(&held));
        Part { room: Arc::clone(self), held }
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn is_passed(&self) -> bool {
        self.held.load(Ordering::Relaxed) > self.most
    }
}

impl Part {
    /// Holds so many bytes more, and so many less. Beyond what there is, the largest part is told to let go: the others are no larger for it.
    pub(super) fn change(&self, more: usize, less: usize) {
        for held in [&self.room.held, &self.held.bytes] {
            held.fetch_add(more, Ordering::Relaxed);
            held.fetch_sub(less, Ordering::Relaxed);
        }
        if more > less && self.room.is_passed() {
            let parts: Vec<Arc<Held>> = self.room.parts.lock().iter().filter_map(Weak::upgrade).collect();
            if let Some(largest) = parts.iter().max_by_key(|part| part.bytes.load(Ordering::Relaxed)) {
                largest.too_much.notify_one();
            }
        }
    }

    /// Waits until this is what has to let go. Returns the limit of the room.
    pub(super) async fn too_much(&self) -> usize {
        loop {
            self.held.too_much.notified().await;
            if self.room.is_passed() {
                return self.room.most;
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.change(0, self.held.bytes.load(Ordering::Relaxed));
    }
}

/// Memory of an entry in bytes, about.
pub(super) fn cost(entry: &Entry) -> usize {
    let labels: usize = entry.labels().iter().map(|label| MARK + label.0.len() + label.1.len()).sum();
    let owners: usize = entry.owners().iter().map(|owner| MARK + owner.len()).sum();
    ENTRY + entry.held_bytes() + labels + owners
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn the_largest_part_lets_go_whoever_needed_the_last_of_the_room() {
        let room = Room::new(100);
        let (pods, nodes) = (room.part(), room.part());
        let told = |part: &Part| part.too_much().now_or_never();
        pods.change(90, 0);
        nodes.change(10, 0);
        assert_eq!((told(&pods), told(&nodes)), (None, None));
        nodes.change(6, 5);
        assert_eq!((told(&pods), told(&nodes)), (Some(100), None));
        nodes.change(1, 0);
        pods.change(0, 90);
        assert_eq!((told(&pods), told(&nodes)), (None, None), "there is room again");
        drop(nodes);
        pods.change(95, 0);
        assert_eq!((told(&pods), room.held()), (None, 95), "what is gone holds nothing");
    }
}
