//! Decides when a candidate was rehearsed enough.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Live calls with the same outcome that suffice when nothing was recorded before.
pub(crate) const ENOUGH: usize = 20;

/// How often news are published unless they change the judgement.
const PACE: Duration = Duration::from_secs(30);

/// Results of a candidate's rehearsed calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Calls that were recorded before it came.
    pub(crate) recorded: usize,
    pub(crate) live: usize,
    /// Calls of either with a different outcome.
    pub(crate) differing: usize,
    /// Objects of the live calls, as `Kind namespace/name`; at most [`ENOUGH`].
    pub(crate) objects: BTreeSet<String>,
}

/// Objects of the provider's kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Population {
    /// All objects, as `Kind namespace/name`; fewer than [`ENOUGH`].
    Few(BTreeSet<String>),
    /// [`ENOUGH`] or more, or unknown.
    Many,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Same outcome of all calls.
    Same,
    /// Different outcome of at least one.
    Differs,
    /// Too few calls.
    TooFew,
}

pub(crate) fn judge(standing: &Standing, population: &Population) -> Judgement {
    if standing.differing > 0 {
        return Judgement::Differs;
    }
    // Without any object nothing was tried, and nothing is known.
    let everybody = match population {
        Population::Few(objects) => !objects.is_empty() && objects.is_subset(&standing.objects),
        Population::Many => false,
    };
    if standing.recorded > 0 || standing.live >= ENOUGH || everybody { Judgement::Same } else { Judgement::TooFew }
}

/// When `now` is to be published, `told` having been published at `then`: immediately when the judgement changes, after
/// [`PACE`] when only figures do, never without news.
pub(crate) fn due(told: &Standing, then: Instant, now: &Standing, population: &Population) -> Option<Instant> {
    if told == now {
        None
    } else if judge(told, population) == judge(now, population) {
        Some(then + PACE)
    } else {
        Some(then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn standing(recorded: usize, live: usize, differing: usize, objects: &[&str]) -> Standing {
        Standing { recorded, live, differing, objects: set(objects) }
    }

    /// Part 3 of the lifecycle: recorded and live calls decide, and only where all came to the same.
    #[test]
    fn a_waiting_component_has_shown_enough_when_all_calls_or_all_objects_came_to_the_same() {
        use Judgement::{Differs, Same, TooFew};
        let (two, none) = (Population::Few(set(&["a", "b"])), Population::Few(set(&[])));
        let rows = [
            ("nothing yet", standing(0, 0, 0, &[]), &two, TooFew),
            ("no object, no call", standing(0, 0, 0, &[]), &none, TooFew),
            ("no object any more, too few calls", standing(0, 3, 0, &["a"]), &none, TooFew),
            ("recorded calls", standing(1, 0, 0, &[]), &Population::Many, Same),
            ("a recorded call that differs", standing(7, 0, 1, &[]), &two, Differs),
            ("a live call that differs after recorded ones", standing(7, 90, 1, &["a", "b"]), &two, Differs),
            ("one of two objects, again and again", standing(0, ENOUGH - 1, 0, &["a"]), &two, TooFew),
            ("each object once", standing(0, 2, 0, &["a", "b"]), &two, Same),
            ("each object, and one that is gone", standing(0, 3, 0, &["a", "b", "c"]), &two, Same),
            ("many objects, few calls", standing(0, ENOUGH - 1, 0, &["a", "b"]), &Population::Many, TooFew),
            ("many objects, enough calls", standing(0, ENOUGH, 0, &["a"]), &Population::Many, Same),
            ("enough calls, one of which differs", standing(0, ENOUGH, 1, &["a", "b"]), &two, Differs),
        ];
        for (name, standing, population, expected) in rows {
            assert_eq!(judge(&standing, population), expected, "{name}");
        }
    }

    #[test]
    fn what_decides_something_is_told_at_once_and_the_rest_at_a_moderate_pace() {
        let then = Instant::now();
        let (later, many) = (Some(then + PACE), Population::Many);
        let rows = [
            ("nothing new", standing(0, 3, 0, &["a"]), standing(0, 3, 0, &["a"]), None),
            ("one more", standing(0, 3, 0, &["a"]), standing(0, 4, 0, &["a"]), later),
            ("the first that differs", standing(0, 3, 0, &[]), standing(0, 4, 1, &[]), Some(then)),
            ("another that differs", standing(0, 4, 1, &[]), standing(0, 5, 2, &[]), later),
            ("enough", standing(0, ENOUGH - 1, 0, &[]), standing(0, ENOUGH, 0, &[]), Some(then)),
            ("more than enough", standing(0, ENOUGH, 0, &[]), standing(0, ENOUGH + 1, 0, &[]), later),
        ];
        for (name, told, now, expected) in rows {
            assert_eq!(due(&told, then, &now, &many), expected, "{name}");
        }
        let one = Population::Few(set(&["a"]));
        assert_eq!(due(&standing(0, 0, 0, &[]), then, &standing(0, 1, 0, &["a"]), &one), Some(then), "every object");
    }
}
