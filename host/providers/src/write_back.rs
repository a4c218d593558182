//! Makes a plan of a pass: typed answers become fields of the contract version in force, the outcome becomes status,
//! own paths, conditions, events and operations. Pure.

mod operations;

use capwasm_contract::{Answer, Fault, Outcome, Problem};
use capwasm_reconcile::{Event, Plan, Verdict};
use jiff::Timestamp;
use serde_json::Value;

use crate::belongings::{Belongings, Waiting};
use crate::draft::Draft;
use crate::own_paths::Dropped;
use crate::role::ServedKind;

/// The object to write to.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// Kind of the object.
    pub kind: &'a ServedKind,
    /// The object that the guest saw.
    pub object: &'a Value,
    /// Owner and Cluster; operations on the workload cluster go to this Cluster's.
    pub belongings: &'a Belongings,
    /// Transition time of changed conditions.
    pub now: Timestamp,
}

/// Result of a pass.
#[derive(Clone, Copy, Debug)]
pub enum Ending<'a> {
    /// A gate is closed: the object or its Cluster is paused.
    Paused,
    /// A gate is closed: something else has to happen first.
    Waiting(Waiting),
    /// The guest answered or reported a problem; its outcome counts in both cases.
    Replied(&'a Result<Answer, Problem>, &'a Outcome),
    /// The call trapped or passed a limit. Its outcome does not count.
    Failed {
        /// CamelCase reason of the condition.
        reason: &'a str,
        /// Message of the condition.
        message: &'a str,
    },
}

/// The writes that follow from the result of a pass.
pub fn plan(subject: &Subject<'_>, ending: Ending<'_>) -> Plan {
    let mut draft = Draft::new(subject.object, &subject.kind.layout, subject.now);
    match ending {
        Ending::Paused => {
            draft.condition("Paused", Some(true), "Paused", "", None);
            Plan { desired: Some(draft.finish()), verdict: Verdict::Waiting, ..Plan::default() }
        }
        Ending::Waiting(Waiting { reason, message }) => {
            let mut draft = draft.resumed();
            if !subject.kind.layout.is_provisioned(subject.object) {
                draft.summary(Some(false), reason, message, Some(Fault::Waiting));
            }
            Plan { verdict: Verdict::Waiting, ..written(subject, draft) }
        }
        Ending::Failed { reason, message } => {
            let mut draft = draft.resumed();
            draft.summary(None, reason, message, Some(Fault::Transient));
            Plan { desired: Some(draft.finish()), verdict: Verdict::retry(reason, message), ..Plan::default() }
        }
        Ending::Replied(answer, outcome) => replied(subject, draft.resumed(), answer, outcome),
    }
}

fn replied(subject: &Subject<'_>, mut draft: Draft<'_>, answer: &Result<Answer, Problem>, outcome: &Outcome) -> Plan {
    let Subject { kind, object, belongings, .. } = *subject;
    let mut events = collect(&mut draft, outcome);
    let namespace = capwasm_object::meta::namespace(object);
    let (mut operations, refused) =
        operations::operations(&outcome.operations, namespace, belongings.cluster_id.as_ref());
    events.extend(outcome.events.iter().map(|event| Event {
        warning: event.warning,
        reason: event.reason.clone(),
        message: event.message.clone(),
    }));
    let mut wake_after = outcome.wake_after;
    let mut release = Vec::new();
    let mut fallback = None;
    let mut verdict = Verdict::Done;
    match answer {
        Ok(Answer::Gone(gone)) => {
            draft.summary(Some(false), "Deleting", "", Some(Fault::Waiting));
            if *gone && refused.is_none() {
                release.clone_from(&kind.descriptor.finalizers);
            }
            verdict = if *gone { Verdict::Done } else { Verdict::Waiting };
        }
        // An answer counts once everything that it rests on is done: a Secret that could not be written must not be
        // announced, and what latches could never be taken back.
        Ok(answer) if refused.is_none() => {
            operations.extend(kind.rules.operation(object, belongings, answer));
            fallback = (!operations.is_empty()).then(|| draft.clone().finish());
            kind.rules.answer(&mut draft, belongings, answer);
        }
        Ok(_) => {}
        Err(problem) => {
            draft.summary(Some(false), &problem.reason, &problem.message, Some(problem.fault));
            verdict = unfinished(problem);
            if problem.fault == Fault::Waiting {
                // What nothing announces: the provider knows when it is worth a look.
                wake_after = wake_after.into_iter().chain(problem.retry_after).min();
            }
        }
    }
    if let Some((key, refused)) = refused {
        let message = format!("operation {key:?} is not granted: {}", refused.message);
        draft.summary(Some(false), &refused.reason, &message, Some(Fault::Invalid));
        verdict = Verdict::Failed { reason: refused.reason, message, retry_after: None, backoff: false };
    }
    let written = written(subject, draft);
    // Whoever asks to be called once it is written does not want it written later; with operations, these are waited for.
    let status_may_wait = written.status_may_wait && (!outcome.wake_when_applied || !operations.is_empty());
    let wake_when_applied = outcome.wake_when_applied;
    Plan { fallback, operations, release, events, status_may_wait, wake_after, wake_when_applied, verdict, ..written }
}

/// Writes the outcome. Returns events about fields that are not the guest's.
fn collect(draft: &mut Draft<'_>, outcome: &Outcome) -> Vec<Event> {
    for fields in &outcome.status {
        draft.merge_status(fields);
    }
    let mut dropped = Dropped::default();
    for fields in &outcome.own {
        draft.merge_own(fields, &mut dropped);
    }
    for condition in &outcome.conditions {
        draft.condition(&condition.name, condition.status, &condition.reason, &condition.message, None);
    }
    dropped.event().into_iter().collect()
}

/// A plan that writes a draft; its status may wait if it is informational.
fn written(subject: &Subject<'_>, draft: Draft<'_>) -> Plan {
    let desired = draft.finish();
    let status_may_wait =
        subject.kind.layout.is_informational(subject.object, &desired, &subject.kind.descriptor.may_wait);
    Plan { desired: Some(desired), status_may_wait, ..Plan::default() }
}

fn unfinished(problem: &Problem) -> Verdict {
    match problem.fault {
        Fault::Waiting => Verdict::Waiting,
        fault => Verdict::Failed {
            reason: problem.reason.clone(),
            message: problem.message.clone(),
            retry_after: problem.retry_after,
            backoff: fault == Fault::Transient,
        },
    }
}

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
