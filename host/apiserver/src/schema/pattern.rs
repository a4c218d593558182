//! Regular expressions of schemas: RE2 as Go writes it, run by the `regex` crate.
//!
//! Both are linear in the text. Two differences are bridged: in RE2 `\d`, `\w` and `\s` are ASCII, and a bracket
//! inside a class is a plain character. Compiled expressions are large and the same few stand in many schemas, so
//! they are shared within the process for as long as someone holds them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};

/// A compiled program may take this much memory; beyond it the pattern is refused.
const SIZE_LIMIT: usize = 1 << 20;
/// Longest pattern that is compiled, in bytes.
const LENGTH_LIMIT: usize = 16 << 10;

static COMPILED: LazyLock<Mutex<HashMap<String, Weak<Regex>>>> = LazyLock::new(Mutex::default);

/// Compiles a pattern, or shares a compiled one. Errors say what is wrong with it.
pub(super) fn compile(pattern: &str) -> Result<Arc<Regex>, String> {
    if let Some(found) = COMPILED.lock().get(pattern).and_then(Weak::upgrade) {
        return Ok(found);
    }
    if pattern.len() > LENGTH_LIMIT {
        return Err(format!("pattern is longer than {LENGTH_LIMIT} bytes"));
    }
    let regex = RegexBuilder::new(&translate(pattern))
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(SIZE_LIMIT)
        .nest_limit(100)
        .build()
        .map_err(|error| format!("error parsing regexp: {error}"))?;
    let regex = Arc::new(regex);
    let mut compiled = COMPILED.lock();
    if compiled.len() >= 1024 {
        compiled.retain(|_, weak| weak.strong_count() > 0);
    }
    compiled.insert(pattern.to_owned(), Arc::downgrade(&regex));
    Ok(regex)
}

/// Rewrites the RE2 dialect where the `regex` crate reads it differently.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
                Some('w') => out.push_str(if in_class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
                Some('s') => out.push_str(if in_class { r"\t\n\f\r " } else { r"[\t\n\f\r ]" }),
                Some('D') => out.push_str("[^0-9]"),
                Some('W') => out.push_str("[^0-9A-Za-z_]"),
                Some('S') => out.push_str(r"[^\t\n\f\r ]"),
                Some('b') if !in_class => out.push_str(r"(?-u:\b)"),
                Some('Q') => {
                    let rest: String = chars.by_ref().collect();
                    let (literal, after) = rest.split_once(r"\E").unwrap_or((&rest, ""));
                    out.push_str(&regex::escape(literal));
                    out.push_str(&translate(after));
                    return out;
                }
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                // A bracket that opens the class's content is a member.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str(r"\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // POSIX class: both dialects agree up to its closing bracket.
                out.push('[');
                for inner in chars.by_ref() {
                    out.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str(r"\["),
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(char);
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}

/// As [`compile`] for patterns computed by CEL; keeps a few hundred of them.
pub(super) fn cached(pattern: &str) -> Result<Arc<Regex>, String> {
    static KEPT: LazyLock<Mutex<HashMap<String, Arc<Regex>>>> = LazyLock::new(Mutex::default);
    if let Some(found) = KEPT.lock().get(pattern) {
        return Ok(Arc::clone(found));
    }
    let regex = compile(pattern)?;
    let mut kept = KEPT.lock();
    if kept.len() >= 256 {
        kept.clear();
    }
    kept.insert(pattern.to_owned(), Arc::clone(&regex));
    Ok(regex)
}
