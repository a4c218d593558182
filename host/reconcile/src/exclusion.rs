//! Mutual exclusion of keys of one group, over all controllers of the process.
//!
//! A group that is left is reserved for the key that has waited longest, until that key enters it or gives it up. So no
//! key starves.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

/// Groups that are held. `W` is a holder or waiter.
pub struct Exclusion<W> {
    groups: Mutex<HashMap<String, Group<W>>>,
}

struct Group<W> {
    holder: W,
    waiting: VecDeque<W>,
}

impl<W> Default for Exclusion<W> {
    fn default() -> Self {
        Self { groups: Mutex::default() }
    }
}

impl<W: Clone + PartialEq> Exclusion<W> {
    /// Enters the group, or queues for it and returns `false`.
    pub fn enter(&self, group: &str, who: &W) -> bool {
        let mut groups = self.groups.lock();
        let Some(held) = groups.get_mut(group) else {
            groups.insert(group.to_owned(), Group { holder: who.clone(), waiting: VecDeque::new() });
            return true;
        };
        if held.holder == *who {
            return true;
        }
        if !held.waiting.contains(who) {
            held.waiting.push_back(who.clone());
        }
        false
    }

    /// Leaves the group or its queue. Returns the new holder, if any, which must be told.
    pub fn leave(&self, group: &str, who: &W) -> Option<W> {
        let mut groups = self.groups.lock();
        let held = groups.get_mut(group)?;
        if held.holder != *who {
            held.waiting.retain(|waiting| waiting != who);
            return None;
        }
        if let Some(next) = held.waiting.pop_front() {
            held.holder = next.clone();
            return Some(next);
        }
        groups.remove(group);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_handed_on_in_order_of_arrival() {
        let exclusion = Exclusion::default();
        assert!(exclusion.enter("g", &1));
        assert!(exclusion.enter("g", &1), "who holds it may ask again");
        assert!(!exclusion.enter("g", &2));
        assert!(!exclusion.enter("g", &3));
        assert!(!exclusion.enter("g", &2));
        assert!(exclusion.enter("other", &2));
        assert_eq!(exclusion.leave("g", &1), Some(2));
        assert!(!exclusion.enter("g", &1), "it is reserved for 2");
        assert!(exclusion.enter("g", &2));
        assert_eq!(exclusion.leave("g", &3), None, "3 does not want it any more");
        assert_eq!(exclusion.leave("g", &2), Some(1));
        assert_eq!(exclusion.leave("g", &1), None);
        assert!(exclusion.enter("g", &4));
    }
}
