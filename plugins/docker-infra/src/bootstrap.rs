//! How bootstrap data is run in a container, one step after the other and each at most once, so that it can be
//! continued from any point by anybody who sees the container.
//!
//! One archive puts all files under `/capwasm/files` and, last, an empty `/capwasm/steps`: when that is there, all is.
//! (`/run` may be a tmpfs, which an archive cannot reach; so the first step copies the files to their places from inside.)
//! Each step is a shell script of its own, started detached. It first makes the directory `N.started`, which only one
//! can do, and at the end writes `N.exit`. What happened is read back from `/capwasm/steps`; what a step prints lies
//! elsewhere, in `/capwasm/log`, so that it may be of any length.

mod plan;

use std::collections::BTreeMap;

use crate::engine::end_of;
use crate::tar::{Entry, EntryKind};

pub use plan::{LOGS, Plan, STEPS, image_archive};

/// How many lines of a failed step's log are shown.
const LOG_LINES: usize = 10;
/// How many characters of these lines are shown.
const LOG_LETTERS: usize = 1_000;
/// How many characters of an exit code are read; a shell's has three.
const CODE_LETTERS: usize = 16;

/// One step that has been started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Seconds since 1970; none when the engine does not tell.
    pub at: Option<u64>,
    /// Exit code, once it ended.
    pub exit: Option<String>,
    /// When it ended: seconds since 1970; none until then, or when the engine does not tell.
    pub ended: Option<u64>,
    /// Last lines of its output, when it failed.
    pub log: String,
}

/// What is seen of the bootstrap in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The container has `/capwasm/steps`, which is uploaded last.
    pub uploaded: bool,
    /// The node is ready to run steps.
    pub booted: bool,
    /// How many steps the plan has that was begun, and its fingerprint; none where an earlier version began it.
    pub plan: Option<(usize, String)>,
    /// By number of the step.
    pub steps: BTreeMap<usize, Started>,
}

impl Observed {
    /// From the archive of `/capwasm/steps`; none when there is no such directory.
    pub fn new(entries: Option<&BTreeMap<String, Entry>>) -> Observed {
        let Some(entries) = entries else { return Observed::default() };
        let mut observed = Observed { uploaded: true, ..Observed::default() };
        for (path, entry) in entries {
            let name = path.rsplit('/').next().unwrap_or_default();
            match name.rsplit_once('.') {
                Some(("boot", "exit")) => observed.booted = true,
                Some((plan, "plan")) => {
                    observed.plan =
                        plan.split_once('-').and_then(|(steps, print)| Some((steps.parse().ok()?, print.to_owned())));
                }
                Some((number, "started")) if entry.kind == EntryKind::Directory => {
                    if let Ok(number) = number.parse() {
                        observed.steps.insert(number, started(entries, path, entry));
                    }
                }
                _ => {}
            }
        }
        observed
    }
}

impl Observed {
    /// When the last of so many steps ended.
    pub fn ended(&self, steps: usize) -> Option<u64> {
        steps.checked_sub(1).and_then(|last| self.steps.get(&last)?.ended)
    }
}

impl Started {
    fn is_done(&self) -> bool {
        self.exit.as_deref() == Some("0")
    }
}

fn started(entries: &BTreeMap<String, Entry>, path: &str, entry: &Entry) -> Started {
    let sibling = |ending: &str| entries.get(&format!("{}{ending}", path.trim_end_matches("started")));
    let text = |ending: &str| sibling(ending).map(|file| end_of(&file.content).trim().to_owned());
    Started {
        at: Some(entry.modified).filter(|seconds| *seconds > 0),
        // The shell creates the file before it writes to it.
        exit: text("exit").filter(|code| !code.is_empty()).map(|code| code.chars().take(CODE_LETTERS).collect()),
        ended: sibling("exit").map(|file| file.modified).filter(|seconds| *seconds > 0),
        log: text("log").map(|log| last_lines(&log)).unwrap_or_default(),
    }
}

/// The end of a log, short enough for a condition.
pub fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let shown = lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default().join("\n");
    let letters = shown.chars().count();
    shown.chars().skip(letters.saturating_sub(LOG_LETTERS)).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Upload,
    /// Ask whether the node is ready to run steps.
    AskBooted,
    Run(usize),
    /// A step runs, since that second if it is known.
    Await(usize, Option<u64>),
    /// A step was running when the container went down.
    Interrupted(usize),
    /// A step failed, with its exit code and the end of its log.
    Failed(usize, String, String),
    /// The steps that were begun are not those of the plan.
    Changed,
    /// Every step succeeded, the last at that second if it is known.
    Done(Option<u64>),
}

/// Decides from what is seen. `container_started` is in seconds since 1970.
pub fn decide(plan: &Plan, observed: &Observed, container_started: Option<u64>) -> Next {
    if !observed.uploaded {
        return Next::Upload;
    }
    if let Some((steps, print)) = &observed.plan
        && *print != plan.print()
    {
        let all = (0..*steps).all(|number| observed.steps.get(&number).is_some_and(Started::is_done));
        return if all { Next::Done(observed.ended(*steps)) } else { Next::Changed };
    }
    if plan.waits_for_boot() && !observed.booted {
        return Next::AskBooted;
    }
    for number in 0..plan.steps() {
        match observed.steps.get(&number) {
            None => return Next::Run(number),
            Some(Started { exit: Some(code), .. }) if code == "0" => {}
            Some(Started { exit: Some(code), log, .. }) => return Next::Failed(number, code.clone(), log.clone()),
            Some(Started { exit: None, at, .. }) => {
                let went_down = at.zip(container_started).is_some_and(|(step, container)| container > step);
                return if went_down { Next::Interrupted(number) } else { Next::Await(number, *at) };
            }
        }
    }
    Next::Done(observed.ended(plan.steps()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::cloud_config;
    use crate::tar;

    fn plan(privileged: bool) -> Plan {
        Plan::new(cloud_config::parse(b"runcmd: [a, b]\n", "m").unwrap(), privileged, 0)
    }

    fn step(at: Option<u64>, exit: Option<&str>) -> Started {
        Started { at, exit: exit.map(str::to_owned), ended: Some(20), log: "log".to_owned() }
    }

    #[test]
    fn the_next_act_follows_from_what_is_seen_in_the_container() {
        let seen = |booted, steps: &[(usize, Started)]| Observed {
            uploaded: true,
            booted,
            steps: steps.iter().cloned().collect(),
            ..Observed::default()
        };
        let ok = || step(Some(10), Some("0"));
        let table = [
            ("nothing there", false, Observed::default(), Next::Upload),
            ("files there", false, seen(false, &[]), Next::Run(0)),
            ("files there, real node", true, seen(false, &[]), Next::AskBooted),
            ("real node has booted", true, seen(true, &[]), Next::Run(0)),
            ("first step runs", false, seen(false, &[(0, step(Some(10), None))]), Next::Await(0, Some(10))),
            ("engine tells no time", false, seen(false, &[(0, step(None, None))]), Next::Await(0, None)),
            ("container restarted since", false, seen(false, &[(0, step(Some(4), None))]), Next::Interrupted(0)),
            ("first step done", false, seen(false, &[(0, ok())]), Next::Run(1)),
            (
                "second step failed",
                false,
                seen(false, &[(0, ok()), (1, step(Some(10), Some("7")))]),
                Next::Failed(1, "7".to_owned(), "log".to_owned()),
            ),
            (
                "last step runs",
                false,
                seen(false, &[(0, ok()), (1, ok()), (2, ok()), (3, step(Some(10), None))]),
                Next::Await(3, Some(10)),
            ),
            ("all done", false, seen(false, &[(0, ok()), (1, ok()), (2, ok()), (3, ok())]), Next::Done(Some(20))),
        ];
        for (what, privileged, observed, expected) in table {
            assert_eq!(decide(&plan(privileged), &observed, Some(5)), expected, "{what}");
        }
    }

    #[test]
    fn steps_of_another_plan_are_never_mixed_with_those_that_were_begun() {
        let other = Plan::new(cloud_config::parse(b"runcmd: [new, a, b]\n", "m").unwrap(), false, 0);
        let begun = |done: usize| Observed {
            uploaded: true,
            plan: Some((plan(false).steps(), plan(false).print())),
            steps: (0..done).map(|number| (number, step(Some(10), Some("0")))).collect(),
            ..Observed::default()
        };
        assert_eq!(decide(&plan(false), &begun(2), None), Next::Run(2));
        assert_eq!(decide(&other, &begun(2), None), Next::Changed);
        assert_eq!(decide(&other, &begun(4), None), Next::Done(Some(20)), "they have all been run");
        let archive = plan(false).archive().finish().unwrap();
        let staged: BTreeMap<String, Entry> = tar::read(&archive)
            .unwrap()
            .into_iter()
            .filter_map(|(path, entry)| Some((path.strip_prefix("capwasm/")?.to_owned(), entry)))
            .filter(|(path, _)| path.starts_with("steps"))
            .collect();
        assert_eq!(Observed::new(Some(&staged)), begun(0));
    }

    #[test]
    fn markers_are_read_from_the_engines_archive() {
        let mut writer = tar::Writer::default();
        let root = tar::Attributes::root(0o755);
        writer.directory("steps", root);
        writer.directory("steps/0.started", root);
        writer.file("steps/0.log", root, b"fine\n");
        writer.file("steps/0.exit", root, b"0\n");
        writer.directory("steps/11.started", root);
        writer.file("steps/11.exit", root, b"");
        writer.file("steps/boot.exit", root, b"0\n");
        writer.file("steps/x.started", root, b"");
        let observed = Observed::new(tar::read(&writer.finish().unwrap()).ok().as_ref());
        assert!(observed.uploaded && observed.booted);
        assert_eq!(
            observed.steps[&0],
            Started { exit: Some("0".to_owned()), log: "fine".to_owned(), ..Started::default() }
        );
        assert_eq!(observed.steps[&11].exit, None, "an empty exit file is one that is being written");
        assert_eq!(observed.steps.len(), 2);
        assert_eq!(Observed::new(None), Observed::default());
    }

    #[test]
    fn only_the_end_of_a_long_log_is_shown() {
        let log: String = (0..100).map(|n| format!("line {n}\n")).collect();
        assert!(last_lines(&log).starts_with("line 90\n"));
        assert_eq!(last_lines(&"x".repeat(5_000)).len(), LOG_LETTERS);
    }
}
