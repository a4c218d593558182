//! The end of a run: what failed, what did not run and why, and the counts.

use super::part::Part;
use super::run::{Outcome, clock};
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What tests said of themselves, a line each, its fields separated by tabs: `skip`, test, reason; or `part` or
/// `sample`, name of the part, test, binary.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Tests that lack something here, with the reason.
    skipped: BTreeSet<(String, String)>,
    /// Tests of parts that are left out.
    elsewhere: Parts,
    /// Tests that took a sample of what a part has whole.
    sampled: Parts,
}

/// By part: test and binary.
type Parts = BTreeMap<String, BTreeSet<(String, String)>>;

impl Told {
    /// Reads the file that tests append to.
    pub fn read(text: &str) -> Told {
        let mut told = Told::default();
        for line in text.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["skip", test, reason] => {
                    told.skipped.insert((test.to_owned(), reason.to_owned()));
                }
                [kind @ ("part" | "sample"), part, test, binary] => {
                    let parts = if kind == "part" { &mut told.elsewhere } else { &mut told.sampled };
                    parts.entry(part.to_owned()).or_default().insert((test.to_owned(), binary.to_owned()));
                }
                _ => {
                    told.skipped.insert((line.to_owned(), String::new()));
                }
            }
        }
        told
    }

    /// A test of a part whose binary [`Part::binaries`] does not know: `--only` would never run it.
    pub fn not_in_the_tables(&self) -> Option<String> {
        self.elsewhere.iter().chain(&self.sampled).find_map(|(name, tests)| {
            let known = Part::named(name).map_or(&[][..], Part::binaries);
            let (test, binary) = tests.iter().find(|(_, binary)| !known.contains(&&**binary))?;
            Some(format!(
                "{test} belongs to the part {name}, whose table in xtask/src/test/part.rs does not name {binary}"
            ))
        })
    }

    fn tests_elsewhere(&self) -> usize {
        self.elsewhere.values().map(BTreeSet::len).sum()
    }
}

/// Prints what did not run, the longest binaries, what failed, and the counts in the last line.
pub fn print(outcomes: &[Outcome], told: &Told, took: Duration) {
    let mut longest: Vec<&Outcome> = outcomes.iter().collect();
    longest.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    let longest: Vec<String> =
        longest.iter().take(5).map(|outcome| format!("{} {}", outcome.name, clock(outcome.took))).collect();
    println!("longest: {}", longest.join("; "));
    for (part, tests) in &told.elsewhere {
        println!("SECOND TIER: {} tests of the part {part} did not run: cargo xtask test --only {part}", tests.len());
    }
    for (part, tests) in &told.sampled {
        println!("SAMPLED: {} tests took a sample of what the part {part} has whole", tests.len());
    }
    for (test, reason) in &told.skipped {
        println!("SKIPPED: {test}: {reason}");
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.failed) {
        println!("FAILED: {}: {}", outcome.name, failed(&outcome.output).join(", "));
    }
    let sum = |count: fn(&Outcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    let not_run = told.skipped.len() + told.tests_elsewhere();
    println!("all in {}", clock(took));
    println!(
        "{} passed, {} failed, {} skipped",
        sum(|outcome| outcome.counts.passed).saturating_sub(not_run),
        sum(|outcome| outcome.counts.failed),
        sum(|outcome| outcome.counts.ignored) + not_run
    );
}

/// An error when something failed, or nothing ran.
pub fn verdict(outcomes: &[Outcome]) -> Result<()> {
    if outcomes.iter().any(|outcome| outcome.failed || outcome.counts.failed > 0) {
        bail!("tests failed");
    }
    if outcomes.iter().all(|outcome| outcome.counts.passed == 0) {
        bail!("no test ran");
    }
    Ok(())
}

/// The names of failed tests in libtest's output.
fn failed(output: &str) -> Vec<&str> {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(|name| name.split(" - ").next().unwrap_or(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Told, failed};

    #[test]
    fn tests_of_parts_and_skipped_ones_are_told_apart() {
        let told = Told::read("skip\ta_test\tno kubectl\npart\tdocker\tb_test\tdocker\npart\tdocker\tb_test\tdocker\n");
        assert_eq!((told.skipped.len(), told.tests_elsewhere()), (1, 1));
        assert_eq!(told.not_in_the_tables(), None);
    }

    #[test]
    fn a_binary_that_the_tables_lack_is_a_problem() {
        let told = Told::read("part\tdocker\tb_test\tcrds\n");
        assert!(told.not_in_the_tables().is_some_and(|problem| problem.contains("crds") && problem.contains("b_test")));
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(failed("test a::b ... ok\ntest c ... FAILED\nfailures:\n    c\n"), ["c"]);
    }
}
