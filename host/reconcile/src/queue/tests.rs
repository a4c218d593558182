#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::*;

const LONG: Duration = Duration::from_secs(600);

fn queue() -> (Queue<u32>, Instant) {
    let now = Instant::now();
    (Queue::new(Rates::default(), now), now)
}

fn pop(queue: &mut Queue<u32>, now: Instant) -> Option<Run<u32>> {
    while let Some((key, _)) = queue.ready(now) {
        if let Some(run) = queue.start(&key, now) {
            return Some(run);
        }
    }
    None
}

#[test]
fn many_changes_are_one_run_and_a_change_while_running_is_another() {
    let (mut queue, now) = queue();
    (0..3).for_each(|_| queue.add(&1, now));
    assert_eq!(pop(&mut queue, now).unwrap().key, 1);
    assert_eq!(pop(&mut queue, now), None);
    (0..3).for_each(|_| queue.add(&1, now));
    assert_eq!(pop(&mut queue, now), None, "not twice at a time");
    queue.done(&1, Outcome::Done(LONG), 0.5, now);
    assert_eq!(pop(&mut queue, now).unwrap().key, 1);
    queue.done(&1, Outcome::Done(LONG), 0.5, now);
    assert_eq!(pop(&mut queue, now), None);
    assert_eq!(queue.next_timer(), Some(now + LONG));
    assert_eq!(pop(&mut queue, now + LONG).unwrap().key, 1);
}

#[test]
fn what_a_key_wrote_itself_is_looked_at_later_and_what_others_wrote_at_once() {
    type Row<'a> = (&'a str, &'a [(u64, Urgency)], &'a [u64], Option<Duration>);
    let rows: [Row<'_>; 5] = [
        ("nothing", &[], &[], None),
        ("its own", &[(2, Urgency::Now), (3, Urgency::Now)], &[2, 3], Some(LATER)),
        (
            "another's between its own",
            &[(2, Urgency::Now), (3, Urgency::Now), (4, Urgency::Now)],
            &[2, 4],
            Some(Duration::ZERO),
        ),
        ("another's, for people", &[(2, Urgency::Later)], &[], Some(LATER)),
        ("its own, of which no word has come yet", &[], &[2], None),
    ];
    for (row, versions, own, runs_after) in rows {
        let (mut queue, now) = queue();
        queue.add(&1, now);
        pop(&mut queue, now).unwrap();
        versions.iter().for_each(|(version, urgency)| queue.add_version(&1, *version, *urgency, now));
        queue.wrote(&1, own);
        queue.done(&1, Outcome::Done(LONG), 0.5, now);
        let after = runs_after.unwrap_or(LONG);
        let just_before = after.saturating_sub(Duration::from_millis(1));
        assert!(after.is_zero() || pop(&mut queue, now + just_before).is_none(), "{row}: too early");
        assert!(pop(&mut queue, now + after).is_some(), "{row}: not in time");
    }
}

#[test]
fn a_key_rests_after_a_run_in_proportion_to_it() {
    let second = Duration::from_secs(1);
    let rows = [
        ("a short run", Duration::from_millis(5), Outcome::Done(LONG), Duration::from_millis(20)),
        ("a long one", second, Outcome::Done(LONG), Rates::default().most_rest),
        ("it asked for another", second, Outcome::Again, Duration::ZERO),
        ("it decided on stale data", second, Outcome::Conflict, Duration::ZERO),
    ];
    for (row, took, outcome, rest) in rows {
        let (mut queue, started) = queue();
        queue.add(&1, started);
        pop(&mut queue, started).unwrap();
        let now = started + took;
        queue.done(&1, outcome, 0.5, now);
        queue.add(&1, now);
        queue.add(&1, now + rest / 2);
        assert!(rest.is_zero() || pop(&mut queue, now + rest / 2).is_none(), "{row}: too early");
        assert!(pop(&mut queue, now + rest).is_some(), "{row}: not in time");
    }
}

#[test]
fn who_writes_an_object_without_end_makes_the_queue_remember_little() {
    let (mut queue, now) = queue();
    queue.add(&1, now);
    pop(&mut queue, now).unwrap();
    (0..10_000).for_each(|version| queue.add_version(&1, version, Urgency::Now, now));
    assert_eq!(queue.entries[&1].versions.len(), MOST_VERSIONS);
    queue.wrote(&1, &(0..16).collect::<Vec<_>>());
    queue.done(&1, Outcome::Done(LONG), 0.5, now);
    assert!(pop(&mut queue, now).is_some(), "what was not remembered was not its own");
}

#[test]
fn changes_that_nobody_hurries_for_are_one_run() {
    let (mut queue, now) = queue();
    queue.add_later(&1, now);
    queue.add_later(&1, now + LATER / 2);
    assert_eq!(pop(&mut queue, now + LATER / 2), None);
    queue.add_version(&1, 7, Urgency::Later, now + LATER / 2);
    assert_eq!(pop(&mut queue, now + LATER).unwrap().attempt, 1);
    queue.add_later(&1, now + LATER);
    queue.done(&1, Outcome::Done(LONG), 0.5, now + LATER);
    assert_eq!(pop(&mut queue, now + LATER), None);
    queue.add(&1, now + LATER);
    assert!(pop(&mut queue, now + LATER).is_some(), "a change that matters does not wait");
    queue.done(&1, Outcome::Done(LONG), 0.5, now + LATER);
    assert_eq!(pop(&mut queue, now + LATER * 3), None, "and what came before it has been looked at with it");
}

#[test]
fn a_change_that_nobody_hurries_for_is_behind_others_until_one_comes_that_somebody_does() {
    let (mut queue, now) = queue();
    let ranks = |queue: &mut Queue<u32>, at: Instant| std::iter::from_fn(|| queue.ready(at)).collect::<Vec<_>>();
    queue.add_later(&1, now);
    assert_eq!(ranks(&mut queue, now + LATER), [(1, Rank::Resync)]);
    queue.add(&1, now + LATER);
    assert_eq!(ranks(&mut queue, now + LATER), [(1, Rank::Change)]);
    queue.start(&1, now + LATER).unwrap();
    // Asked to run again long after: that it runs earlier, for another reason, makes it no more urgent.
    queue.add_later(&1, now + LATER);
    queue.done(&1, Outcome::Done(LONG), 0.5, now + LATER);
    assert_eq!(ranks(&mut queue, now + LATER * 2), [(1, Rank::Resync)]);
    queue.start(&1, now + LATER * 2).unwrap();
    queue.done(&1, Outcome::Done(LONG), 0.5, now + LATER * 2);
    assert_eq!(ranks(&mut queue, now + LONG * 2), [(1, Rank::Change)]);
}

#[test]
fn failures_back_off_to_a_limit_and_success_forgives() {
    let (mut queue, mut now) = queue();
    queue.add(&1, now);
    let mut delays = Vec::new();
    for attempt in 1..=14 {
        let run = pop(&mut queue, now).unwrap();
        assert_eq!(run.attempt, attempt);
        queue.done(&1, Outcome::Backoff, 0.5, now);
        let next = queue.next_timer().unwrap();
        delays.push((next - now).as_millis());
        now = next;
    }
    assert_eq!(delays[..4], [50, 100, 200, 400]);
    assert_eq!(*delays.last().unwrap(), 60_000);
    pop(&mut queue, now).unwrap();
    queue.done(&1, Outcome::Done(LONG), 0.5, now);
    queue.add(&1, now);
    assert_eq!(pop(&mut queue, now).unwrap().attempt, 1);
    queue.done(&1, Outcome::Backoff, 0.5, now);
    assert_eq!(queue.next_timer(), Some(now + Duration::from_millis(50)));
}

#[test]
fn a_change_cuts_a_backoff_short() {
    let (mut queue, now) = queue();
    queue.add(&1, now);
    pop(&mut queue, now);
    queue.done(&1, Outcome::RetryAfter(LONG), 0.5, now);
    assert_eq!(pop(&mut queue, now), None);
    queue.add(&1, now);
    assert_eq!(pop(&mut queue, now).unwrap().attempt, 1);
}

#[test]
fn the_first_conflicts_are_tried_again_at_once() {
    let (mut queue, now) = queue();
    queue.add(&1, now);
    for _ in 0..5 {
        pop(&mut queue, now).unwrap();
        queue.done(&1, Outcome::Conflict, 0.5, now);
    }
    pop(&mut queue, now).unwrap();
    queue.done(&1, Outcome::Conflict, 0.5, now);
    assert_eq!(pop(&mut queue, now), None);
    assert!(queue.next_timer().is_some());
}

#[test]
fn a_key_that_becomes_more_urgent_is_told_again_and_started_once() {
    let (mut queue, now) = queue();
    queue.add_resync(&1, now);
    queue.add_resync(&2, now);
    assert_eq!(queue.ready(now), Some((1, Rank::Resync)));
    queue.add(&1, now);
    queue.add(&2, now);
    let told: Vec<_> = std::iter::from_fn(|| queue.ready(now)).collect();
    assert_eq!(told, [(2, Rank::Change), (1, Rank::Change)], "2 once, as nobody knew of it");
    assert_eq!(queue.waiting(), 2);
    assert!(queue.start(&1, now).is_some());
    assert_eq!(queue.start(&1, now), None);
    assert_eq!(queue.waiting(), 1);
}

#[test]
fn a_key_that_was_started_before_it_was_told_of_is_no_news() {
    let (mut queue, now) = queue();
    queue.add_resync(&1, now);
    queue.ready(now);
    queue.add(&1, now);
    queue.start(&1, now).unwrap();
    assert_eq!(queue.ready(now), None);
    queue.done(&1, Outcome::Again, 0.5, now);
    assert_eq!(queue.ready(now), Some((1, Rank::Change)));
}

#[test]
fn a_parked_key_keeps_its_changes_and_goes_first_when_it_may() {
    let (mut queue, now) = queue();
    queue.add(&1, now);
    assert_eq!(pop(&mut queue, now).unwrap().key, 1);
    queue.park(&1);
    queue.add(&1, now);
    assert_eq!(queue.waiting(), 0);
    queue.unpark(&1, now);
    assert_eq!(queue.ready(now), Some((1, Rank::First)));
}

#[test]
fn a_key_that_wakes_itself_is_slowed_down() {
    let (mut queue, now) = queue();
    queue.add(&1, now);
    let mut runs = 0;
    for tenth in 0..100 {
        let now = now + Duration::from_millis(tenth * 100);
        while pop(&mut queue, now).is_some() {
            runs += 1;
            queue.done(&1, Outcome::Again, 0.5, now);
        }
    }
    assert!((60..=72).contains(&runs), "30 at once and 4 a second for 10 s, not {runs}");
}

#[test]
fn a_forgotten_key_leaves_nothing_behind_unless_it_changed() {
    let (mut queue, now) = queue();
    queue.add(&1, now);
    pop(&mut queue, now);
    queue.done(&1, Outcome::Forget, 0.5, now);
    assert!(queue.is_empty());
    queue.add(&1, now);
    pop(&mut queue, now);
    queue.add(&1, now);
    queue.done(&1, Outcome::Forget, 0.5, now);
    assert_eq!(pop(&mut queue, now).unwrap().key, 1);
}

/// 5,000 keys under random changes, endings and time: none runs twice at a time, none that changed is left out.
#[test]
fn every_change_is_followed_by_a_run_and_no_key_runs_twice_at_a_time() {
    let mut random = StdRng::seed_from_u64(7);
    let (mut queue, mut now) = queue();
    let (mut running, mut parked) = (HashSet::new(), HashSet::new());
    let mut due = HashSet::new();
    for _ in 0..60_000 {
        match random.random_range(0..10) {
            0..4 => {
                let key = random.random_range(0..5_000);
                queue.add(&key, now);
                due.insert(key);
            }
            4..7 => {
                if let Some(run) = pop(&mut queue, now) {
                    assert!(running.insert(run.key), "{} runs twice", run.key);
                    assert!(!parked.contains(&run.key));
                    due.remove(&run.key);
                    if random.random_bool(0.1) {
                        running.remove(&run.key);
                        parked.insert(run.key);
                        due.insert(run.key);
                        queue.park(&run.key);
                    }
                }
            }
            7 => {
                if let Some(key) = parked.iter().next().copied() {
                    parked.remove(&key);
                    queue.unpark(&key, now);
                }
            }
            8 => {
                if let Some(key) = running.iter().next().copied() {
                    running.remove(&key);
                    let outcome = match random.random_range(0..5) {
                        0 => Outcome::Backoff,
                        1 => Outcome::Conflict,
                        2 => Outcome::RetryAfter(Duration::from_secs(5)),
                        3 => Outcome::Forget,
                        _ => Outcome::Done(LONG),
                    };
                    queue.done(&key, outcome, 0.5, now);
                }
            }
            _ => now += Duration::from_millis(random.random_range(0..50)),
        }
    }
    parked.drain().for_each(|key| queue.unpark(&key, now));
    running.drain().for_each(|key| queue.done(&key, Outcome::Done(LONG), 0.5, now));
    now += Duration::from_secs(60);
    while let Some(run) = pop(&mut queue, now) {
        due.remove(&run.key);
        queue.done(&run.key, Outcome::Done(LONG), 0.5, now);
    }
    assert!(due.is_empty(), "{} changed keys never ran", due.len());
}
