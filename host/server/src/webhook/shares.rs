//! What the reviews of one provider may hold of the webhook's memory while they wait, so that those of others find room.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that count as one: a small review costs as much.
const UNIT: usize = 1 << 20;
/// Units of one provider: two of the largest reviews, or more small ones than an API server asks for at a time (200 writes, by default).
const UNITS: usize = 512;

/// Shares by provider; the core's has an empty name.
#[derive(Debug, Default)]
pub struct Shares(Mutex<HashMap<String, Arc<Semaphore>>>);

impl Shares {
    /// Room for a review that takes so many bytes until it is dropped; `None` when its provider has no more.
    pub fn take(&self, provider: &str, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let mut shares = self.0.lock();
        let share = shares.entry(provider.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(UNITS))).clone();
        let units = u32::try_from(bytes / UNIT + 1).ok()?;
        share.try_acquire_many_owned(units).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_whose_reviews_pile_up_leaves_room_to_others() {
        let shares = Shares::default();
        let slow: Vec<_> = std::iter::from_fn(|| shares.take("slow", 1_000)).collect();
        assert_eq!(slow.len(), 512);
        assert!(shares.take("other", 64 << 20).is_some() && shares.take("", 1_000).is_some());
        drop(slow);
        let large: Vec<_> = std::iter::from_fn(|| shares.take("slow", (256 << 20) - 1)).collect();
        assert_eq!(large.len(), 2, "of the largest reviews");
    }
}
