//! Recorded calls as native tests.
//!
//! A host with `--record DIR` writes each call of a provider into a file. [`crate::replay!`] makes it again with the
//! provider's own code, natively, with everything that it asks answered from the recording:
//!
//! ```no_run
//! # use capwasm_sdk::{Context, InfrastructureMachine, MachineAnswer, Problem};
//! # struct Boxes;
//! # impl InfrastructureMachine for Boxes {
//! #     fn provision(_: &mut Context<'_>, _: &serde_json::Value) -> Result<MachineAnswer, Problem> { Ok(MachineAnswer::default()) }
//! #     fn deprovision(_: &mut Context<'_>, _: &serde_json::Value) -> Result<bool, Problem> { Ok(true) }
//! # }
//! #[test]
//! fn a_box_without_a_lid_is_made() {
//!     capwasm_sdk::replay!(Boxes: infrastructure_machine, "tests/recordings/no-lid.json").no_longer_fails();
//! }
//! ```
//!
//! The recording may be a redacted one (`capwasm replay export --redact`), as long as the provider still finds its way
//! through it.

mod answer;
mod recorded;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::Duration;

use capwasm_contract::recording::{self, FORMAT, Header, RecordedCall};
use capwasm_contract::{Answer, Failure, Fault, Function, Outcome, Problem};
use serde_json::{Value, json};

use self::recorded::ReplayHost;
use crate::provider::Context;

pub use self::answer::{
    bootstrap, control_plane, controller, infrastructure_cluster, infrastructure_machine, infrastructure_machine_pool,
};

/// Makes a recorded call again, natively: `replay!(Type: interface, "file")`. The interface is the one of the recorded
/// function, as in [`crate::export_interfaces!`]; the file is found from the crate's own folder. See
/// [`test::replay`](crate::test::replay).
#[macro_export]
macro_rules! replay {
    ($provider:ty: $interface:ident, $file:expr) => {
        $crate::test::replay::run(
            ::std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join($file).as_path(),
            stringify!($interface),
            $crate::test::replay::$interface::<$provider>,
        )
    };
}

/// What a replayed call came to.
#[derive(Debug)]
#[must_use = "say what is expected: `no_longer_fails()` or `as_recorded()`"]
pub struct Replay {
    /// How the call ended this time.
    pub ended: Ended,
    /// What it collected; empty when it did not come to its end.
    pub outcome: Outcome,
    /// The recorded call, with its own end and outcome.
    pub recorded: RecordedCall,
}

/// How a replayed call ended.
#[derive(Debug)]
pub enum Ended {
    /// With the role's answer.
    Answered(Answer),
    /// With a problem, such as one that waits.
    Problem(Problem),
    /// The provider panicked, which traps in a component.
    Panicked(String),
    /// It asked for something that the recording does not answer.
    Asked {
        /// The request in one line: the contract's function, and what was asked of it.
        request: String,
        /// Whether everything that is recorded had been asked by then: it got past the recorded end.
        past_the_end: bool,
    },
}

/// Reads a recording, and parses its object.
fn read(file: &Path) -> Result<(RecordedCall, Value), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let none = |error: serde_json::Error| format!("this is no recording: {error}");
    let Header { format } = serde_json::from_str(&text).map_err(none)?;
    if format != FORMAT {
        return Err(format!("the recording has format {format}; this kit reads format {FORMAT}"));
    }
    let recorded: RecordedCall = serde_json::from_str(&text).map_err(none)?;
    let object = serde_json::from_str(&recorded.object).map_err(|error| format!("the object is not JSON: {error}"))?;
    Ok((recorded, object))
}

/// Makes the call of a recording; see [`crate::replay!`]. Panics when the file is no recording of this interface.
#[allow(clippy::panic, reason = "a test without its recording cannot go on, and this is what its output should say")]
pub fn run(
    file: &Path,
    interface: &str,
    function: impl FnOnce(Function, &mut Context<'_>, &Value) -> Result<Answer, Problem>,
) -> Replay {
    let (recorded, object) = read(file).unwrap_or_else(|problem| panic!("{}: {problem}", file.display()));
    let (role, _) = recorded.function.interface_and_function();
    assert_eq!(role.replace('-', "_"), interface, "{} is of another interface", file.display());
    let host = ReplayHost::new(&recorded);
    let collected = RefCell::new(Outcome::default());
    let call = catch_unwind(AssertUnwindSafe(|| {
        let mut cx = Context::new(&host);
        let result = function(recorded.function, &mut cx, &object);
        collected.replace(cx.out);
        result
    }));
    let outcome = collected.into_inner();
    let ended = match (host.asked(), call) {
        (Some((request, past_the_end)), _) => Ended::Asked { request, past_the_end },
        (None, Ok(Ok(answer))) => Ended::Answered(answer),
        (None, Ok(Err(problem))) => Ended::Problem(problem),
        (None, Err(panic)) => match panic.downcast::<String>() {
            Ok(text) => Ended::Panicked(*text),
            Err(panic) => match panic.downcast::<&str>() {
                Ok(text) => Ended::Panicked((*text).to_owned()),
                // No message of any provider.
                Err(panic) => resume_unwind(panic),
            },
        },
    };
    Replay { ended, outcome, recorded }
}

/// A duration in the contract's whole milliseconds.
fn whole(duration: Option<Duration>) -> Option<Duration> {
    duration.map(|duration| Duration::new(duration.as_secs(), duration.subsec_millis() * 1_000_000))
}

#[allow(clippy::panic, reason = "these are assertions")]
impl Replay {
    /// The call that failed when it was recorded gets to an answer now, or waits for somebody; or it gets past everything
    /// that is recorded. Panics, with what it came to, when it does not.
    pub fn no_longer_fails(self) -> Outcome {
        match &self.ended {
            Ended::Answered(_) | Ended::Asked { past_the_end: true, .. } => self.outcome,
            Ended::Problem(problem) if problem.fault == Fault::Waiting => self.outcome,
            ended => panic!("the call still fails: {ended:?}\nrecorded: {}", json!(self.recorded.ended)),
        }
    }

    /// The call comes to what is recorded: the same answer or problem, and the same outcome. Panics, with both, when it does
    /// not.
    pub fn as_recorded(self) -> Outcome {
        let answer = match (&self.ended, &self.recorded.ended) {
            (Ended::Answered(answer), _) => Ok(answer.clone()),
            (Ended::Problem(problem), _) => Err(Problem { retry_after: whole(problem.retry_after), ..problem.clone() }),
            (Ended::Panicked(_), recording::Ended::Failed(Failure::Trap { .. })) => return self.outcome,
            (ended, recorded) => panic!("the call came to no end: {ended:?}\nrecorded: {}", json!(recorded)),
        };
        let recording::Ended::Replied { answer: recorded, outcome } = &self.recorded.ended else {
            panic!("the call ended: {answer:?}\nrecorded: {}", json!(self.recorded.ended));
        };
        // As JSON: there the two can be read beside each other.
        assert_eq!(json!(answer), json!(recorded), "the answer (left) is not the recorded one (right)");
        let collected = Outcome { wake_after: whole(self.outcome.wake_after), ..self.outcome.clone() };
        assert_eq!(json!(collected), json!(outcome), "the outcome (left) is not the recorded one (right)");
        self.outcome
    }
}

#[cfg(test)]
mod tests;
