//! Result of a rehearsal, as text and as JSON.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use capwasm_object::meta;
use capwasm_runtime::Provider;
use capwasm_runtime::record::Recording;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::{Change, Difference};

/// Result of a rehearsal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the provider.
    pub provider: String,
    /// Version of the candidate.
    pub version: String,
    /// Digest of the candidate.
    pub digest: String,
    /// Digests of the recorded components.
    pub recorded: Vec<String>,
    /// Number of rehearsed calls.
    pub total: usize,
    /// Number of calls with the same outcome.
    pub same: usize,
    /// The other calls; those of one object with the same differences are one entry.
    pub calls: Vec<Rehearsed>,
    /// Number of calls with differences that are not in `calls`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Calls for one object with the same verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rehearsed {
    /// `Kind namespace/name`.
    pub object: String,
    /// `interface.function`.
    pub function: String,
    /// Id of the last such call.
    pub call: String,
    /// Number of such calls.
    pub times: usize,
    /// Outcome of the rehearsal.
    pub verdict: Verdict,
}

/// Outcome of a rehearsed call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "verdict")]
pub enum Verdict {
    /// Same outcome as recorded.
    Same,
    /// It would write or answer something else.
    Different {
        /// Compared with the recording.
        differences: Vec<Difference>,
    },
    /// It made a request that is not the recorded one, so that no answer is known.
    Diverged {
        /// Number of the request, from 1.
        at: usize,
        /// The request, and the recorded one.
        message: String,
        /// How the request differs.
        requests: Vec<Difference>,
        /// Differences of the outcome, if the call ended nevertheless.
        differences: Vec<Difference>,
    },
    /// The call was not made.
    Skipped {
        /// Reason for a person.
        why: String,
    },
}

/// Style of text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// No colours.
    Plain,
    /// ANSI colours.
    Ansi,
}

/// Longest value in text output, in characters.
const VALUE: usize = 120;
/// Entries of a report at most.
const LISTED: usize = 1_000;

impl Report {
    pub(super) fn new(candidate: &Provider) -> Self {
        let descriptor = candidate.descriptor();
        Report {
            provider: descriptor.name.clone(),
            version: descriptor.version.clone(),
            digest: candidate.digest().to_owned(),
            recorded: Vec::new(),
            total: 0,
            same: 0,
            calls: Vec::new(),
            unlisted: 0,
        }
    }

    pub(super) fn add(&mut self, recording: &Recording, verdict: Verdict) {
        self.total += 1;
        if !self.recorded.contains(&recording.digest) {
            self.recorded.push(recording.digest.clone());
        }
        if verdict == Verdict::Same {
            self.same += 1;
            return;
        }
        let object = object_name(&recording.object());
        let (function, call) = (recording.function.name().to_owned(), recording.facts.id.clone());
        let full = self.calls.len() >= LISTED;
        let known = self
            .calls
            .iter_mut()
            .find(|known| known.object == object && known.function == function && known.verdict == verdict);
        match known {
            Some(known) => (known.times, known.call) = (known.times + 1, call),
            None if full => self.unlisted += 1,
            None => self.calls.push(Rehearsed { object, function, call, times: 1, verdict }),
        }
    }

    /// Keeps the first `entries` entries.
    pub(super) fn keep(&mut self, entries: usize) {
        let rest = self.calls.drain(entries.min(self.calls.len())..);
        self.unlisted += rest.map(|call| call.times).sum::<usize>();
    }

    /// Whether no call differs. Also true without any call: see [`Report::total`].
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Number of calls that differ or diverge.
    pub fn differing(&self) -> usize {
        let differs = |call: &&Rehearsed| !matches!(call.verdict, Verdict::Skipped { .. });
        self.unlisted + self.calls.iter().filter(differs).map(|call| call.times).sum::<usize>()
    }

    /// One line: `12 calls rehearsed: 10 the same, 1 different, 1 diverged`.
    pub fn summary(&self) -> String {
        let count = |of: fn(&Verdict) -> bool| -> usize {
            self.calls.iter().filter(|call| of(&call.verdict)).map(|call| call.times).sum()
        };
        let counts = [
            (count(|verdict| matches!(verdict, Verdict::Different { .. })), "different"),
            (count(|verdict| matches!(verdict, Verdict::Diverged { .. })), "diverged"),
            (count(|verdict| matches!(verdict, Verdict::Skipped { .. })), "skipped"),
            (self.unlisted, "more not the same, which are not listed"),
        ];
        let calls = if self.total == 1 { "call" } else { "calls" };
        let mut text = format!("{} {calls} rehearsed: {} the same", self.total, self.same);
        for (number, name) in counts.into_iter().filter(|(number, _)| *number > 0) {
            text += &format!(", {number} {name}");
        }
        text
    }

    /// The whole report as text, by object and operation.
    pub fn people(&self, paint: Paint) -> String {
        let short = |digest: &str| digest.get(..19).unwrap_or(digest).to_owned();
        let recorded: Vec<String> = self.recorded.iter().map(|digest| short(digest)).collect();
        let from = if recorded.is_empty() { "nothing recorded".to_owned() } else { recorded.join(", ") };
        let mut text =
            format!("{} {from} -> {} ({})\n{}\n", self.provider, short(&self.digest), self.version, self.summary());
        for call in &self.calls {
            let times = if call.times > 1 { format!(" ({} times)", call.times) } else { String::new() };
            let head = paint.bold(&call.object);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{head}  {}{times}  call {}", call.function, call.call);
            match &call.verdict {
                Verdict::Same => {}
                Verdict::Skipped { why } => {
                    let _ = writeln!(text, "  skipped: {why}");
                }
                Verdict::Different { differences } => text += &describe(differences, paint),
                Verdict::Diverged { message, requests, differences, .. } => {
                    let _ = writeln!(text, "  {}", paint.changed(&format!("diverged at {message}")));
                    text += &describe(requests, paint);
                    text += &describe(differences, paint);
                }
            }
        }
        text
    }
}

pub(crate) fn object_name(object: &Value) -> String {
    format!("{} {}/{}", meta::kind(object), meta::namespace(object), meta::name(object))
}

impl Verdict {
    /// Cuts long values and lists, since the provider decides how long they are.
    pub(super) fn shortened(mut self) -> Self {
        let lists: [Option<&mut Vec<Difference>>; 2] = match &mut self {
            Verdict::Same | Verdict::Skipped { .. } => [None, None],
            Verdict::Different { differences } => [Some(differences), None],
            Verdict::Diverged { requests, differences, .. } => [Some(requests), Some(differences)],
        };
        for list in lists.into_iter().flatten() {
            list.truncate(CHANGES);
            for difference in list {
                difference.changes.truncate(CHANGES);
                let changes = difference.changes.iter_mut();
                changes.flat_map(|change| [&mut change.before, &mut change.after]).flatten().for_each(shorten);
            }
        }
        self
    }
}

/// Differences kept per call, and changes of each.
const CHANGES: usize = 32;

fn shorten(value: &mut Value) {
    let text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(2 * VALUE) {
        *value = Value::String(format!("{}…", &text[..at]));
    }
}

/// Differences as text, each with its changes.
pub fn describe(differences: &[Difference], paint: Paint) -> String {
    let mut text = String::new();
    for Difference { subject, changes } in differences {
        match changes.as_slice() {
            [Change { path, before: None, after: Some(after) }] if path.is_empty() => {
                text += &paint.added(&format!("  + {subject}: {}\n", shown(after)));
            }
            [Change { path, before: Some(before), after: None }] if path.is_empty() => {
                text += &paint.removed(&format!("  - {subject}: {}\n", shown(before)));
            }
            changes => {
                text += &paint.changed(&format!("  ~ {subject}\n"));
                changes.iter().for_each(|change| describe_change(&mut text, change, paint));
            }
        }
    }
    text
}

fn describe_change(text: &mut String, Change { path, before, after }: &Change, paint: Paint) {
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    let line = match (before, after) {
        (Some(before), Some(after)) => {
            format!("{path}{} -> {}", paint.removed(&shown(before)), paint.added(&shown(after)))
        }
        (Some(before), None) => paint.removed(&format!("- {path}{}", shown(before))),
        (None, Some(after)) => paint.added(&format!("+ {path}{}", shown(after))),
        (None, None) => return,
    };
    let _ = writeln!(text, "      {line}");
}

/// A value in one line of bounded length. Control characters, which would drive the terminal, are escaped: DEL and C1
/// here, the others by JSON.
fn shown(value: &Value) -> String {
    let text: String = value.to_string().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match text.char_indices().nth(VALUE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

impl Paint {
    /// For standard output: colours on a terminal, unless `NO_COLOR` is set (no-color.org).
    pub fn of_stdout() -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
        if colours { Paint::Ansi } else { Paint::Plain }
    }

    fn wrap(self, code: &str, text: &str) -> String {
        match self {
            Paint::Plain => text.to_owned(),
            Paint::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn added(self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn removed(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn changed(self, text: &str) -> String {
        self.wrap("33", text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::super::testing::recording;
    use super::*;
    use serde_json::json;

    fn report() -> Report {
        let mut report = Report {
            provider: "p".into(),
            version: "2.0".into(),
            digest: "sha256:0123456789abcdef".into(),
            recorded: Vec::new(),
            total: 0,
            same: 0,
            calls: Vec::new(),
            unlisted: 0,
        };
        let change =
            |path: &str, before: Value, after: Option<Value>| Change { path: path.into(), before: Some(before), after };
        let different = Verdict::Different {
            differences: vec![
                Difference { subject: "status".into(), changes: vec![change("/a", json!(1), Some(json!("\u{9b}2J")))] },
                Difference {
                    subject: "operation x".into(),
                    changes: vec![change("", json!({"does": "create"}), None)],
                },
            ],
        };
        report.add(&recording("a"), Verdict::Same);
        report.add(&recording("b"), different.clone());
        report.add(&recording("c"), different);
        report.add(&recording("d"), Verdict::Skipped { why: "no".into() });
        report
    }

    #[test]
    fn people_read_each_difference_once() {
        assert_eq!(
            report().people(Paint::Plain),
            "p sha256:aa -> sha256:0123456789ab (2.0)\n\
             4 calls rehearsed: 1 the same, 2 different, 1 skipped\n\
             \nMachine ns/m  infrastructure-machine.provision (2 times)  call c\n\
             \x20 ~ status\n\
             \x20     /a: 1 -> \"\u{fffd}2J\"\n\
             \x20 - operation x: {\"does\":\"create\"}\n\
             \nMachine ns/m  infrastructure-machine.provision  call d\n\
             \x20 skipped: no\n"
        );
        assert!(report().people(Paint::Ansi).contains("\x1b[31m  - operation x"));
    }

    #[test]
    fn what_is_not_listed_is_counted_and_long_values_are_cut() {
        let mut report = report();
        report.keep(1);
        assert_eq!(
            report.summary(),
            "4 calls rehearsed: 1 the same, 2 different, 1 more not the same, which are not listed"
        );
        let long = Change { path: "/a".into(), before: Some(json!("x".repeat(9_000))), after: Some(json!(1)) };
        let differences = vec![Difference { subject: "status".into(), changes: vec![long; 99] }];
        let Verdict::Different { differences } = (Verdict::Different { differences }).shortened() else { panic!() };
        assert_eq!(differences[0].changes.len(), CHANGES);
        let Some(Value::String(before)) = &differences[0].changes[0].before else { panic!() };
        assert!(before.ends_with('…') && before.chars().count() == 2 * VALUE + 1, "{before}");
        assert_eq!(differences[0].changes[0].after, Some(json!(1)));
    }

    #[test]
    fn programs_read_the_same() {
        let report = report();
        assert_eq!((report.is_empty(), report.differing()), (false, 2));
        let again: Report = serde_json::from_value(json!(report)).unwrap();
        assert_eq!(again, report);
    }
}
