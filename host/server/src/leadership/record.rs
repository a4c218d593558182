//! What a Lease says, and how long it is somebody's. Pure.
//!
//! As in client-go's leader election, a Lease is free when nobody holds it, or when its holder has not renewed it for its duration: counted
//! on the clock of whoever looks, from when the last renewal was seen. So no two clocks have to agree.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Of a Lease without one.
const DURATION: Duration = Duration::from_secs(15);

/// A Lease as it was last seen to change.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    spec: LeaseSpec,
    /// When the change was seen, on the clock of this process.
    since: Duration,
}

impl Seen {
    /// Takes note of a look at `now`.
    pub(super) fn look(before: Option<Seen>, spec: &LeaseSpec, now: Duration) -> Seen {
        match before {
            Some(before) if before.spec == *spec => before,
            _ => Seen { spec: spec.clone(), since: now },
        }
    }

    /// Time until anybody may take it, if it is not renewed; zero when it is free.
    pub(super) fn free_in(&self, now: Duration) -> Duration {
        if holder(&self.spec).is_none() {
            return Duration::ZERO;
        }
        let duration = self.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = duration.map_or(DURATION, Duration::from_secs);
        (self.since + duration).saturating_sub(now)
    }
}

/// Who holds it.
pub(super) fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// The Lease in the hands of `identity`: taken, or renewed if it was already.
pub(super) fn held(before: Option<&LeaseSpec>, identity: &str, duration: Duration, now: Timestamp) -> LeaseSpec {
    let renewed = before.filter(|spec| holder(spec) == Some(identity));
    let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or_default();
    LeaseSpec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
        acquire_time: renewed.and_then(|spec| spec.acquire_time.clone()).or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(match (before, renewed) {
            (Some(_), None) => transitions.saturating_add(1),
            _ => transitions,
        }),
        ..before.cloned().unwrap_or_default()
    }
}

/// The Lease in nobody's hands.
pub(super) fn released(before: &LeaseSpec) -> LeaseSpec {
    LeaseSpec { holder_identity: None, ..before.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    fn spec(holder: &str, renewed: i64) -> LeaseSpec {
        held(None, holder, Duration::from_secs(5), Timestamp::from_second(renewed).unwrap())
    }

    /// Rows: looks at (seconds on this process' clock, Lease), and the time until it is free after the last of them.
    #[test]
    fn a_lease_is_free_when_its_renewals_were_not_seen_for_its_duration() {
        let a = |renewed| spec("a", renewed);
        let unlimited = LeaseSpec { lease_duration_seconds: None, ..a(1) };
        let table = [
            ("seen for the first time", vec![(100, a(1))], 5),
            ("the clock of its holder is far behind, or far ahead", vec![(100, a(9_000_000_000))], 5),
            ("not renewed for three seconds", vec![(100, a(1)), (103, a(1))], 2),
            ("renewed meanwhile", vec![(100, a(1)), (103, a(3))], 5),
            ("not renewed for its duration", vec![(100, a(1)), (105, a(1))], 0),
            ("not renewed for long", vec![(100, a(1)), (500, a(1))], 0),
            ("given back", vec![(100, a(1)), (101, released(&a(1)))], 0),
            ("taken by another one", vec![(100, a(1)), (104, spec("b", 1))], 5),
            ("without a duration", vec![(100, unlimited)], 15),
        ];
        for (what, looks, expected) in table {
            let now = Duration::from_secs(looks.last().unwrap().0);
            let seen =
                looks.into_iter().fold(None, |seen, (at, spec)| Some(Seen::look(seen, &spec, Duration::from_secs(at))));
            assert_eq!(seen.unwrap().free_in(now), Duration::from_secs(expected), "{what}");
        }
    }

    #[test]
    fn a_transition_counts_and_a_renewal_does_not() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let duration = Duration::from_secs(5);
        let first = held(None, "a", duration, at(1));
        let renewed = held(Some(&first), "a", duration, at(2));
        let other = held(Some(&renewed), "b", duration, at(9));
        let back = held(Some(&released(&other)), "b", duration, at(10));
        let told = |spec: &LeaseSpec| {
            let second = |time: &Option<MicroTime>| time.as_ref().unwrap().0.as_second();
            (spec.lease_transitions, second(&spec.acquire_time), second(&spec.renew_time))
        };
        assert_eq!(told(&first), (Some(0), 1, 1));
        assert_eq!(told(&renewed), (Some(0), 1, 2));
        assert_eq!(told(&other), (Some(1), 9, 9));
        assert_eq!(told(&back), (Some(2), 10, 10));
        assert_eq!((holder(&other), holder(&released(&other))), (Some("b"), None));
    }
}
