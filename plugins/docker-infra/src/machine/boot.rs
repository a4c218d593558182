//! Runs the next steps of the bootstrap in a running container.

use std::time::Duration;

use capwasm_api::time;
use capwasm_sdk::{Context, Problem, Refusal, object};
use serde_json::{Value, json};

use super::{BOOTSTRAP_SUCCEEDED, QUIET_SECONDS, Subject, UNDER_WAY, preload};
use crate::bootstrap::{LOGS, Next, Observed, Plan, STEPS, decide, last_lines};
use crate::engine::{Container, Engine, EngineError, end_of};
use crate::tar;

/// After this a step that seems to run is asked for at the engine as well.
const SUSPECT_SECONDS: u64 = 5;
/// Between two looks at a step: at first, and at most.
const SHORTEST_WAIT_MS: u64 = 30;
const LONGEST_WAIT_MS: u64 = 2_000;
/// Between two looks after the timeout.
const OVERDUE_WAIT: Duration = Duration::from_secs(30);

pub enum Progress {
    /// Something runs; a later pass goes on.
    Going,
    /// All steps succeeded, the last at that second if it is known.
    Done(Option<u64>),
}

/// One pass over one container.
struct Run<'a> {
    subject: &'a Subject<'a>,
    engine: &'a Engine<'a>,
    container: &'a Container,
    plan: &'a Plan,
    /// What the status says: nothing depends on it but how soon trouble is noticed.
    hint: Value,
    /// Seconds since 1970.
    now: u64,
}

/// Does what is next, and goes on for as long as steps end at once.
pub fn advance(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    engine: &Engine<'_>,
    container: &Container,
    plan: &Plan,
) -> Result<Progress, Problem> {
    let hint = subject.object.pointer("/status/bootstrap").cloned().unwrap_or_default();
    let run = Run { subject, engine, container, plan, hint, now: cx.host.now_ms() / 1_000 };
    run.remember_start(cx);
    let container_started = time::parse(&container.state.started_at);
    let mut observed = run.observe()?;
    let mut suspected = false;
    let mut started = None;
    loop {
        match decide(plan, &observed, container_started) {
            Next::Done(ended) => return Ok(Progress::Done(ended)),
            Next::Upload => {
                preload::upload(cx, subject, engine, container)?;
                engine.put_archive(&container.id, "/", plan.archive())?;
                observed.uploaded = true;
            }
            Next::AskBooted => {
                engine.exec_detached(&container.id, &plan.boot_script())?;
                run.overdue(cx, run.started(), "the node to come up")?;
                let since = run.started().or(container_started);
                return Ok(run.going(cx, since, "waiting for the node to come up"));
            }
            Next::Run(step) if started >= Some(step) || (started.is_none() && run.is_starting(&observed, step)?) => {
                // Started, but its shell has not come to the first line yet; or the engine shows less than it did a moment ago.
                cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(false), "NotSucceeded", UNDER_WAY);
                cx.out.wake_after(Duration::from_millis(SHORTEST_WAIT_MS));
                return Ok(Progress::Going);
            }
            Next::Changed => {
                let message = "the steps of the bootstrap data are no longer those that were begun; delete the Machine";
                return fail(cx, "BootstrapDataChanged", message.to_owned());
            }
            Next::Run(step) => {
                engine.exec_detached(&container.id, &plan.script(step))?;
                started = Some(step);
                observed = run.observe()?;
            }
            // Its exec is younger than what the engine told of the container.
            Next::Await(step, _) if started == Some(step) => return Ok(run.going(cx, Some(run.now), UNDER_WAY)),
            Next::Await(step, since) if !suspected && run.is_suspect(since) && run.has_ended()? => {
                // It may have ended between the two looks.
                suspected = true;
                observed = run.observe()?;
                if let Next::Await(again, _) = decide(plan, &observed, container_started)
                    && again == step
                {
                    return run.interrupted(cx, step);
                }
            }
            Next::Await(step, since) => {
                run.remember_exec(cx, since)?;
                run.overdue(cx, run.started().or(since), &plan.describe(step))?;
                return Ok(run.going(cx, since.or(run.started()), &plan.describe(step)));
            }
            Next::Interrupted(step) => return run.interrupted(cx, step),
            Next::Failed(step, code, log) => {
                let log = if log.is_empty() { run.whole_log(step)? } else { log };
                let message = format!("{} ended with code {code}; its last lines: {log}", plan.describe(step));
                return fail(cx, "BootstrapFailed", message);
            }
        }
    }
}

impl Run<'_> {
    fn observe(&self) -> Result<Observed, Problem> {
        let Some(archive) = self.engine.archive(&self.container.id, STEPS)? else { return Ok(Observed::new(None)) };
        let entries = tar::read(&archive).map_err(|source| self.not_an_archive(STEPS, source))?;
        Ok(Observed::new(Some(&entries)))
    }

    fn not_an_archive(&self, path: &str, source: std::io::Error) -> EngineError {
        EngineError::NotAnArchive { act: format!("read {path} of container {}", self.container.id), source }
    }

    /// The end of what a step printed, where the step could not say so itself.
    fn whole_log(&self, step: usize) -> Result<String, Problem> {
        let path = format!("{LOGS}/{step}");
        let archive = match self.engine.archive(&self.container.id, &path) {
            Err(EngineError::Unreachable { refused, .. }) if refused.refusal == Refusal::Limit => {
                return Ok(format!("too many to be read; they are in {path} of the container"));
            }
            other => other?,
        };
        let Some(archive) = archive else { return Ok(String::new()) };
        let entries = tar::read(&archive).map_err(|source| self.not_an_archive(&path, source))?;
        let content = entries.into_values().next().map(|entry| entry.content).unwrap_or_default();
        Ok(last_lines(&end_of(&content)))
    }

    /// Seconds since 1970, from the status; none when it does not say.
    fn started(&self) -> Option<u64> {
        time::parse(object::text(&self.hint, "/startedAt"))
    }

    fn is_suspect(&self, since: Option<u64>) -> bool {
        since.is_none_or(|since| self.now > since + SUSPECT_SECONDS)
    }

    fn hinted(&self) -> Option<&str> {
        self.hint.get("exec").and_then(Value::as_str).filter(|exec| !exec.is_empty())
    }

    /// Whether an exec runs; the engine forgets finished ones.
    fn runs(&self, exec: &str) -> Result<bool, EngineError> {
        Ok(self.engine.exec(exec)?.is_some_and(|exec| exec.running))
    }

    /// An exec that ran when the container was looked at.
    fn running_exec(&self) -> Result<Option<&str>, EngineError> {
        for exec in self.container.exec_ids.iter().flatten() {
            if self.runs(exec)? {
                return Ok(Some(exec));
            }
        }
        Ok(None)
    }

    /// Whether something runs that may be this step. It is believed for a while only, because it may be a person's shell as
    /// well; and a step that is started twice runs once.
    fn is_starting(&self, observed: &Observed, step: usize) -> Result<bool, EngineError> {
        let due = observed.ended(step).or(self.started());
        Ok(due.is_none_or(|due| self.now <= due.saturating_add(SUSPECT_SECONDS)) && self.executes()?)
    }

    fn executes(&self) -> Result<bool, EngineError> {
        Ok(self.running_exec()?.is_some())
    }

    /// Whether the process of the step that was started is no more. Where the engine knows no exec and none is remembered,
    /// nobody can tell.
    fn has_ended(&self) -> Result<bool, EngineError> {
        match self.hinted() {
            None if self.container.exec_ids.is_none() => Ok(false),
            Some(exec) if self.runs(exec)? => Ok(false),
            _ => Ok(!self.executes()?),
        }
    }

    fn remember_start(&self, cx: &mut Context<'_>) {
        if object::text(&self.hint, "/startedAt").is_empty() {
            cx.out.status(json!({"bootstrap": {"startedAt": time::format(self.now)}}));
        }
    }

    /// Keeps the exec of a step that lasts.
    fn remember_exec(&self, cx: &mut Context<'_>, since: Option<u64>) -> Result<(), EngineError> {
        if !self.is_quiet(since)
            && self.hinted().is_none()
            && let Some(exec) = self.running_exec()?
        {
            cx.out.status(json!({"bootstrap": {"exec": exec}}));
        }
        Ok(())
    }

    fn is_quiet(&self, since: Option<u64>) -> bool {
        since.is_some_and(|since| self.now < since + QUIET_SECONDS)
    }

    /// Looks again, sooner while a step is young. The engine tells whole seconds: half of one is the best guess.
    fn going(&self, cx: &mut Context<'_>, since: Option<u64>, what: &str) -> Progress {
        let shown = if self.is_quiet(since) { UNDER_WAY } else { what };
        cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(false), "NotSucceeded", shown);
        let age = since.map_or(LONGEST_WAIT_MS, |since| cx.host.now_ms().saturating_sub(since * 1_000 + 500));
        cx.out.wake_after(Duration::from_millis((age / 4).clamp(SHORTEST_WAIT_MS, LONGEST_WAIT_MS)));
        Progress::Going
    }

    /// A bootstrap that takes too long needs a person; it is still looked at, because it may yet succeed.
    fn overdue(&self, cx: &mut Context<'_>, started: Option<u64>, what: &str) -> Result<(), Problem> {
        let limit = self.subject.timeout;
        let Some(started) = started.filter(|started| self.now > started + limit) else { return Ok(()) };
        cx.out.wake_after(OVERDUE_WAIT);
        let began = time::format(started);
        let message = format!("the bootstrap began at {began} and waits for {what}, longer than {limit} s");
        fail(cx, "BootstrapTimedOut", message).map(|_| ())
    }

    fn interrupted(&self, cx: &mut Context<'_>, step: usize) -> Result<Progress, Problem> {
        // Should a step that was missed end after all, it counts.
        cx.out.wake_after(OVERDUE_WAIT);
        let step = self.plan.describe(step);
        fail(cx, "BootstrapInterrupted", format!("{step} was interrupted and cannot be repeated; delete the Machine"))
    }
}

fn fail(cx: &mut Context<'_>, reason: &str, message: String) -> Result<Progress, Problem> {
    cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(false), reason, message.clone());
    Err(Problem::terminal(reason, message))
}
