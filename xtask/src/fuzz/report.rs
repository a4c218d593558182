//! What a run of the fuzzer reached, target by target.

use std::path::PathBuf;

use serde_json::{Value, json};

/// One line of libFuzzer's that says how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Inputs that were tried.
    pub executions: u64,
    /// Edges of the code that were taken.
    pub edges: u64,
    /// Edges with how often they were taken, and comparisons.
    pub features: u64,
    /// Inputs that are kept because each reaches something that no other does.
    pub corpus: u64,
}

impl Progress {
    /// Reads `#524288 pulse  cov: 10 ft: 11 corp: 3/4b lim: 4096 exec/s: 262144 rss: 300Mb`; `None` for any other line.
    pub fn parse(line: &str) -> Option<Progress> {
        let mut words = line.split_whitespace();
        let executions = words.next()?.strip_prefix('#')?.parse().ok()?;
        let words: Vec<&str> = words.collect();
        let after = |label: &str| {
            let place = words.iter().position(|word| *word == label)?;
            words.get(place + 1)?.split('/').next()?.parse().ok()
        };
        Some(Progress {
            executions,
            edges: after("cov:")?,
            features: after("ft:")?,
            corpus: after("corp:").unwrap_or(0),
        })
    }
}

/// One target after its time.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    pub target: String,
    /// Time that it was given, in seconds.
    pub seconds: u64,
    /// With the inputs that were there.
    pub begin: Progress,
    pub end: Progress,
    /// Inputs that break a rule.
    pub found: Vec<PathBuf>,
}

impl Reached {
    /// Takes note of a line of libFuzzer's; `false` when it is for a person.
    pub fn note(&mut self, line: &str) -> bool {
        let Some(progress) = Progress::parse(line) else {
            // Its own figures, and the dictionary that it recommends in the end.
            let known = ["INFO:", "WARNING: Failed to find function", "Done ", "\tNEW_FUNC", "#", "\""];
            return line.is_empty() || known.iter().any(|mark| line.starts_with(mark));
        };
        if line.contains("INITED") {
            self.begin = progress;
        }
        self.end = progress;
        true
    }

    /// As one entry of the report in JSON.
    pub fn json(&self) -> Value {
        let progress = |at: Progress| json!({"edges": at.edges, "features": at.features, "corpus": at.corpus});
        json!({"target": self.target, "seconds": self.seconds, "executions": self.end.executions,
            "begin": progress(self.begin), "end": progress(self.end), "found": self.found})
    }
}

/// A table for people.
pub fn table(rows: &[Reached]) -> String {
    let head = ["TARGET", "SECONDS", "EXECUTIONS", "EDGES", "FEATURES", "CORPUS", "FOUND"].map(str::to_owned);
    let grown = |begin: u64, end: u64| if begin == end { end.to_string() } else { format!("{begin} -> {end}") };
    let lines = rows.iter().map(|row| {
        [
            row.target.clone(),
            row.seconds.to_string(),
            row.end.executions.to_string(),
            grown(row.begin.edges, row.end.edges),
            grown(row.begin.features, row.end.features),
            grown(row.begin.corpus, row.end.corpus),
            row.found.len().to_string(),
        ]
    });
    let lines: Vec<[String; 7]> = std::iter::once(head).chain(lines).collect();
    let widths: [usize; 7] =
        std::array::from_fn(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or_default());
    let padded = |line: &[String; 7]| {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(padded).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn progress_is_read_from_libfuzzers_own_lines() {
        let of = |executions, edges, features, corpus| Some(Progress { executions, edges, features, corpus });
        for (line, expected) in [
            ("#13\tINITED cov: 1024 ft: 2048 corp: 12/3Kb exec/s: 0 rss: 80Mb", of(13, 1024, 2048, 12)),
            ("#65536\tpulse  cov: 5 ft: 6 corp: 3/4b lim: 4096 exec/s: 9 rss: 30Mb", of(65_536, 5, 6, 3)),
            ("#2\tDONE   cov: 5 ft: 6 exec/s: 9 rss: 30Mb", of(2, 5, 6, 0)),
            ("#0\tREAD units: 12", None),
            ("INFO: Seed: 1", None),
            ("thread '<unnamed>' panicked at src/x.rs:1:1:", None),
            ("", None),
        ] {
            assert_eq!(Progress::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn a_report_tells_what_was_reached_and_leaves_messages_to_people() {
        let mut reached = Reached { target: "etcd".into(), seconds: 60, ..Reached::default() };
        let lines = [
            ("INFO: Running with entropic power schedule", true),
            ("#3\tINITED cov: 10 ft: 20 corp: 3/1Kb exec/s: 0 rss: 80Mb", true),
            ("#9\tNEW    cov: 12 ft: 25 corp: 4/1Kb lim: 4 exec/s: 0 rss: 80Mb L: 1/2 MS: 1 CopyPart-", true),
            ("thread 'main' panicked at fuzz/src/etcd.rs:1:1:", false),
        ];
        for (line, taken) in lines {
            assert_eq!(reached.note(line), taken, "{line}");
        }
        reached.found.push("fuzz/corpus/etcd/crash-1".into());
        let table = table(&[reached.clone()]);
        assert_eq!(
            table,
            "TARGET  SECONDS  EXECUTIONS  EDGES     FEATURES  CORPUS  FOUND\n\
             etcd    60       9           10 -> 12  20 -> 25  3 -> 4  1\n"
        );
        let expected = json!({"target": "etcd", "seconds": 60, "executions": 9,
            "begin": {"edges": 10, "features": 20, "corpus": 3}, "end": {"edges": 12, "features": 25, "corpus": 4},
            "found": ["fuzz/corpus/etcd/crash-1"]});
        assert_eq!(reached.json(), expected);
    }
}
