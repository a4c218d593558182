//! Runs the next step of the bootstrap in a running container.

use std::time::Duration;

use capwasm_sdk::{Context, Problem, object};
use serde_json::{Value, json};

use super::{BOOTSTRAP_SUCCEEDED, Subject};
use crate::bootstrap::{Next, Observed, Plan, STEPS, decide};
use crate::clock;
use crate::engine::{Container, Engine, EngineError};
use crate::tar;

/// How long a bootstrap may take when the object does not say.
const TIMEOUT_SECONDS: u64 = 300;
/// After this a step that seems to run is asked for at the engine as well.
const SUSPECT_SECONDS: u64 = 5;
/// Between two looks at a step: at first, and at most.
const SHORTEST_WAIT_MS: u64 = 30;
const LONGEST_WAIT_MS: u64 = 2_000;
/// Between two looks after the timeout.
const OVERDUE_WAIT: Duration = Duration::from_secs(30);

/// Does what is next. True when all is done.
pub fn advance(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    engine: &Engine<'_>,
    container: &Container,
    plan: &Plan,
) -> Result<bool, Problem> {
    let hint = subject.object.pointer("/status/bootstrap").cloned().unwrap_or_default();
    let container_started = clock::parse(&container.state.started_at);
    let mut observed = observe(engine, container)?;
    let mut next = decide(plan, &observed, container_started);
    if next == Next::Upload {
        engine.put_archive(&container.id, "/", plan.archive())?;
        observed.uploaded = true;
        next = decide(plan, &observed, container_started);
    }
    if let Next::Await(step, since) = next
        && is_suspect(cx, since)
        && has_ended(engine, container, &hint, step)?
    {
        // It may have ended between the two looks.
        observed = observe(engine, container)?;
        next = match decide(plan, &observed, container_started) {
            Next::Await(again, _) if again == step => Next::Interrupted(step),
            other => other,
        };
    }
    let now = cx.host.now_ms();
    let started = clock::parse(object::text(&hint, "/startedAt"));
    match next {
        Next::Done => Ok(true),
        // Uploaded above; that it is still wanted cannot be.
        Next::Upload => progress(cx, "the files are being written", Duration::from_millis(LONGEST_WAIT_MS)),
        Next::AskBooted => {
            engine.exec_detached(&container.id, &plan.boot_script())?;
            remember(cx, &hint, now, json!({}));
            overdue(cx, subject, started, now, "the node to come up")?;
            progress(cx, "waiting for the node to come up", wait(now, started.or(container_started)))
        }
        // Started, but its shell has not come to the first line yet.
        Next::Run(step) if hinted(&hint, step).map_or(Ok(false), |exec| runs(engine, exec))? => {
            progress(cx, &plan.describe(step), Duration::from_millis(SHORTEST_WAIT_MS))
        }
        Next::Run(step) => {
            let exec = engine.exec_detached(&container.id, &plan.script(step))?;
            remember(cx, &hint, now, json!({"step": step, "exec": exec}));
            progress(cx, &plan.describe(step), Duration::from_millis(SHORTEST_WAIT_MS))
        }
        Next::Await(step, since) => {
            remember(cx, &hint, now, json!({}));
            overdue(cx, subject, started.or(since), now, &plan.describe(step))?;
            progress(cx, &plan.describe(step), wait(now, since.or(started)))
        }
        Next::Interrupted(step) => {
            // Should a step that was missed end after all, it counts.
            cx.out.wake_after(OVERDUE_WAIT);
            let message = format!("{} was interrupted and cannot be repeated; delete the Machine", plan.describe(step));
            fail(cx, "BootstrapInterrupted", message)
        }
        Next::Failed(step, code, log) => {
            let message = format!("{} ended with code {code}; its last lines: {log}", plan.describe(step));
            fail(cx, "BootstrapFailed", message)
        }
    }
}

fn observe(engine: &Engine<'_>, container: &Container) -> Result<Observed, Problem> {
    let Some(archive) = engine.archive(&container.id, STEPS)? else {
        return Ok(Observed::new(None));
    };
    let unreadable = || EngineError::NotAnArchive { act: format!("read {STEPS} of container {}", container.id) };
    Ok(Observed::new(Some(&tar::read(&archive).ok_or_else(unreadable)?)))
}

fn is_suspect(cx: &Context<'_>, since: Option<u64>) -> bool {
    since.is_none_or(|since| cx.host.now_ms() / 1_000 > since + SUSPECT_SECONDS)
}

/// The exec that the hint names for a step.
fn hinted(hint: &Value, step: usize) -> Option<&str> {
    let is_it = hint.get("step").and_then(Value::as_u64) == u64::try_from(step).ok();
    hint.get("exec").and_then(Value::as_str).filter(|exec| is_it && !exec.is_empty())
}

/// Whether an exec runs; the engine forgets finished ones.
fn runs(engine: &Engine<'_>, exec: &str) -> Result<bool, EngineError> {
    Ok(engine.exec(exec)?.is_some_and(|exec| exec.running))
}

/// Whether the step's process is no more. The hint may name a second exec that found the step taken and went, so every
/// exec that the engine knows is asked for. Where it knows none and there is no hint, nobody can tell.
fn has_ended(engine: &Engine<'_>, container: &Container, hint: &Value, step: usize) -> Result<bool, EngineError> {
    let hinted = hinted(hint, step);
    if hinted.is_none() && container.exec_ids.is_none() {
        return Ok(false);
    }
    for exec in hinted.into_iter().chain(container.exec_ids.iter().flatten().map(String::as_str)) {
        if runs(engine, exec)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keeps hints in the status: nothing depends on them but how soon trouble is noticed.
fn remember(cx: &mut Context<'_>, hint: &Value, now: u64, mut fields: Value) {
    if object::text(hint, "/startedAt").is_empty() {
        object::merge(&mut fields, &json!({"startedAt": clock::format(now / 1_000)}));
    }
    if fields.as_object().is_some_and(|fields| !fields.is_empty()) {
        cx.out.status(json!({"bootstrap": fields}));
    }
}

/// Looks again sooner while a step is young. The engine tells whole seconds: half of one is the best guess.
fn wait(now: u64, since: Option<u64>) -> Duration {
    let age = since.map_or(LONGEST_WAIT_MS, |since| now.saturating_sub(since * 1_000 + 500));
    Duration::from_millis((age / 4).clamp(SHORTEST_WAIT_MS, LONGEST_WAIT_MS))
}

/// A bootstrap that takes too long needs a person; it is still looked at, because it may yet succeed.
fn overdue(
    cx: &mut Context<'_>,
    subject: &Subject<'_>,
    started: Option<u64>,
    now: u64,
    what: &str,
) -> Result<(), Problem> {
    let limit = clock::duration(&subject.spec.bootstrap_timeout).unwrap_or(TIMEOUT_SECONDS);
    let Some(started) = started.filter(|started| now / 1_000 > started + limit) else { return Ok(()) };
    cx.out.wake_after(OVERDUE_WAIT);
    let message =
        format!("the bootstrap began at {} and waits for {what}, longer than {limit} s", clock::format(started));
    fail(cx, "BootstrapTimedOut", message).map(|_| ())
}

fn progress(cx: &mut Context<'_>, message: &str, wait: Duration) -> Result<bool, Problem> {
    cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(false), "NotSucceeded", message);
    cx.out.wake_after(wait);
    Ok(false)
}

fn fail(cx: &mut Context<'_>, reason: &str, message: String) -> Result<bool, Problem> {
    cx.out.condition(BOOTSTRAP_SUCCEEDED, Some(false), reason, message.clone());
    Err(Problem::terminal(reason, message))
}
