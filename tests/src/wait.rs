//! Waiting for something with a deadline, and looking whether something stays as it is.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Longest wait for anything that a cluster does on its own; many times what it takes on two idle cores.
pub const LONG: Duration = Duration::from_secs(120);
/// How often it is looked.
const GLANCE: Duration = Duration::from_millis(40);

/// Waits until `look` gives a value. Until then it says what it sees instead, which the failure shows.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + LONG;
    loop {
        match look().await {
            Ok(value) => return value,
            Err(seen) if Instant::now() > deadline => panic!("not within {LONG:?}: {what}; last seen: {seen}"),
            Err(_) => tokio::time::sleep(GLANCE).await,
        }
    }
}

/// Asserts that what `look` sees does not change for a time.
pub async fn unchanged<T: PartialEq + Debug>(what: &str, time: Duration, mut look: impl AsyncFnMut() -> T) -> T {
    let first = look().await;
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::sleep(GLANCE * 5).await;
        assert_eq!(look().await, first, "{what} changes");
    }
    first
}
