//! Places of concurrent calls: some for all providers together, of which each has a share, so that the calls of one hold up nobody else's.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of all providers.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    /// Places of one provider.
    share: u32,
    /// By name of the provider: its generations have one share together.
    shares: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// The share of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _own: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    /// `all` places, of which each provider has at most `share`.
    pub(crate) fn new(all: u32, share: u32) -> Self {
        Places { all: Arc::new(Semaphore::new(all as usize)), share, shares: Mutex::default() }
    }

    /// The share of a provider.
    pub(crate) fn share(&self, provider: &str) -> Share {
        let mut shares = self.shares.lock();
        shares.retain(|_, share| share.strong_count() > 0);
        let own = shares.get(provider).and_then(Weak::upgrade).unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(self.share as usize));
            shares.insert(provider.to_owned(), Arc::downgrade(&own));
            own
        });
        Share { own, all: self.all.clone() }
    }
}

impl Share {
    /// Waits for a place. `None` never comes: the semaphores are not closed.
    pub(crate) async fn place(&self) -> Option<Place> {
        // Own first: nobody waits in the line of all with more calls than its share.
        let own = self.own.clone().acquire_owned().await.ok()?;
        Some(Place { _own: own, _of_all: self.all.clone().acquire_owned().await.ok()? })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// The place that is free at once.
    fn taken(share: &Share) -> Option<Place> {
        share.place().now_or_never().flatten()
    }

    #[test]
    fn one_that_takes_all_it_can_leaves_places_to_others() {
        let places = Places::new(4, 2);
        let (greedy, again, other) = (places.share("greedy"), places.share("greedy"), places.share("other"));
        let held: Vec<Place> = (0..8).filter_map(|_| taken(&greedy)).collect();
        assert_eq!(held.len(), 2, "its share");
        assert!(taken(&again).is_none(), "another generation of it has the same share");
        let others: Vec<Place> = (0..8).filter_map(|_| taken(&other)).collect();
        assert_eq!(others.len(), 2);
        assert!(taken(&places.share("third")).is_none(), "all are taken");
        drop(others);
        assert!(taken(&places.share("third")).is_some());
        drop(held);
        assert!(taken(&again).is_some());
    }

    #[test]
    fn shares_of_providers_that_are_gone_are_forgotten() {
        let places = Places::new(4, 2);
        (0..100).for_each(|name| drop(places.share(&name.to_string())));
        let _last = places.share("last");
        assert_eq!(places.shares.lock().len(), 1);
    }
}
