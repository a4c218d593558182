//! What a server's state in Nova means for its object.

use std::time::Duration;

use capwasm_sdk::Problem;

use crate::compute::Server;

/// The condition's reason where it holds.
pub const READY: &str = "Ready";
/// The condition's reasons where it does not.
pub const NOT_READY: &str = "InstanceNotReady";
pub const STATE_ERROR: &str = "InstanceStateError";
pub const DELETED: &str = "InstanceDeleted";
pub const NOT_FOUND: &str = "InstanceNotFound";
pub const CREATE_FAILED: &str = "InstanceCreateFailed";
pub const DELETE_FAILED: &str = "InstanceDeleteFailed";
pub const PORT_CREATE_FAILED: &str = "PortCreateFailed";
pub const OPENSTACK_ERROR: &str = "OpenStackError";
pub const DEPENDENCY_FAILED: &str = "DependencyFailed";
/// The server went without our doing.
pub const UNEXPECTEDLY_DELETED: &str = "The server was unexpectedly deleted";

/// Between two looks at a server in a state that somebody else ends.
const OTHERS_TURN: Duration = Duration::from_secs(60);

/// What is told of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Of the condition InstanceReady.
    pub status: Option<bool>,
    pub reason: &'static str,
    pub message: String,
    /// When to look again, if nothing wakes the object.
    pub wake: Option<Duration>,
    pub end: Result<(), Problem>,
}

/// `was_active`: it ran once, so that what is wrong may pass. `age`: seconds since it was asked for.
pub fn tell(server: &Server, was_active: bool, age: u64) -> Told {
    match server.status.as_str() {
        "ACTIVE" => Told { status: Some(true), reason: READY, message: String::new(), wake: None, end: Ok(()) },
        "ERROR" => {
            let fault = server.fault.as_ref().map(|fault| fault.message.as_str()).filter(|text| !text.is_empty());
            let message = match fault {
                Some(fault) => format!("Instance is in ERROR state: {fault}"),
                None => "Instance is in ERROR state".to_owned(),
            };
            // It may come back: somebody resets or rebuilds it.
            let problem = if was_active { Problem::invalid } else { Problem::terminal };
            let end = Err(problem(STATE_ERROR, message.clone()));
            Told { status: Some(false), reason: STATE_ERROR, message, wake: Some(OTHERS_TURN), end }
        }
        "DELETED" | "SOFT_DELETED" => gone(DELETED, "Instance has been deleted"),
        "" | "BUILD" => {
            let message = "Instance is building".to_owned();
            let end = Err(Problem::waiting(NOT_READY, message.clone()));
            Told { status: Some(false), reason: NOT_READY, message, wake: Some(patience(age)), end }
        }
        state => {
            let message = format!("Instance state is not handled: {state}");
            let end = Err(Problem::waiting(NOT_READY, message.clone()));
            Told { status: None, reason: NOT_READY, message, wake: Some(OTHERS_TURN), end }
        }
    }
}

/// The server is not there any more. It is never made again: whoever wants another one makes another machine.
pub fn vanished() -> Told {
    gone(NOT_FOUND, UNEXPECTEDLY_DELETED)
}

fn gone(reason: &'static str, message: &str) -> Told {
    let end = Err(Problem::terminal(reason, message));
    Told { status: Some(false), reason, message: message.to_owned(), wake: None, end }
}

/// How long to wait for something that takes a while, given how long it has taken: most servers are built or gone in seconds,
/// and the others should not be asked for all the time.
pub fn patience(age: u64) -> Duration {
    Duration::from_secs(match age {
        0..10 => 1,
        10..60 => 4,
        _ => 10,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::compute::ServerFault;
    use capwasm_sdk::Fault;

    #[test]
    fn each_state_has_its_condition_its_end_and_its_patience() {
        type Row = (&'static str, bool, Option<bool>, &'static str, Option<u64>, Option<Fault>);
        let table: [Row; 10] = [
            ("ACTIVE", false, Some(true), READY, None, None),
            ("ACTIVE", true, Some(true), READY, None, None),
            ("BUILD", false, Some(false), NOT_READY, Some(1), Some(Fault::Waiting)),
            ("", false, Some(false), NOT_READY, Some(1), Some(Fault::Waiting)),
            ("ERROR", false, Some(false), STATE_ERROR, Some(60), Some(Fault::Terminal)),
            ("ERROR", true, Some(false), STATE_ERROR, Some(60), Some(Fault::Invalid)),
            ("SHUTOFF", true, None, NOT_READY, Some(60), Some(Fault::Waiting)),
            ("MIGRATING", true, None, NOT_READY, Some(60), Some(Fault::Waiting)),
            ("DELETED", true, Some(false), DELETED, None, Some(Fault::Terminal)),
            ("SOFT_DELETED", true, Some(false), DELETED, None, Some(Fault::Terminal)),
        ];
        for (state, was_active, status, reason, wake, fault) in table {
            let server = Server { status: state.to_owned(), ..Server::default() };
            let told = tell(&server, was_active, 3);
            assert_eq!((told.status, told.reason), (status, reason), "{state}");
            assert_eq!(told.wake.map(|wake| wake.as_secs()), wake, "{state}");
            assert_eq!(told.end.err().map(|problem| problem.fault), fault, "{state}");
        }
    }

    #[test]
    fn novas_own_words_are_told() {
        let fault = Some(ServerFault { message: "No valid host was found.".to_owned() });
        let server = Server { status: "ERROR".to_owned(), fault, ..Server::default() };
        assert!(tell(&server, false, 0).message.ends_with("No valid host was found."));
    }

    #[test]
    fn patience_grows() {
        let table = [(0, 1), (9, 1), (10, 4), (59, 4), (60, 10), (100_000, 10)];
        for (age, expected) in table {
            assert_eq!(patience(age).as_secs(), expected, "{age}");
        }
    }
}
