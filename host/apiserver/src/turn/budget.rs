//! Bytes that requests hold, counted for each sender and for all together.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Why bytes are not charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// The sender's requests would hold more than its share.
    #[error("too many requests: those of one user may hold {0} bytes at a time; ask again, for lists in pages")]
    Share(usize),
    /// All requests together would hold too much.
    #[error("too many requests: the server holds {0} bytes for them; ask again")]
    All(usize),
}

pub(super) struct Budget {
    /// Most bytes of one sender.
    share: usize,
    /// Most bytes of all.
    all: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: usize,
    /// By user; without those that hold nothing.
    each: HashMap<Arc<str>, usize>,
}

impl Budget {
    pub fn new(share: usize, all: usize) -> Self {
        Self { share, all, held: Mutex::default() }
    }

    #[cfg(test)]
    pub fn held_by(&self, user: &str) -> usize {
        self.held.lock().each.get(user).copied().unwrap_or_default()
    }
}

/// Bytes held for one sender, until it is dropped.
pub(super) struct Charge {
    budget: Arc<Budget>,
    user: Arc<str>,
    bytes: usize,
}

impl Charge {
    /// Of nothing.
    pub fn new(budget: &Arc<Budget>, user: &str) -> Self {
        Self { budget: Arc::clone(budget), user: user.into(), bytes: 0 }
    }

    /// # Errors
    /// When there is no room for so many more; then nothing is charged.
    pub fn add(&mut self, bytes: usize) -> Result<(), Full> {
        let Budget { share, all, held } = &*self.budget;
        if bytes == 0 {
            return Ok(());
        }
        let mut held = held.lock();
        if held.each.get(&self.user).copied().unwrap_or_default().saturating_add(bytes) > *share {
            return Err(Full::Share(*share));
        }
        if held.all.saturating_add(bytes) > *all {
            return Err(Full::All(*all));
        }
        held.all += bytes;
        *held.each.entry(Arc::clone(&self.user)).or_default() += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives back so many, or all if they are fewer.
    pub fn remove(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let mut held = self.budget.held.lock();
        held.all -= bytes;
        if let Some(each) = held.each.get_mut(&self.user) {
            *each -= bytes;
            if *each == 0 {
                held.each.remove(&self.user);
            }
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.remove(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_holds_more_than_its_share_and_all_no_more_than_there_is() {
        let budget = Arc::new(Budget::new(10, 15));
        let mut charges: HashMap<&str, Charge> = ["a", "b"].map(|user| (user, Charge::new(&budget, user))).into();
        let mut another_of_a = Charge::new(&budget, "a");
        let mut add = |user: &str, bytes| charges.get_mut(user).map(|charge| charge.add(bytes));
        for (what, user, bytes, expected) in [
            ("as much as the share", "a", 10, Ok(())),
            ("a byte more", "a", 1, Err(Full::Share(10))),
            ("what does not even fit a number", "b", usize::MAX, Err(Full::Share(10))),
            ("another has a share as well", "b", 5, Ok(())),
            ("but no more than there is", "b", 1, Err(Full::All(15))),
        ] {
            assert_eq!(add(user, bytes), Some(expected), "{what}");
        }
        assert_eq!(another_of_a.add(1), Err(Full::Share(10)), "requests of one user have one share");
        charges.remove("a");
        assert_eq!(another_of_a.add(10), Ok(()), "what a request held comes back");
        another_of_a.remove(usize::MAX);
        drop((charges, another_of_a));
        let held = budget.held.lock();
        assert_eq!((held.all, held.each.len()), (0, 0), "nothing is left of them");
    }
}
