//! Ongoing rehearsal of a component that waits to serve: on each call of the serving one that ends, as far as time allows.
//!
//! ```text
//! call ends ─► recording ─► queue (bounded, the oldest go) ─► one call at a time, without effect, then rest ─► report
//!                                                                                                               │
//!                        the WasmProvider is woken when something follows from it, else at a moderate pace ◄────┘
//! ```

use std::sync::Arc;
use std::time::Instant;

use capwasm_contract::Failure;
use capwasm_reconcile::{Interests, Token};
use capwasm_runtime::Provider;
use capwasm_runtime::record::Recording;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use super::report::{Report, Verdict, object_name};
use super::waiting::{self, ENOUGH, Population, Standing};
use super::{With, verdict};
use crate::record::{Followed, Recordings, Rehearsed};
use crate::wasm_provider::history::Rehearsal;

/// Rest after a rehearsed call, as a multiple of its duration: at most a tenth of one processor is used.
const REST: u32 = 9;
/// Entries kept in the report; a status shows fewer.
const ENTRIES: usize = 32;

/// Candidate, and the component that it is compared with.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) candidate: Arc<Provider>,
    pub(crate) with: With,
    /// Digest of the component whose calls are rehearsed.
    pub(crate) serves: String,
    /// Differences that an earlier process found. They count as long as the candidate waits.
    pub(crate) before: Option<Rehearsal>,
    /// Woken when there is news.
    pub(crate) wakes: Token,
}

/// A rehearsal in the background, until dropped.
pub(crate) struct Ongoing {
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    told: Mutex<Told>,
    population: Mutex<Population>,
}

/// Published state of a rehearsal.
#[derive(Clone)]
pub(crate) struct Told {
    pub(crate) standing: Standing,
    pub(crate) rehearsal: Rehearsal,
    at: Instant,
}

impl Ongoing {
    /// Rehearses the recorded calls, then continues in the background.
    pub(crate) async fn start(subject: Subject, recordings: Recordings, interests: Arc<Interests>) -> Self {
        let (recent, followed) = recordings.follow(&subject.name);
        let mut work = Work::new(subject, recordings, interests);
        for recording in &recent {
            if work.call(recording).await {
                work.standing.recorded += 1;
            }
        }
        let shared = Arc::new(Shared { told: Mutex::new(work.news()), population: Mutex::new(Population::Many) });
        let task = tokio::spawn(work.go_on(followed, shared.clone())).abort_handle();
        Ongoing { shared, task }
    }

    /// The published state; `population` decides which news are urgent.
    pub(crate) fn told(&self, population: Population) -> Told {
        *self.shared.population.lock() = population;
        self.shared.told.lock().clone()
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Work {
    subject: Subject,
    recordings: Recordings,
    interests: Arc<Interests>,
    report: Report,
    standing: Standing,
}

impl Work {
    fn new(subject: Subject, recordings: Recordings, interests: Arc<Interests>) -> Self {
        let report = Report::new(&subject.candidate);
        let differing = subject.before.as_ref().map_or(0, |before| before.differences);
        Work { subject, recordings, interests, report, standing: Standing { differing, ..Standing::default() } }
    }

    /// Rehearses a call. Returns whether it counts.
    async fn call(&mut self, recording: &Recording) -> bool {
        let Subject { name, candidate, with, serves, .. } = &self.subject;
        // What another component did, one that was given up, say, is nothing to live up to.
        if recording.digest != *serves {
            return false;
        }
        let verdict = match verdict(candidate, with, recording).await {
            Ok(verdict) => verdict.shortened(),
            // The host's trouble, not the candidate's.
            Err(error) if matches!(error.failure, Failure::Busy { .. } | Failure::Panic { .. }) => {
                self.recordings.rehearsed(name, Rehearsed::Dropped, 1);
                return false;
            }
            Err(error) => Verdict::Skipped { why: error.failure.to_string() },
        };
        let same = verdict == Verdict::Same;
        self.recordings.rehearsed(name, if same { Rehearsed::Same } else { Rehearsed::Different }, 1);
        self.standing.differing += usize::from(!same);
        self.report.add(recording, verdict);
        self.report.keep(ENTRIES);
        true
    }

    async fn go_on(mut self, followed: Followed, shared: Arc<Shared>) {
        let mut rested = Instant::now();
        loop {
            let due = {
                let told = shared.told.lock();
                waiting::due(&told.standing, told.at, &self.standing, &shared.population.lock())
            };
            let next = async {
                tokio::time::sleep_until(rested.into()).await;
                followed.next().await
            };
            let recording = tokio::select! {
                biased;
                () = passed(due) => {
                    *shared.told.lock() = self.news();
                    self.interests.fire(&self.subject.wakes);
                    continue;
                }
                recording = next => recording,
            };
            let began = Instant::now();
            if self.call(&recording).await {
                self.standing.live += 1;
                if self.standing.objects.len() < ENOUGH {
                    self.standing.objects.insert(object_name(&recording.object()));
                }
            }
            rested = rest(began, Instant::now());
        }
    }

    fn news(&self) -> Told {
        let rehearsal = together(self.subject.before.as_ref(), Rehearsal::from(&self.report));
        Told { standing: self.standing.clone(), rehearsal, at: Instant::now() }
    }
}

/// End of the rest after a call.
fn rest(began: Instant, ended: Instant) -> Instant {
    ended + REST * ended.saturating_duration_since(began)
}

async fn passed(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// Adds the differences of an earlier process, and their summary as long as there are no new ones.
fn together(before: Option<&Rehearsal>, now: Rehearsal) -> Rehearsal {
    let Some(before) = before else { return now };
    Rehearsal {
        calls: before.calls + now.calls,
        differences: before.differences + now.differences,
        summary: if now.differences == 0 { before.summary.clone() } else { now.summary },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rehearsal_takes_a_tenth_of_the_time() {
        let began = Instant::now();
        let ended = began + Duration::from_secs(2);
        assert_eq!(rest(began, ended), began + Duration::from_secs(20));
        assert_eq!(rest(ended, began), began, "a clock that does not move costs nothing");
    }

    #[test]
    fn what_differed_before_a_start_of_the_host_still_does() {
        let seen = |calls, differences, summary: &str| Rehearsal { calls, differences, summary: summary.to_owned() };
        let before = seen(9, 2, "moved");
        assert_eq!(together(None, seen(1, 0, "same")), seen(1, 0, "same"));
        assert_eq!(together(Some(&before), seen(1, 0, "same")), seen(10, 2, "moved"));
        assert_eq!(together(Some(&before), seen(3, 1, "gone")), seen(12, 3, "gone"));
    }
}
