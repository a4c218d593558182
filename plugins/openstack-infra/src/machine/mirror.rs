//! What a machine says of its OpenStackServer.

use capwasm_sdk::{Problem, object};
use serde_json::{Value, json};

use crate::kinds::INSTANCE_READY;
use crate::server::state;

/// What is told while Nova has not been asked for a server.
const NOT_CREATED: &str = "Waiting for instance to be created";

/// What is told of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// Of the condition InstanceReady.
    pub status: Option<bool>,
    pub reason: String,
    pub message: String,
    /// Merged into the machine's status.
    pub fields: Value,
    /// How the call ends: only a server that runs is an answer.
    pub end: Result<(), Problem>,
}

/// `is_node`: a Node has been seen, so that what is wrong may pass.
pub fn of(server: &Value, is_node: bool) -> Mirror {
    let id = object::text(server, "/status/instanceID");
    let state_now = object::text(server, "/status/instanceState");
    let mut fields = json!({});
    if !id.is_empty() {
        fields["instanceID"] = id.into();
    }
    if !state_now.is_empty() {
        fields["instanceState"] = state_now.into();
    }
    match state_now {
        "ACTIVE" if !id.is_empty() => {
            // Nothing that failed before counts any more.
            fields["failureReason"] = Value::Null;
            fields["failureMessage"] = Value::Null;
            Mirror { status: Some(true), reason: state::READY.to_owned(), message: String::new(), fields, end: Ok(()) }
        }
        "ERROR" => {
            let message = told(server).map_or("Instance is in ERROR state".to_owned(), |(_, message)| message);
            let problem = if is_node { Problem::invalid } else { Problem::terminal };
            let end = Err(problem(state::STATE_ERROR, message.clone()));
            if !is_node {
                fields["failureReason"] = "UpdateError".into();
                fields["failureMessage"] = "instance state \"ERROR\" is unexpected".into();
            }
            Mirror { status: Some(false), reason: state::STATE_ERROR.to_owned(), message, fields, end }
        }
        "DELETED" | "SOFT_DELETED" => {
            let message = told(server).map_or(state::UNEXPECTEDLY_DELETED.to_owned(), |(_, message)| message);
            let end = Err(Problem::terminal(state::DELETED, message.clone()));
            Mirror { status: Some(false), reason: state::DELETED.to_owned(), message, fields, end }
        }
        "BUILD" => waiting(Some(false), state::NOT_READY.to_owned(), "Instance is building".to_owned(), fields),
        "" | "ACTIVE" => {
            let (reason, message) = told(server).unwrap_or((state::NOT_READY.to_owned(), NOT_CREATED.to_owned()));
            waiting(Some(false), reason, message, fields)
        }
        other => {
            let message = format!("Instance state is not handled: {other}");
            waiting(None, state::NOT_READY.to_owned(), message, fields)
        }
    }
}

fn waiting(status: Option<bool>, reason: String, message: String, fields: Value) -> Mirror {
    let end = Err(Problem::waiting(reason.clone(), message.clone()));
    Mirror { status, reason, message, fields, end }
}

/// Reason and message of the server's own condition, where it does not hold.
fn told(server: &Value) -> Option<(String, String)> {
    let condition = object::condition(server, INSTANCE_READY).filter(|it| object::text(it, "/status") == "False")?;
    let text = |at: &str| Some(object::text(condition, at).to_owned()).filter(|text| !text.is_empty());
    Some((text("/reason")?, text("/message").unwrap_or_default())).filter(|(_, message)| !message.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::Fault;

    fn server(state: &str, condition: Value) -> Value {
        json!({"status": {"instanceID": "i1", "instanceState": state, "conditions": [condition]}})
    }

    #[test]
    fn the_servers_state_is_the_machines() {
        type Row = (&'static str, bool, Option<bool>, &'static str, Option<Fault>);
        let table: [Row; 7] = [
            ("ACTIVE", false, Some(true), "Ready", None),
            ("BUILD", false, Some(false), "InstanceNotReady", Some(Fault::Waiting)),
            ("ERROR", false, Some(false), "InstanceStateError", Some(Fault::Terminal)),
            ("ERROR", true, Some(false), "InstanceStateError", Some(Fault::Invalid)),
            ("SHUTOFF", true, None, "InstanceNotReady", Some(Fault::Waiting)),
            ("DELETED", true, Some(false), "InstanceDeleted", Some(Fault::Terminal)),
            ("", false, Some(false), "InstanceNotReady", Some(Fault::Waiting)),
        ];
        for (state, is_node, status, reason, fault) in table {
            let mirror = of(&server(state, json!({})), is_node);
            assert_eq!((mirror.status, mirror.reason.as_str()), (status, reason), "{state}");
            assert_eq!(mirror.end.err().map(|problem| problem.fault), fault, "{state}");
            let failed = mirror.fields["failureReason"].as_str();
            assert_eq!(failed, (state == "ERROR" && !is_node).then_some("UpdateError"), "{state}");
        }
    }

    #[test]
    fn why_there_is_no_server_is_passed_on() {
        let why =
            json!({"type": "InstanceReady", "status": "False", "reason": "DependencyFailed", "message": "no image"});
        let mirror = of(&server("", why), false);
        assert_eq!((mirror.reason.as_str(), mirror.message.as_str()), ("DependencyFailed", "no image"));
        let none = of(&json!({}), false);
        assert_eq!((none.reason.as_str(), none.message.as_str()), ("InstanceNotReady", NOT_CREATED));
    }

    #[test]
    fn a_server_that_recovers_clears_the_failure() {
        let fields = of(&server("ACTIVE", json!({})), false).fields;
        let mut status = json!({"failureReason": "UpdateError", "failureMessage": "x", "instanceState": "ERROR"});
        object::merge(&mut status, &fields);
        assert_eq!(status, json!({"instanceID": "i1", "instanceState": "ACTIVE"}));
    }
}
