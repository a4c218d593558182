//! Sanitizes texts of a guest for logs, conditions and events.

/// A text as one line of at most `bytes` bytes. Control characters, which could forge lines or drive a terminal, are
/// replaced, as are Unicode's line ends and marks of direction.
pub(crate) fn line(text: &str, bytes: usize) -> String {
    let harmful = |c: char| {
        let directs =
            matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || directs || matches!(c, '\u{2028}' | '\u{2029}')
    };
    cut(text, bytes).chars().map(|c| if harmful(c) { ' ' } else { c }).collect()
}

/// As [`line`], marked where text is left out.
pub(crate) fn shortened(text: &str, bytes: usize) -> String {
    let mut short = line(text, bytes);
    if text.len() > bytes {
        short.push('…');
    }
    short
}

/// Cuts a text at a character boundary.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_forge_lines_or_drive_a_terminal_is_removed() {
        let forged = "a\nERROR b\r\u{1b}[2J\u{7}\u{9b}31m\u{2028}c\u{202e}d\u{2066}e\0f";
        assert_eq!(line(forged, 99), "a ERROR b  [2J  31m c d e f");
        assert_eq!(line("ä – 日本 😀", 99), "ä – 日本 😀");
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(cut(&"ü".repeat(10), 10).len(), 10);
        assert_eq!(cut(&format!("x{}", "ü".repeat(10)), 10).len(), 9);
        assert_eq!((cut("short", 10), shortened("short", 5).as_str()), ("short", "short"));
        assert_eq!(shortened("longer", 4), "long…");
    }
}
