//! Waiting for something with a deadline, and looking whether something stays as it is.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Longest wait for anything that a cluster does on its own; many times what it takes on two idle cores.
pub const LONG: Duration = Duration::from_secs(120);
/// How often it is looked.
const GLANCE: Duration = Duration::from_millis(40);

/// [`LONG`], or so many seconds as `CAPWASM_TEST_PATIENCE` says, for a machine that has other work to do.
pub fn patience() -> Duration {
    let told = std::env::var("CAPWASM_TEST_PATIENCE").ok().and_then(|seconds| seconds.parse().ok());
    told.map_or(LONG, Duration::from_secs)
}

/// Waits until `look` gives a value. Until then it says what it sees instead, which the failure shows.
pub async fn until<T>(what: &str, look: impl AsyncFnMut() -> Result<T, String>) -> T {
    until_every(GLANCE, what, look).await
}

/// The same for a look that costs others something.
pub async fn until_every<T>(glance: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let patience = patience();
    let deadline = Instant::now() + patience;
    loop {
        match look().await {
            Ok(value) => return value,
            Err(seen) if Instant::now() > deadline => panic!("not within {patience:?}: {what}; last seen: {seen}"),
            Err(_) => tokio::time::sleep(glance).await,
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
