//! The allocator of the program. What is freed goes back to the system at once.

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, which the bindings leave out.
const PURGE_DELAY: mi_option_t = 15;

/// Gives freed pages back without delay, unless the environment says otherwise. mimalloc waits a second by itself and looks again only
/// when something is allocated: a host that has started and waits would keep half as much again as it uses. It costs no time that
/// can be measured.
pub fn give_back_at_once() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    #[allow(unsafe_code, reason = "the bindings have no safe form")]
    // SAFETY: sets a number in a table of the allocator, whose length the option is below; no thread but this runs yet.
    unsafe {
        mi_option_set(PURGE_DELAY, 0);
    }
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    /// The number of an option is no part of the interface: its default says that it is the one that is meant.
    #[test]
    fn the_option_is_the_delay_of_a_second() {
        #[allow(unsafe_code, reason = "the bindings have no safe form")]
        // SAFETY: reads a number of a table of the allocator, whose length the option is below.
        let delay = unsafe { mi_option_get(super::PURGE_DELAY) };
        assert_eq!(delay, 1000);
    }
}
