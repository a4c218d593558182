//! Plans a rollout: from sizes of MachineSets to their next sizes. Pure arithmetic.

use serde_json::Value;

use crate::int_or_percent::resolve;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// `spec.replicas`.
    pub(super) wanted: i64,
    /// `status.replicas`.
    pub(super) actual: i64,
    /// `status.availableReplicas`.
    pub(super) available: i64,
}

impl Size {
    /// Machines that exist or will.
    fn most(&self) -> i64 {
        self.wanted.max(self.actual)
    }
}

/// Rollout strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Replaces Machines within these limits.
    RollingUpdate {
        /// Machines above the wanted number at most.
        surge: i64,
        /// Machines below the wanted number at most.
        unavailable: i64,
    },
    /// Replaces Machines that a user deletes.
    OnDelete,
}

/// Resolves integers and percentages: surge is rounded up, unavailability down. If both are 0, which would never end,
/// one Machine may be unavailable.
pub(super) fn rolling_update(max_surge: Option<&Value>, max_unavailable: Option<&Value>, replicas: i64) -> Strategy {
    let surge = max_surge.map_or(1, |value| resolve(value, replicas, true));
    let mut unavailable = max_unavailable.map_or(0, |value| resolve(value, replicas, false)).min(replicas);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    Strategy::RollingUpdate { surge, unavailable }
}

/// The next sizes of the new set and of the old ones, oldest first.
pub(super) fn next(replicas: i64, strategy: Strategy, new: &Size, old: &[Size]) -> (i64, Vec<i64>) {
    match strategy {
        Strategy::OnDelete => on_delete(replicas, old),
        Strategy::RollingUpdate { surge, unavailable } => {
            let grown = grow(replicas, surge, new, old);
            (grown, shrink(replicas, unavailable, grown, new, old))
        }
    }
}

/// Size of the new set within the wanted number plus surge; also shrinks it to a smaller wanted number.
fn grow(replicas: i64, surge: i64, new: &Size, old: &[Size]) -> i64 {
    if new.wanted >= replicas {
        return replicas;
    }
    let total = new.most() + old.iter().map(Size::most).sum::<i64>();
    new.wanted + (replicas + surge - total).clamp(0, replicas - new.wanted)
}

/// Sizes of the old sets: unavailable Machines are removed first, then as many as the least availability allows.
fn shrink(replicas: i64, unavailable: i64, grown: i64, new: &Size, old: &[Size]) -> Vec<i64> {
    let mut next: Vec<i64> = old.iter().map(|set| set.wanted).collect();
    let least = replicas - unavailable;
    let all = grown + next.iter().sum::<i64>();
    let new_unavailable = (grown - new.available).max(0);
    let mut may_go = all - least - new_unavailable;
    for (size, set) in next.iter_mut().zip(old) {
        let gone = (*size - set.available).clamp(0, may_go.max(0));
        *size -= gone;
        may_go -= gone;
    }
    // What the old sets were told to give up before, but still have, counts as gone.
    let available =
        new.available.min(grown) + old.iter().zip(&next).map(|(set, size)| set.available.min(*size)).sum::<i64>();
    let mut may_go = available - least;
    for size in &mut next {
        let gone = (*size).clamp(0, may_go.max(0));
        *size -= gone;
        may_go -= gone;
    }
    next
}

/// Old sets never grow; the new one gets the rest of the wanted number.
fn on_delete(replicas: i64, old: &[Size]) -> (i64, Vec<i64>) {
    let mut next: Vec<i64> = old.iter().map(|set| set.wanted.min(set.actual)).collect();
    let mut too_many = next.iter().sum::<i64>() - replicas;
    for size in &mut next {
        let gone = (*size).clamp(0, too_many.max(0));
        *size -= gone;
        too_many -= gone;
    }
    let rest = replicas - next.iter().sum::<i64>();
    (rest.max(0), next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn size(wanted: i64, actual: i64, available: i64) -> Size {
        Size { wanted, actual, available }
    }

    const ONE_MORE: Strategy = Strategy::RollingUpdate { surge: 1, unavailable: 0 };
    const ONE_LESS: Strategy = Strategy::RollingUpdate { surge: 0, unavailable: 1 };

    #[test]
    fn each_step_keeps_within_surge_and_availability() {
        for (what, replicas, strategy, new, old, expected) in [
            ("first", 3, ONE_MORE, size(0, 0, 0), vec![], (3, vec![])),
            ("steady", 3, ONE_MORE, size(3, 3, 3), vec![], (3, vec![])),
            ("scaled up", 5, ONE_MORE, size(3, 3, 3), vec![], (5, vec![])),
            ("scaled down", 1, ONE_MORE, size(3, 3, 3), vec![], (1, vec![])),
            ("one more first", 3, ONE_MORE, size(0, 0, 0), vec![size(3, 3, 3)], (1, vec![3])),
            ("waits for it to be available", 3, ONE_MORE, size(1, 1, 0), vec![size(3, 3, 3)], (1, vec![3])),
            ("then one old may go", 3, ONE_MORE, size(1, 1, 1), vec![size(3, 3, 3)], (1, vec![2])),
            ("waits until it is gone", 3, ONE_MORE, size(1, 1, 1), vec![size(2, 3, 3)], (1, vec![2])),
            ("the next", 3, ONE_MORE, size(1, 1, 1), vec![size(2, 2, 2)], (2, vec![2])),
            ("the last", 3, ONE_MORE, size(3, 3, 3), vec![size(1, 1, 1)], (3, vec![0])),
            ("without surge an old one goes first", 3, ONE_LESS, size(0, 0, 0), vec![size(3, 3, 3)], (0, vec![2])),
            ("and its place is taken", 3, ONE_LESS, size(0, 0, 0), vec![size(2, 2, 2)], (1, vec![2])),
            (
                "broken old machines go at once",
                3,
                ONE_MORE,
                size(1, 1, 1),
                vec![size(1, 1, 0), size(2, 2, 2)],
                (1, vec![0, 2]),
            ),
            (
                "broken old machines are no reason to go below",
                3,
                ONE_MORE,
                size(1, 1, 0),
                vec![size(3, 3, 0)],
                (1, vec![3]),
            ),
            ("oldest first", 2, ONE_MORE, size(2, 2, 2), vec![size(1, 1, 1), size(1, 1, 1)], (2, vec![0, 0])),
            (
                "on delete: nothing happens by itself",
                3,
                Strategy::OnDelete,
                size(0, 0, 0),
                vec![size(3, 3, 3)],
                (0, vec![3]),
            ),
            (
                "on delete: a deleted one is replaced",
                3,
                Strategy::OnDelete,
                size(0, 0, 0),
                vec![size(3, 2, 2)],
                (1, vec![2]),
            ),
            ("on delete: scaled down", 1, Strategy::OnDelete, size(1, 1, 1), vec![size(2, 2, 2)], (0, vec![1])),
        ] {
            assert_eq!(next(replicas, strategy, &new, &old), expected, "{what}");
        }
    }

    #[test]
    fn a_roll_out_ends_and_never_leaves_its_limits() {
        for strategy in [ONE_MORE, ONE_LESS, Strategy::RollingUpdate { surge: 2, unavailable: 1 }] {
            let Strategy::RollingUpdate { surge, unavailable } = strategy else { continue };
            let replicas = 5;
            let (mut new, mut old) = (size(0, 0, 0), vec![size(2, 2, 2), size(3, 3, 3)]);
            for _ in 0..100 {
                let (grown, shrunk) = next(replicas, strategy, &new, &old);
                new.wanted = grown;
                for (set, size) in old.iter_mut().zip(shrunk) {
                    set.wanted = size;
                }
                // One machine at a time comes, gets available, or goes.
                if new.available < new.actual {
                    new.available += 1;
                } else if let Some(set) = old.iter_mut().find(|set| set.actual > set.wanted) {
                    set.actual -= 1;
                    set.available -= 1;
                } else if new.actual < new.wanted {
                    new.actual += 1;
                }
                let actual = new.actual + old.iter().map(|set| set.actual).sum::<i64>();
                let available = new.available + old.iter().map(|set| set.available).sum::<i64>();
                assert!(actual <= replicas + surge, "{strategy:?}: {actual} machines");
                assert!(available >= replicas - unavailable, "{strategy:?}: {available} available");
            }
            assert_eq!((new.available, old.iter().map(|set| set.actual).sum::<i64>()), (5, 0), "{strategy:?}");
        }
    }

    #[test]
    fn limits_may_be_percentages() {
        for (surge, unavailable, expected) in [
            (json!(1), json!(0), (1, 0)),
            (json!("25%"), json!("25%"), (3, 2)),
            (json!("0%"), json!(0), (0, 1)),
            (json!("2"), json!(99), (2, 10)),
            (json!("9223372036854775807%"), json!(i64::MAX), (i64::from(i32::MAX), 10)),
        ] {
            assert_eq!(
                rolling_update(Some(&surge), Some(&unavailable), 10),
                Strategy::RollingUpdate { surge: expected.0, unavailable: expected.1 }
            );
        }
        assert_eq!(rolling_update(None, None, 3), ONE_MORE);
    }
}
