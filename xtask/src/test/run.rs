//! Running test binaries, most of them beside each other. What one prints is kept, and shown when it fails.

use super::binaries::Binary;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What became of one binary.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Package folder and target.
    pub name: String,
    /// The counts of libtest's last lines.
    pub counts: Counts,
    /// It ended without success.
    pub failed: bool,
    pub output: String,
    pub took: Duration,
}

/// What the `test result:` lines add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
}

/// What tells limits of CPU time from limits of wall time apart, which nobody can beside others.
const ALONE: [&str; 1] = ["hostile"];

/// Runs all of them: [`ALONE`] first, then `jobs` at a time, beginning with those that took longest in the run before. Prints a line
/// for each that ended.
pub fn all(
    binaries: Vec<Binary>,
    jobs: usize,
    environment: &[(&str, OsString)],
    filter: Option<&str>,
) -> Result<Vec<Outcome>> {
    let (alone, others) = binaries.into_iter().partition(|binary| ALONE.contains(&&*binary.name));
    let mut outcomes = beside_each_other(alone, 1, environment, filter)?;
    outcomes.extend(beside_each_other(others, jobs, environment, filter)?);
    Ok(outcomes)
}

fn beside_each_other(
    mut binaries: Vec<Binary>,
    jobs: usize,
    environment: &[(&str, OsString)],
    filter: Option<&str>,
) -> Result<Vec<Outcome>> {
    let times = times_file();
    let mut known = read_times(&std::fs::read_to_string(&times).unwrap_or_default());
    // What was never measured may be long.
    binaries.sort_by_key(|binary| known.get(&label(binary)).copied().unwrap_or(u64::MAX));
    let (queue, outcomes) = (Mutex::new(binaries), Mutex::new(Vec::new()));
    let next = || queue.lock().map_or(None, |mut queue| queue.pop());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(binary) = next() {
                    let mut command = Command::new(&binary.file);
                    command.current_dir(&binary.folder).args(filter);
                    command.envs(environment.iter().map(|(name, value)| (name, value)));
                    command.env("CARGO_MANIFEST_DIR", &binary.folder);
                    let outcome = one(&label(&binary), &mut command);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default().into_iter().collect::<Result<Vec<_>>>()?;
    if filter.is_none() {
        known.extend(outcomes.iter().map(|outcome| (outcome.name.clone(), outcome.took.as_millis() as u64)));
        let text: String = known.iter().map(|(name, time)| format!("{time} {name}\n")).collect();
        std::fs::write(&times, text).with_context(|| format!("unable to write {}", times.display()))?;
    }
    Ok(outcomes)
}

/// Runs one to its end, and prints a line, or all that it said when it failed.
pub fn one(name: &str, command: &mut Command) -> Result<Outcome> {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("unable to start {name}"))?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let outcome = Outcome {
        name: name.to_owned(),
        counts: Counts::of(&text),
        failed: !output.status.success(),
        output: text,
        took: started.elapsed(),
    };
    let Counts { passed, failed, .. } = outcome.counts;
    if outcome.failed {
        println!("FAILED {name}: {passed} passed, {failed} failed, {}, {}", output.status, clock(outcome.took));
        println!("{}", outcome.output);
    } else if passed > 0 {
        println!("ok     {name}: {passed} passed, {}", clock(outcome.took));
    }
    Ok(outcome)
}

/// `3.2 s`, or `2 min 5 s`.
pub fn clock(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}.{} s", time.subsec_millis() / 100),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

impl Counts {
    /// Of everything that a binary printed; doc tests print several lines.
    pub fn of(output: &str) -> Counts {
        let mut counts = Counts::default();
        for line in output.lines().filter_map(|line| line.strip_prefix("test result: ")) {
            for part in line.split(['.', ';']) {
                let mut words = part.split_whitespace();
                let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<usize>), words.next()) else {
                    continue;
                };
                match what {
                    "passed" => counts.passed += number,
                    "failed" => counts.failed += number,
                    "ignored" => counts.ignored += number,
                    _ => {}
                }
            }
        }
        counts
    }
}

fn label(binary: &Binary) -> String {
    let folder = binary.folder.strip_prefix(crate::build::root()).unwrap_or(&binary.folder);
    format!("{} {}", folder.display(), binary.name)
}

/// How long each binary took in the last run.
fn times_file() -> PathBuf {
    crate::build::target().join("test-times.txt")
}

/// Milliseconds by label.
fn read_times(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| line.split_once(' ').and_then(|(time, name)| Some((name.to_owned(), time.parse().ok()?)));
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{Counts, clock, read_times};
    use std::time::Duration;

    #[test]
    fn result_lines_are_added_up() {
        let output = "test some::name ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        assert_eq!(Counts::of(output), Counts { passed: 15, failed: 2, ignored: 1 });
    }

    #[test]
    fn times_are_read_as_they_are_written_and_told_for_people() {
        assert_eq!(read_times("12 host/core it\nnonsense\n")["host/core it"], 12);
        assert_eq!(clock(Duration::from_millis(3240)), "3.2 s");
        assert_eq!(clock(Duration::from_secs(125)), "2 min 5 s");
    }
}
