#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const TERM: Term = Term { duration: Duration::from_secs(5), margin: Duration::from_secs(1) };

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn what_was_renewed_lasts_for_its_duration_less_the_margin() {
    let short = Term { duration: seconds(1.0), margin: seconds(2.0) };
    for (what, term, renewed, now, expected) in [
        ("just renewed", TERM, 100.0, 100.0, Some(4.0)),
        ("some time ago", TERM, 100.0, 103.0, Some(1.0)),
        ("the last moment", TERM, 100.0, 103.5, Some(0.5)),
        ("the margin begins", TERM, 100.0, 104.0, None),
        ("another host may have taken it", TERM, 100.0, 105.0, None),
        ("stopped for half a minute", TERM, 100.0, 130.0, None),
        ("asked for after the clock was read", TERM, 100.5, 100.0, Some(4.5)),
        ("a margin as long as the Lease", short, 100.0, 100.0, None),
    ] {
        assert_eq!(term.left(seconds(renewed), seconds(now)), expected.map(seconds), "{what}");
    }
}

/// A fence, and its clock in milliseconds.
fn fence() -> (Fence, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let read = clock.clone();
    (Fence::with_clock(TERM, move || Duration::from_millis(read.load(Ordering::Relaxed))), clock)
}

#[test]
fn renewals_keep_it_up_and_nothing_raises_it_again_once_it_was_taken_down() {
    let (fence, clock) = fence();
    assert_eq!(fence.left(), Err(Down), "before the first renewal");
    fence.renewed(fence.now());
    assert_eq!(fence.left(), Ok(seconds(4.0)));
    clock.fetch_add(3_000, Ordering::Relaxed);
    fence.renewed(fence.now());
    assert_eq!(fence.left(), Ok(seconds(4.0)));
    fence.renewed(fence.now() - seconds(2.0));
    assert_eq!(fence.left(), Ok(seconds(4.0)), "an answer that comes late takes nothing away");
    clock.fetch_add(4_000, Ordering::Relaxed);
    assert_eq!(fence.left(), Err(Down));
    fence.renewed(fence.now());
    assert_eq!(fence.left(), Ok(seconds(4.0)), "nobody else took the Lease, or it could not have been renewed");
    fence.clone().lower();
    fence.renewed(fence.now());
    assert_eq!(fence.left(), Err(Down), "given back");
    assert_eq!(Fence::none().left(), Ok(Duration::MAX));
}

/// The process stands still between two steps of a write: no timer fires, and when it goes on the Lease is over.
#[tokio::test]
async fn a_write_that_stood_still_goes_no_step_further() {
    let (fence, clock) = fence();
    fence.renewed(fence.now());
    let (steps, go) = (Arc::new(AtomicU64::new(0)), Arc::new(tokio::sync::Notify::new()));
    let write = {
        let (fence, steps, go) = (fence.clone(), steps.clone(), go.clone());
        tokio::spawn(async move {
            let steps = async {
                steps.fetch_add(1, Ordering::Relaxed);
                go.notified().await;
                steps.fetch_add(1, Ordering::Relaxed);
            };
            fence.guard(steps).await
        })
    };
    while steps.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    clock.fetch_add(30_000, Ordering::Relaxed);
    go.notify_one();
    assert_eq!(write.await.unwrap(), Err(Down));
    assert_eq!(steps.load(Ordering::Relaxed), 1);
    assert_eq!(fence.guard(async { panic!("it begins") }).await, Err(Down));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_hangs_ends_before_the_lease_does_and_goes_on_while_it_is_renewed() {
    let begin = tokio::time::Instant::now();
    let fence = Fence::with_clock(TERM, move || begin.elapsed());
    fence.renewed(fence.now());
    let renewals = {
        let fence = fence.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                tokio::time::sleep(seconds(1.0)).await;
                fence.renewed(fence.now());
            }
        })
    };
    assert_eq!(fence.guard(std::future::pending::<()>()).await, Err(Down));
    assert_eq!(begin.elapsed().as_secs(), 14, "four seconds after the last renewal");
    renewals.await.unwrap();
    assert_eq!(Fence::none().guard(async { 1 }).await, Ok(1));
}

/// The process stands still after a request was handed to its connection, and before that one writes it.
#[tokio::test]
async fn a_connection_that_stood_still_goes_no_step_further() {
    let (fence, clock) = fence();
    fence.renewed(fence.now());
    let (hand, mut handed) = tokio::sync::mpsc::unbounded_channel();
    let (written, mut writes) = tokio::sync::mpsc::unbounded_channel();
    fence.execute(async move {
        while let Some(request) = handed.recv().await {
            written.send(request).unwrap();
        }
    });
    hand.send("in time").unwrap();
    assert_eq!(writes.recv().await, Some("in time"));
    hand.send("before it stood still").unwrap();
    clock.fetch_add(30_000, Ordering::Relaxed);
    assert_eq!(writes.recv().await, None, "it has ended");
}
