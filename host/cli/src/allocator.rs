//! The allocator of the program, and how a process at rest gives back what it needed before.

use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often freed memory is given back to the system. mimalloc does so by itself only while others allocate: a host that has started
/// and waits would keep half as much again as it uses.
const EVERY: Duration = Duration::from_secs(5);

/// Gives freed memory back from time to time, for as long as the process lives.
pub fn give_back_regularly() {
    let giving_back = std::thread::Builder::new().name("allocator".to_owned()).spawn(|| {
        loop {
            std::thread::sleep(EVERY);
            #[allow(unsafe_code, reason = "a call without preconditions, from any thread")]
            // SAFETY: mi_collect takes no pointer, and frees nothing that is in use.
            unsafe {
                libmimalloc_sys::mi_collect(true);
            }
        }
    });
    // Without it the process only keeps more than it needs.
    if let Err(error) = giving_back {
        tracing::warn!(%error, "freed memory is not given back regularly");
    }
}
