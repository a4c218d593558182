#![allow(clippy::unwrap_used, reason = "tests")]

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::*;

fn of(flow: &str) -> Flow {
    Some(flow.into())
}

/// Who gets a slot; `a1` is the first of flow `a`. Small letters are changes, capitals resyncs.
fn admitted(count: usize, asking: &str) -> (FairQueue<String>, String) {
    let mut queue = FairQueue::new(count);
    let granted: Vec<String> = asking.split_whitespace().filter_map(|who| who_has_it(ask(&mut queue, who))).collect();
    (queue, granted.join(" "))
}

fn ask(queue: &mut FairQueue<String>, who: &str) -> Option<Granted<String>> {
    let flow = who[..1].to_lowercase();
    let rank = if who.starts_with(char::is_uppercase) { Rank::Resync } else { Rank::Change };
    queue.ask((flow != "_").then(|| flow.into()), who.to_owned(), rank)
}

fn who_has_it(granted: Option<Granted<String>>) -> Option<String> {
    granted.map(|granted| granted.who)
}

#[test]
fn one_flow_has_at_most_a_quarter_rounded_up() {
    let rows = [
        ("a quarter", 8, "a1 a2 a3 a4", "a1 a2"),
        ("rounded up", 9, "a1 a2 a3 a4", "a1 a2 a3"),
        ("at least one", 2, "a1 a2", "a1"),
        ("of one slot all", 1, "a1 b1", "a1"),
        ("each its own", 8, "a1 a2 a3 b1 b2 b3 c1", "a1 a2 b1 b2 c1"),
        ("all slots are taken", 4, "a1 b1 c1 d1 e1", "a1 b1 c1 d1"),
        ("what is not divided has all", 4, "_1 _2 _3 _4 _5", "_1 _2 _3 _4"),
        ("a resync counts too", 8, "A1 a2 A3 a4", "A1 a2"),
    ];
    for (row, count, asking, expected) in rows {
        assert_eq!(admitted(count, asking).1, expected, "{row}");
    }
}

#[test]
fn a_slot_that_is_left_goes_to_whose_turn_it_is() {
    let rows = [
        ("the one who has waited longest", 4, "a1 b1 c1 d1 e1 f1", "b", "e1"),
        ("its own flow's first", 8, "a1 a2 a3 a4 b1", "a", "a3"),
        ("nobody, when all who wait have their quarter", 8, "a1 a2 a3 b1", "b", ""),
        ("a change before a resync that waits longer", 4, "a1 b1 c1 d1 E1 f1", "a", "f1"),
        ("a resync, when the changes have their quarter", 8, "a1 a2 a3 b1 b2 c1 c2 d1 d2 E1", "b", "E1"),
    ];
    for (row, count, asking, leaving, expected) in rows {
        let (mut queue, _) = admitted(count, asking);
        assert_eq!(who_has_it(queue.release(&of(leaving))).unwrap_or_default(), expected, "{row}");
    }
}

/// A cluster with 1,000 waiting keys has its turn as any other, and no more.
#[test]
fn flows_take_turns_however_long_their_lines_are() {
    let mut queue = FairQueue::new(4);
    ["w", "x", "y", "z"].iter().for_each(|flow| drop(queue.ask(of(flow), format!("{flow}0"), Rank::Change)));
    (0..1_000).for_each(|key| assert_eq!(queue.ask(of("a"), format!("a{key}"), Rank::Change), None));
    for flow in ["b", "c"] {
        (0..2).for_each(|key| assert_eq!(queue.ask(of(flow), format!("{flow}{key}"), Rank::Change), None));
    }
    assert_eq!(queue.ask(of("c"), "c first".to_owned(), Rank::First), None);
    let mut order = Vec::new();
    let mut leaving = of("w");
    for _ in 0..8 {
        let granted = queue.release(&leaving).unwrap();
        leaving = granted.flow;
        order.push(granted.who);
    }
    assert_eq!(order, ["a0", "b0", "c first", "a1", "b1", "c0", "a2", "c1"]);
}

#[test]
fn another_number_of_slots_holds_at_once_and_takes_from_nobody() {
    let (mut queue, granted) = admitted(4, "a1 a2 a3 b1 b2 c1");
    assert_eq!(granted, "a1 b1 c1");
    let more: Vec<_> = queue.resize(8).into_iter().map(|granted| granted.who).collect();
    assert_eq!(more, ["a2", "b2"], "a3 would be more than a quarter of 8");
    assert!(queue.resize(2).is_empty());
    assert_eq!(queue.release(&of("a")), None, "four are still more than two");
    assert_eq!(ask(&mut queue, "d1"), None);
    ["b", "b"].iter().for_each(|flow| assert_eq!(queue.release(&of(flow)), None));
    assert_eq!(who_has_it(queue.release(&of("a"))).as_deref(), Some("a3"), "a has waited longest, and has none now");
}

#[test]
fn who_is_forgotten_gets_nothing() {
    let (mut queue, _) = admitted(4, "a1 a2 A3 b1 b2");
    queue.forget(|who| who.to_lowercase().starts_with('a'));
    assert_eq!(queue.release(&of("a")), None);
    assert_eq!(who_has_it(queue.release(&of("b"))).as_deref(), Some("b2"));
}

#[test]
fn who_does_not_hurry_gets_every_eighth_slot_of_a_busy_host() {
    let mut queue = FairQueue::new(1);
    assert!(queue.ask(None, 0, Rank::Change).is_some());
    (1..=20).for_each(|key| assert_eq!(queue.ask(None, key, Rank::Change), None));
    (101..=102).for_each(|key| assert_eq!(queue.ask(None, key, Rank::Resync), None));
    let order: Vec<u32> = std::iter::from_fn(|| queue.release(&None).map(|granted| granted.who)).collect();
    let expected = [(1..=6).collect(), vec![101], (7..=13).collect(), vec![102], (14..=20).collect::<Vec<_>>()];
    assert_eq!(order, expected.concat());
}

/// Random flows, ranks, endings and sizes: never more than there are, never more than a quarter for one, nobody waits who may
/// go on, and everybody has a slot in the end, exactly once.
#[test]
fn no_share_passes_its_quarter_and_nobody_is_left_out() {
    let mut random = StdRng::seed_from_u64(11);
    for round in 0..200_u64 {
        let mut queue = FairQueue::new(random.random_range(1..20));
        let (mut asked, mut running, mut seen) = (0_usize, Vec::<Flow>::new(), std::collections::HashSet::new());
        for step in 0..400 {
            let granted = match random.random_range(0..10) {
                0..5 if step < 300 => {
                    let rank = [Rank::First, Rank::Change, Rank::Resync][random.random_range(0..3)];
                    asked += 1;
                    // Two of three are of one flow.
                    let flow = of(["hog", "hog", "a", "b", "c", "d"][random.random_range(0..6)]);
                    queue.ask(flow, asked, rank).into_iter().collect()
                }
                5 => queue.resize(random.random_range(1..20)),
                _ if running.is_empty() => Vec::new(),
                _ => {
                    let flow = running.swap_remove(random.random_range(0..running.len()));
                    queue.release(&flow).into_iter().collect()
                }
            };
            for Granted { who, flow } in granted {
                assert!(seen.insert(who), "{who} twice, round {round}");
                running.push(flow.clone());
                let of_flow = running.iter().filter(|other| **other == flow).count();
                assert!(running.len() <= queue.count(), "round {round}");
                assert!(of_flow <= queue.count().div_ceil(4), "round {round}: {of_flow} of {}", queue.count());
            }
            assert_eq!(queue.next(), None, "somebody waits who may go on, round {round}");
        }
        while let Some(flow) = running.pop() {
            running.extend(queue.release(&flow).map(|granted| {
                assert!(seen.insert(granted.who), "twice, round {round}");
                granted.flow
            }));
        }
        assert_eq!(seen.len(), asked, "round {round}");
    }
}
