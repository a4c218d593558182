//! Rules of named endpoints: a path that is allowed is one that every server reads as the rule does.
//!
//! Input: lines of text; the rule's path, its methods (a comma between), the method and the path that are asked.

use capwasm_runtime::fuzzing::{endpoint_allows, wildcard};
use capwasm_runtime::{NamedEndpoint, Rule};
use percent_encoding::percent_decode_str;
use regex::Regex;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines: Vec<&str> = text.split('\n').take(4).collect();
    let [pattern, methods, method, path] = lines[..] else { return };
    wildcards(pattern, path);
    prefix(method, path);
    let methods: Vec<String> = methods.split(',').filter(|method| !method.is_empty()).map(str::to_owned).collect();
    let rule = Rule { methods: methods.clone(), path: pattern.to_owned() };
    let endpoint = |allow| NamedEndpoint { allow, ..NamedEndpoint::unix("/x") };
    assert!(!endpoint_allows(&endpoint(Vec::new()), method, path), "no rule allows {method} {path:?}");
    let everything = methods.is_empty() && pattern == "/**";
    if everything || !endpoint_allows(&endpoint(vec![rule]), method, path) {
        return;
    }
    let what = format!("{method} {path:?} is allowed by {methods:?} {pattern:?}");
    assert!(methods.is_empty() || methods.iter().any(|allowed| allowed.eq_ignore_ascii_case(method)), "{what}");
    let rule = expression(pattern);
    for (how, read) in readings(path) {
        assert!(rule.is_match(&read), "{what}; a server that {how} reads {read:?}");
    }
}

/// Of an endpoint that is a part of a server everything may be asked, and nothing above it.
fn prefix(method: &str, path: &str) {
    if path.starts_with('/') && endpoint_allows(&NamedEndpoint::url("http://host/prefix"), method, path) {
        for (how, read) in readings(&format!("/prefix{path}")) {
            let below = read == "/prefix" || read.starts_with("/prefix/") || read.starts_with("/prefix\\");
            assert!(below, "{path:?} leaves /prefix; a server that {how} reads {read:?}");
        }
    }
}

/// What servers may take a path for.
fn readings(path: &str) -> Vec<(&'static str, String)> {
    let once = decoded(path);
    let twice = decoded(&once);
    let slashes = once.replace('\\', "/");
    let parameters =
        once.split('/').map(|part| part.split(';').next().unwrap_or_default()).collect::<Vec<_>>().join("/");
    let mut readings = vec![
        ("decodes", once.clone()),
        ("decodes twice", twice.clone()),
        ("takes backslashes for slashes", slashes.clone()),
        ("resolves dots after decoding", resolved(&once)),
        ("resolves dots after decoding twice", resolved(&twice)),
        ("resolves dots after backslashes", resolved(&slashes)),
    ];
    if parameters.contains("..") {
        readings.push(("drops parameters before it resolves dots", resolved(&parameters)));
    }
    readings
}

fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}

/// RFC 3986, 5.2.4, and several slashes are one.
fn resolved(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let last = path.rsplit('/').next().unwrap_or_default();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    let slash = if ["", ".", ".."].contains(&last) && !parts.is_empty() { "/" } else { "" };
    format!("/{}{slash}", parts.join("/"))
}

/// The rule as another engine reads it.
fn expression(pattern: &str) -> Regex {
    let mut text = String::from("(?s)^");
    let mut open = false;
    let mut parts = pattern.trim_start_matches('/').split('/').peekable();
    while let Some(part) = parts.next() {
        if part == "**" && parts.peek().is_none() {
            open = true;
            break;
        }
        text.push('/');
        text.push_str(&part.split('*').map(regex::escape).collect::<Vec<_>>().join("[^/]*"));
    }
    text.push_str(if open { "(?:/.*)?$" } else { "$" });
    Regex::new(&text).unwrap()
}

fn wildcards(pattern: &str, text: &str) {
    let expression = format!("(?s)^{}$", pattern.split('*').map(regex::escape).collect::<Vec<_>>().join(".*"));
    assert_eq!(wildcard(pattern, text), Regex::new(&expression).unwrap().is_match(text), "{pattern:?} on {text:?}");
}
