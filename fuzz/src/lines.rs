//! Inputs of several texts, one a line, so that people can write them.

/// The first `N` lines; missing ones are empty. `None` when it is no text.
pub fn lines<const N: usize>(data: &[u8]) -> Option<[&str; N]> {
    let mut lines = std::str::from_utf8(data).ok()?.splitn(N + 1, '\n');
    Some(std::array::from_fn(|_| lines.next().unwrap_or_default()))
}
