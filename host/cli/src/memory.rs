//! Memory of the program: its allocator, and the pages of its own code.

use std::time::Duration;

/// Less room between what is long lived and what is not than with the system's allocator or mimalloc: a seventh less for 300 clusters.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Options of jemalloc, which `_RJEM_MALLOC_CONF` in the environment overrides. Two arenas for all threads, of which the runtime has many
/// that do little; what is freed goes back to the system within half a second, by a thread, so also on a host where nothing happens.
#[allow(unsafe_code, reason = "jemalloc reads it by this name")]
// SAFETY: nothing else has this name, and it is of the type that jemalloc expects: a pointer to a text that ends with NUL.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: &[u8; 69] = b"narenas:2,background_thread:true,dirty_decay_ms:500,muzzy_decay_ms:0\0";

/// From its start until a host has done what it does only then.
const START: Duration = Duration::from_secs(10);

/// Unmaps the program's code once the host has started. What it goes on using is mapped again from the page cache, some 16 pages at a
/// time; most of what a start needs, it does not need again.
pub async fn forget_start() {
    tokio::time::sleep(START).await;
    match forget_code() {
        Ok(bytes) => tracing::debug!(bytes, "the program's code is unmapped until it is used again"),
        Err(error) => tracing::debug!(%error, "the program's code stays mapped"),
    }
}

/// Returns how many bytes of code it has unmapped, used ones and others.
#[cfg(target_os = "linux")]
fn forget_code() -> std::io::Result<usize> {
    let program = std::env::current_exe()?;
    let mut forgotten = 0;
    for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
        let Some((start, length)) = code_of(line, &program.to_string_lossy()) else { continue };
        let address = std::ptr::with_exposed_provenance_mut(start);
        #[allow(unsafe_code, reason = "it is about addresses")]
        // SAFETY: a mapping of a file that nobody can have written to, as it is not writable and position-independent code is not
        // relocated: its pages come back as they are.
        unsafe {
            rustix::mm::madvise(address, length, rustix::mm::Advice::LinuxDontNeed)?;
        }
        forgotten += length;
    }
    Ok(forgotten)
}

#[cfg(not(target_os = "linux"))]
fn forget_code() -> std::io::Result<usize> {
    Ok(0)
}

/// Start and length of the mapping in a line of `/proc/PID/maps`, if it is code of `program`.
#[cfg(target_os = "linux")]
fn code_of(line: &str, program: &str) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    let (mode, rest) = rest.split_once(' ')?;
    if mode != "r-xp" || rest.splitn(4, ' ').nth(3)?.trim_start() != program {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some((start, end.checked_sub(start)?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn code_of_the_program_is_told_from_other_mappings() {
        let rows = [
            (
                "55d0a000-55d0c000 r-xp 0000a000 fe:00 123                        /opt/a b/capwasm",
                Some((0x55d0_a000, 0x2000)),
            ),
            ("55d0a000-55d0c000 r--p 0000a000 fe:00 123                        /opt/a b/capwasm", None),
            ("55d0a000-55d0c000 rw-p 0000a000 fe:00 123                        /opt/a b/capwasm", None),
            ("7f000000-7f001000 r-xp 00000000 fe:00 9                          /lib/libc.so.6", None),
            ("7f000000-7f001000 r-xp 00000000 00:00 0", None),
            ("7f000000-7f001000 r-xp 00000000 00:00 0                          [vdso]", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(code_of(line, "/opt/a b/capwasm"), expected, "{line}");
        }
    }

    #[test]
    fn the_program_goes_on_without_its_mapped_code() {
        let forgotten = forget_code().unwrap();
        assert!(forgotten > 1 << 20, "{forgotten} bytes: its own mapping was not found");
        assert_eq!(forget_code().unwrap(), forgotten, "what ran meanwhile is mapped as before");
    }

    /// jemalloc keeps quiet about options that it does not understand.
    #[test]
    fn the_options_are_read() {
        assert_eq!(OPTIONS.last(), Some(&0));
        #[allow(unsafe_code, reason = "the bindings have no safe form")]
        // SAFETY: the names end with NUL, and the types are those of jemalloc's manual.
        let (arenas, decay) = unsafe {
            use tikv_jemalloc_ctl::raw::read;
            (read::<u32>(b"opt.narenas\0").unwrap(), read::<isize>(b"opt.dirty_decay_ms\0").unwrap())
        };
        assert_eq!((arenas, decay), (2, 500));
    }
}
