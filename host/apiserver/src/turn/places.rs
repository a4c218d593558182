//! Places for long work: a few at a time, of which one sender has half at most.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Works at a time, and those of one sender.
const PLACES: usize = 4;
const SHARE: usize = 2;
/// Requests of one sender that have a place or wait for one.
const WAITING: usize = 512;

/// Too many requests of one sender wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests: {WAITING} of this user are in work already; ask again")]
pub(super) struct Full;

pub(super) struct Places {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<Arc<str>, Own>>,
}

/// Of a sender that has work.
struct Own {
    places: Arc<Semaphore>,
    /// Requests that have a place or wait for one; never 0.
    requests: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(PLACES)), each: Mutex::default() }
    }
}

/// A request among those of its sender.
pub(super) struct Line {
    places: Arc<Places>,
    own: Arc<Semaphore>,
    user: Arc<str>,
}

/// Somebody may work while this is held.
pub(super) struct Place {
    _own: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
    /// The last to go: it looks whether it was.
    _line: Arc<Line>,
}

impl Places {
    /// Joins the sender's line.
    pub fn line(self: &Arc<Self>, user: &Arc<str>) -> Result<Arc<Line>, Full> {
        let mut each = self.each.lock();
        let fresh = || Own { places: Arc::new(Semaphore::new(SHARE)), requests: 0 };
        let own = each.entry(Arc::clone(user)).or_insert_with(fresh);
        if own.requests == WAITING {
            return Err(Full);
        }
        own.requests += 1;
        Ok(Arc::new(Line { places: Arc::clone(self), own: Arc::clone(&own.places), user: Arc::clone(user) }))
    }

    #[cfg(test)]
    pub fn of(&self, user: &str) -> usize {
        self.each.lock().get(user).map_or(0, |own| own.requests)
    }

    #[cfg(test)]
    pub fn all(&self) -> Arc<Semaphore> {
        Arc::clone(&self.all)
    }
}

impl Line {
    /// Waits for a place. First for one of the sender's own, so that those who wait for one of all are few, and come from many.
    pub async fn place(self: &Arc<Self>) -> Place {
        // Nobody closes them.
        let own = Arc::clone(&self.own).acquire_owned().await.ok();
        let all = Arc::clone(&self.places.all).acquire_owned().await.ok();
        Place { _own: own, _all: all, _line: Arc::clone(self) }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut each = self.places.each.lock();
        let left = each.get_mut(&self.user).map(|own| {
            own.requests -= 1;
            own.requests
        });
        if left == Some(0) {
            each.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn one_sender_has_half_of_the_places_and_leaves_nothing_behind() {
        let places = Arc::new(Places::default());
        let lines: Vec<Arc<Line>> = ["a", "a", "a", "b"].map(|user| places.line(&user.into()).unwrap()).into();
        let mut held: Vec<Option<Place>> = lines.iter().map(|line| line.place().now_or_never()).collect();
        let has: Vec<bool> = held.iter().map(Option::is_some).collect();
        assert_eq!(has, [true, true, false, true]);
        held[0] = None;
        assert!(lines[2].place().now_or_never().is_some(), "the third has its turn when the first is done");
        drop((held, lines));
        assert!(places.each.lock().is_empty());
    }

    #[test]
    fn no_more_than_so_many_wait() {
        let places = Arc::new(Places::default());
        let user: Arc<str> = "a".into();
        let waiting: Vec<Arc<Line>> = (0..WAITING).map(|_| places.line(&user).unwrap()).collect();
        let mut places_of: Vec<_> = waiting.iter().map(|line| Box::pin(line.place())).collect();
        let now: Vec<Option<Place>> = places_of.iter_mut().map(|place| place.as_mut().now_or_never()).collect();
        assert_eq!(now.iter().flatten().count(), SHARE, "the others wait");
        assert_eq!(places.line(&user).err(), Some(Full));
        assert!(places.line(&"b".into()).is_ok(), "others do");
        drop((places_of, now));
        drop(waiting);
        assert!(places.each.lock().is_empty());
        assert!(places.line(&user).is_ok());
    }
}
