//! Rehearsal: a candidate component gets recorded calls of the serving one, without side effects. The report lists where
//! the candidate's requests and answers differ.
//!
//! ```no_run
//! # async fn example(candidate: &capwasm_runtime::Provider, recordings: &capwasm_providers::Recordings) {
//! use capwasm_providers::rehearse::{Paint, With, rehearse};
//!
//! let report = rehearse(candidate, &With::default(), recordings.recent("docker-infra").iter().map(AsRef::as_ref)).await;
//! if !report.is_empty() {
//!     print!("{}", report.people(Paint::Plain));
//! }
//! # }
//! ```

mod difference;
mod live;
mod ongoing;
mod report;
#[cfg(test)]
pub(crate) mod testing;
mod waiting;

use std::sync::Arc;

use capwasm_object::{json, meta};
use capwasm_runtime::record::{Recording, Rehearsal, Replay, Replayed};
use capwasm_runtime::{CallError, Capabilities, Grants, Provider};

pub use self::difference::{Change, Difference, differences};
pub use self::live::LiveReads;
pub(crate) use self::ongoing::{Ongoing, Subject, Told};
pub(crate) use self::report::object_name;
pub use self::report::{Paint, Rehearsed, Report, Verdict, describe};
pub(crate) use self::waiting::{ENOUGH, Judgement, Population, judge};

/// Settings of the candidate; absent ones are those of the recorded call.
#[derive(Clone, Default)]
pub struct With {
    /// Capabilities of the candidate.
    pub grants: Option<Arc<Grants>>,
    /// Configuration as JSON text.
    pub configuration: Option<String>,
    /// Answers reads that are not recorded; without it the call ends there.
    pub live: Option<LiveReads>,
}

/// Makes recorded calls with the candidate, one after another.
pub async fn rehearse(candidate: &Provider, with: &With, recorded: impl IntoIterator<Item = &Recording>) -> Report {
    let mut report = Report::new(candidate);
    for recording in recorded {
        let verdict = verdict(candidate, with, recording).await;
        let verdict = verdict.unwrap_or_else(|error| Verdict::Skipped { why: error.failure.to_string() });
        report.add(recording, verdict);
    }
    report
}

/// Rehearses one call. An error means that the call could not be made.
async fn verdict(candidate: &Provider, with: &With, recording: &Recording) -> Result<Verdict, CallError> {
    let object = recording.object();
    if let Some(why) = unfit(candidate, &object) {
        return Ok(Verdict::Skipped { why });
    }
    let live: Option<Capabilities> = with.live.as_ref().map(|live| live.of(&object));
    let rehearsal = Rehearsal { grants: with.grants.clone(), configuration: with.configuration.clone(), live };
    let replayed = candidate.replay(recording, &Replay::Rehearse(rehearsal)).await?;
    Ok(verdict_of(recording, &replayed))
}

/// Why the component cannot make a call for the recorded object.
fn unfit(candidate: &Provider, object: &serde_json::Value) -> Option<String> {
    let (kind, version) = (meta::kind(object), json::text(object, "/apiVersion").unwrap_or_default());
    let known = candidate.descriptor().kinds.iter().find(|known| known.kind == kind);
    let Some(known) = known else { return Some(format!("the component has no kind {kind}")) };
    let speaks = format!("{}/{}", known.group, known.version);
    (speaks != version).then(|| format!("the component speaks {speaks}; recorded is {version}"))
}

fn verdict_of(recording: &Recording, replayed: &Replayed) -> Verdict {
    let differences = replayed.ended.as_ref().map(|ended| differences(&recording.ended, ended)).unwrap_or_default();
    if let Some(divergence) = &replayed.divergence {
        let requests = difference::of_requests(divergence);
        return Verdict::Diverged { at: divergence.at, message: divergence.to_string(), requests, differences };
    }
    if differences.is_empty() { Verdict::Same } else { Verdict::Different { differences } }
}
