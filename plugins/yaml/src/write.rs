//! Writes JSON values as YAML: block style, deterministic, readable.
//!
//! Keys are sorted, except that those that name a thing (`apiVersion`, `kind`, `path`, `name`) come first. Strings stand
//! bare where no YAML reader can take them for something else, as a literal block where they have several lines, and
//! quoted otherwise. What is written reads back as the same value (held by a property test).

use serde_json::{Map, Value};

/// Keys that come before the sorted rest, in this order.
const FIRST: [&str; 4] = ["apiVersion", "kind", "path", "name"];

/// Words that YAML 1.1 or 1.2 readers take for something other than a string.
const RESERVED: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// One document, ending in a line feed, without `---`.
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    if is_block(value) {
        collection(&mut out, value, 0, false);
    } else {
        scalar(&mut out, value, 0);
        out.push('\n');
    }
    out
}

/// A map or list with something in it, which takes lines of its own.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Every line begins at column `indent`; `started` says that the first one is already there.
fn collection(out: &mut String, value: &Value, indent: usize, mut started: bool) {
    let mut begin = |out: &mut String| {
        if !std::mem::take(&mut started) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match value {
        Value::Object(map) => {
            for (key, value) in in_order(map) {
                begin(out);
                out.push_str(&inline(key));
                out.push(':');
                if is_block(value) {
                    out.push('\n');
                    // A list may stand at its key's own column.
                    collection(out, value, if value.is_array() { indent } else { indent + 2 }, false);
                } else {
                    out.push(' ');
                    scalar(out, value, indent);
                    out.push('\n');
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                begin(out);
                out.push_str("- ");
                if is_block(item) {
                    collection(out, item, indent + 2, true);
                } else {
                    scalar(out, item, indent);
                    out.push('\n');
                }
            }
        }
        _ => {}
    }
}

fn in_order(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
    entries
}

/// A value that is not a block, without its final line feed; `indent` is the column of the key or dash before it.
fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) if fits_literal(text) => literal(out, text, indent + 2),
        Value::String(text) => out.push_str(&inline(text)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Several lines that a literal block keeps exactly, without an indentation indicator. Blank lines at the end would only
/// be kept by one that takes whatever blank lines follow it, too.
fn fits_literal(text: &str) -> bool {
    !text.ends_with("\n\n")
        && text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && text.chars().all(|c| c == '\n' || c == '\t' || is_plain_to_print(c))
        && text.trim_end_matches('\n').lines().last().is_some_and(|line| !line.trim().is_empty())
        || is_one_whole_line(text)
}

/// A single line with its line feed, as small files have it.
fn is_one_whole_line(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|line| {
        !line.is_empty()
            && !line.starts_with([' ', '\t'])
            && line.chars().all(|c| c == '\t' || is_plain_to_print(c))
            && !line.trim().is_empty()
    })
}

fn literal(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push_str(if body.len() == text.len() { "|-" } else { "|" });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            out.extend(std::iter::repeat_n(' ', indent));
            out.push_str(line);
        }
    }
}

/// Text on one line: bare, in single quotes, or in double quotes with escapes.
fn inline(text: &str) -> String {
    if is_bare(text) {
        text.to_owned()
    } else if !text.contains('\'') && text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        format!("'{text}'")
    } else {
        double_quoted(text)
    }
}

fn is_bare(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c))
        && !RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Printable everywhere, and no line break for any reader.
fn is_plain_to_print(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_plain_to_print(c) => out.push(c),
            c => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    use serde_json::json;

    #[test]
    fn blocks_lists_and_literals_are_written_as_a_person_would() {
        let value = json!({
            "write_files": [{"path": "/etc/a", "content": "one\ntwo\n", "permissions": "0640"}],
            "runcmd": ["kubeadm init", "it's"],
            "mounts": [["a", "b"], []],
            "empty": {}, "flag": true, "number": 5,
        });
        assert_eq!(
            document(&value),
            "empty: {}\nflag: true\nmounts:\n- - a\n  - b\n- []\nnumber: 5\nruncmd:\n- 'kubeadm init'\n- \"it's\"\n\
             write_files:\n- path: /etc/a\n  content: |\n    one\n    two\n  permissions: '0640'\n"
        );
    }

    #[test]
    fn what_other_readers_take_for_something_else_is_quoted() {
        for text in [
            "",
            "true",
            "No",
            "1",
            "0640",
            "1e3",
            "~",
            "- a",
            "a: b",
            "a #b",
            "*a",
            "@a",
            "null",
            " a",
            "a ",
            ".5",
            "-",
            "{a}",
            "2026-01-01",
        ] {
            let written = document(&json!([text]));
            assert!(written.starts_with("- '"), "{text:?} was written as {written}");
        }
        for text in ["a", "/etc/kubernetes", "quay.io/x", "v1.36.0", "kube-system"] {
            assert_eq!(document(&json!([text])), format!("- {text}\n"));
        }
    }

    /// A value whose strings are made of everything that YAML finds special.
    fn arbitrary(rng: &mut StdRng, depth: usize) -> Value {
        match rng.random_range(0..if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => Value::Bool(rng.random()),
            2 => json!(rng.random::<i32>()),
            3 | 4 => Value::String(arbitrary_text(rng)),
            5 => Value::Array((0..rng.random_range(0..4)).map(|_| arbitrary(rng, depth - 1)).collect()),
            _ => Value::Object(
                (0..rng.random_range(0..4)).map(|_| (arbitrary_text(rng), arbitrary(rng, depth - 1))).collect(),
            ),
        }
    }

    fn arbitrary_text(rng: &mut StdRng) -> String {
        const PIECES: [&str; 34] = [
            "a",
            "b",
            "Z",
            "0",
            "7",
            " ",
            "  ",
            "\n",
            "\n\n",
            "\t",
            ":",
            ": ",
            "#",
            " #",
            "-",
            "- ",
            "'",
            "\"",
            "\\",
            "|",
            ">",
            "&",
            "*",
            "{",
            "}",
            "[",
            "%",
            "@",
            "`",
            "é",
            "\u{7f}",
            "\u{2028}",
            "\u{1f600}",
            "---\n",
        ];
        (0..rng.random_range(0..8)).map(|_| PIECES[rng.random_range(0..PIECES.len())]).collect()
    }

    #[test]
    fn whatever_is_written_reads_back_as_the_same_value() {
        for seed in 0..20_000 {
            let value = arbitrary(&mut StdRng::seed_from_u64(seed), 3);
            let written = document(&value);
            let read: Value = serde_saphyr::from_str(&written)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{written}\nof {value}"));
            assert_eq!(read, value, "seed {seed}:\n{written}");
        }
    }
}
