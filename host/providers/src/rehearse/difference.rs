//! Differences between two outcomes of one call. Values of Secrets and bootstrap data are compared but not shown.

use std::collections::BTreeMap;

use capwasm_contract::recording::{Ended, Exchange, Request};
use capwasm_contract::{Answer, Condition, Operation, Outcome, Place};
use capwasm_object::meta;
use capwasm_runtime::record::Divergence;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Difference in one subject: the answer, the status, a condition, an event, an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// `result`, `status`, `condition Ready`, `operation worker-0` …
    pub subject: String,
    /// The differing values; one change of the whole for a subject that only one side has.
    pub changes: Vec<Change>,
}

/// One differing value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// JSON pointer within the subject; empty for the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The recorded value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The candidate's value, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Key of a map whose value is compared but not shown.
const HIDDEN: &str = "$hidden";

/// Differences of `after` from `before`.
pub fn differences(before: &Ended, after: &Ended) -> Vec<Difference> {
    if before == after {
        return Vec::new();
    }
    compare(&subjects(before), &subjects(after))
}

/// Differences of a request from the recorded one; none when their types differ.
pub(super) fn of_requests(divergence: &Divergence) -> Vec<Difference> {
    let (Some(asked), Some(recorded)) = (&divergence.asked, &divergence.recorded) else { return Vec::new() };
    if asked.name() != recorded.name() {
        return Vec::new();
    }
    compare(&vec![("request".to_owned(), shown(recorded))], &vec![("request".to_owned(), shown(asked))])
}

type Subjects = Vec<(String, Value)>;

fn compare(before: &Subjects, after: &Subjects) -> Vec<Difference> {
    let find = |subjects: &Subjects, name: &str| {
        subjects.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let new = after.iter().filter(|(name, _)| find(before, name).is_none());
    let mut found = Vec::new();
    for (subject, _) in before.iter().chain(new) {
        let mut changes = Vec::new();
        walk(String::new(), find(before, subject).as_ref(), find(after, subject).as_ref(), &mut changes);
        if !changes.is_empty() {
            found.push(Difference { subject: subject.clone(), changes });
        }
    }
    let keys = |subjects: &Subjects| -> Vec<Value> {
        let operations = subjects.iter().filter_map(|(name, _)| name.strip_prefix(OPERATION));
        operations.map(Value::from).collect()
    };
    let (was, is) = (keys(before), keys(after));
    if was != is && was.len() == is.len() && was.iter().all(|key| is.contains(key)) {
        let change = Change { path: String::new(), before: Some(was.into()), after: Some(is.into()) };
        found.push(Difference { subject: "order of operations".to_owned(), changes: vec![change] });
    }
    found
}

fn walk(path: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(a)), Some(Value::Object(b))) if !a.contains_key(HIDDEN) && !b.contains_key(HIDDEN) => {
            let new = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(new) {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                walk(format!("{path}/{escaped}"), a.get(key), b.get(key), changes);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                walk(format!("{path}/{at}"), Some(a), Some(b), changes);
            }
        }
        (before, after) if before != after => {
            changes.push(Change { path, before: before.map(visible), after: after.map(visible) });
        }
        _ => {}
    }
}

/// Replaces hidden values by their size.
fn visible(value: &Value) -> Value {
    match value {
        Value::Object(fields) => match fields.get(HIDDEN) {
            Some(hidden) => {
                let bytes = hidden.as_str().map_or_else(|| hidden.to_string().len(), str::len);
                json!(format!("(hidden, {bytes} bytes)"))
            }
            None => fields.iter().map(|(key, value)| (key.clone(), visible(value))).collect::<Map<_, _>>().into(),
        },
        Value::Array(items) => items.iter().map(visible).collect(),
        other => other.clone(),
    }
}

fn hidden(value: impl Into<Value>) -> Value {
    json!({ HIDDEN: value.into() })
}

const OPERATION: &str = "operation ";

/// The effects of a call by name, in the order in which they are applied.
fn subjects(ended: &Ended) -> Subjects {
    let (answer, outcome) = match ended {
        Ended::Failed(failure) => return vec![("result".to_owned(), json!({"failed": failure.to_string()}))],
        Ended::Replied { answer, outcome } => (answer, outcome),
    };
    let result = match answer {
        Ok(answer) => json!({"answer": shown_answer(answer)}),
        Err(problem) => json!({"problem": problem}),
    };
    let mut subjects = vec![("result".to_owned(), result)];
    subjects.extend(merged("status", &outcome.status));
    subjects.extend(merged("own fields", &outcome.own));
    // Of several of one name the last counts.
    let conditions: BTreeMap<&str, &Condition> = outcome.conditions.iter().map(|c| (c.name.as_str(), c)).collect();
    for condition in conditions.into_values() {
        subjects.push((format!("condition {}", condition.name), shown_condition(condition)));
    }
    for event in &outcome.events {
        let name = unused(&subjects, format!("event {}", event.reason));
        let kind = if event.warning { "Warning" } else { "Normal" };
        subjects.push((name, json!({"type": kind, "message": event.message})));
    }
    for operation in &outcome.operations {
        let name = unused(&subjects, format!("{OPERATION}{}", operation.key()));
        subjects.push((name, shown_operation(operation)));
    }
    subjects.extend(wakes(outcome));
    subjects
}

fn merged(name: &str, patches: &[Value]) -> Option<(String, Value)> {
    let mut all = patches.first()?.clone();
    for patch in &patches[1..] {
        overlay(&mut all, patch);
    }
    Some((name.to_owned(), all))
}

/// Merges a later merge patch into an earlier one; nulls stay, because they delete.
fn overlay(earlier: &mut Value, later: &Value) {
    match (earlier, later) {
        (Value::Object(earlier), Value::Object(later)) => {
            for (key, value) in later {
                match earlier.get_mut(key) {
                    Some(known) => overlay(known, value),
                    None => {
                        earlier.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (earlier, later) => *earlier = later.clone(),
    }
}

fn wakes(outcome: &Outcome) -> Option<(String, Value)> {
    let mut wakes = Map::new();
    if let Some(after) = outcome.wake_after {
        wakes.insert("afterSeconds".to_owned(), json!(after.as_secs_f64()));
    }
    if outcome.wake_when_applied {
        wakes.insert("whenApplied".to_owned(), json!(true));
    }
    (!wakes.is_empty()).then(|| ("wake".to_owned(), wakes.into()))
}

fn unused(subjects: &Subjects, name: String) -> String {
    let taken = |name: &str| subjects.iter().any(|(known, _)| known == name);
    if !taken(&name) {
        return name;
    }
    (2..).map(|number| format!("{name} #{number}")).find(|name| !taken(name)).unwrap_or(name)
}

fn shown_answer(answer: &Answer) -> Value {
    if let Answer::Bootstrap(Some(data)) = answer {
        return json!({"bootstrap": {"format": data.format, "value": hidden(String::from_utf8_lossy(&data.value))}});
    }
    json!(answer)
}

fn shown_condition(condition: &Condition) -> Value {
    let status = condition.status.map_or("Unknown", |status| if status { "True" } else { "False" });
    json!({"status": status, "reason": condition.reason, "message": condition.message})
}

fn shown_operation(operation: &Operation) -> Value {
    let at = |place: &Place| match place {
        Place::Management => "management",
        Place::Workload => "workload",
    };
    match operation {
        Operation::Create { place, object, .. } => {
            json!({"does": "create", "in": at(place), "object": guarded(meta::kind(object), object)})
        }
        Operation::Apply { place, object, .. } => {
            json!({"does": "apply", "in": at(place), "object": guarded(meta::kind(object), object)})
        }
        Operation::Patch { place, target, merge, .. } => {
            json!({"does": "patch", "in": at(place), "target": target, "merge": guarded(&target.kind, merge)})
        }
        Operation::SetConditionOf { target, condition, .. } => {
            let condition = json!({condition.name.as_str(): shown_condition(condition)});
            json!({"does": "set condition", "target": target, "condition": condition})
        }
        Operation::Delete { place, target, uid, .. } => {
            json!({"does": "delete", "in": at(place), "target": target, "uid": uid})
        }
        Operation::Refused { refused, .. } => json!({"does": "nothing", "refused": refused}),
    }
}

/// An object or a patch of this kind, with the data of Secrets hidden.
fn guarded(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    if kind == "Secret" {
        for field in ["data", "stringData"] {
            if let Some(Value::Object(data)) = object.get_mut(field) {
                data.values_mut().for_each(|value| *value = hidden(value.take()));
            }
        }
    }
    object
}

/// Parts of names of headers and fields whose values are hidden.
const SENSITIVE: [&str; 9] =
    ["authorization", "cookie", "token", "secret", "password", "keypem", "private", "user_data", "credential"];

fn is_sensitive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SENSITIVE.iter().any(|part| name.contains(part))
}

fn shown(request: &Request) -> Value {
    if let Some(exchange) = request.http() {
        return shown_exchange(exchange);
    }
    let mut request = json!(request);
    hide_sensitive(&mut request);
    request.get_mut("with").map(Value::take).unwrap_or_default()
}

fn shown_exchange(exchange: &Exchange) -> Value {
    let header = |(name, value): &(String, String)| {
        let value = if is_sensitive(name) { hidden(value.as_str()) } else { json!(value) };
        json!({name.as_str(): value})
    };
    let body = match serde_json::from_slice::<Value>(&exchange.body) {
        Ok(mut body) if body.is_object() || body.is_array() => {
            hide_sensitive(&mut body);
            body
        }
        _ => hidden(String::from_utf8_lossy(&exchange.body)),
    };
    json!({
        "method": exchange.method, "url": exchange.url, "trust": exchange.trust,
        "headers": exchange.headers.iter().map(header).collect::<Vec<_>>(), "body": body,
    })
}

fn hide_sensitive(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if is_sensitive(name) && !value.is_object() && !value.is_array() {
                    *value = hidden(value.take());
                } else {
                    hide_sensitive(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_sensitive),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_contract::{BootstrapData, Event, Failure, Fault, ObjectRef, Problem};
    use std::time::Duration;

    fn replied(answer: Answer, outcome: Outcome) -> Ended {
        Ended::Replied { answer: Ok(answer), outcome }
    }

    fn gone(outcome: Outcome) -> Ended {
        replied(Answer::Gone(true), outcome)
    }

    fn lines(before: &Ended, after: &Ended) -> Vec<String> {
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "-".to_owned(), Value::to_string);
        let changes = |d: &Difference| {
            d.changes
                .iter()
                .map(|c| format!("{} {} {} {}", d.subject, c.path, text(&c.before), text(&c.after)))
                .collect::<Vec<_>>()
        };
        differences(before, after).iter().flat_map(changes).collect()
    }

    fn create(key: &str, object: Value) -> Operation {
        Operation::Create { key: key.into(), place: Place::Management, object }
    }

    #[test]
    fn what_differs_is_named_by_subject_and_path() {
        let condition = |reason: &str| Condition {
            name: "Ready".into(),
            status: Some(false),
            reason: reason.into(),
            message: String::new(),
        };
        let status = |patches: &[Value]| gone(Outcome { status: patches.to_vec(), ..Outcome::default() });
        let conditions = |reasons: &[&str]| {
            gone(Outcome { conditions: reasons.iter().map(|r| condition(r)).collect(), ..Outcome::default() })
        };
        let operations = |operations: Vec<Operation>| gone(Outcome { operations, ..Outcome::default() });
        let event = |message: &str| Event { warning: true, reason: "R".into(), message: message.into() };
        let events = |messages: &[&str]| {
            gone(Outcome { events: messages.iter().map(|m| event(m)).collect(), ..Outcome::default() })
        };
        let machine = |version: &str| json!({"kind": "Machine", "spec": {"version": version, "a/b": 1}});
        let target = ObjectRef { api_version: "v1".into(), kind: "A".into(), namespace: None, name: "a".into() };
        let delete = Operation::Delete { key: "d".into(), place: Place::Workload, target, uid: None };
        let problem = Problem { fault: Fault::Waiting, reason: "R".into(), message: "m".into(), retry_after: None };
        let rows: [(&str, Ended, Ended, &[&str]); 9] = [
            ("nothing", status(&[json!({"a": 1})]), status(&[json!({"a": 1})]), &[]),
            (
                "the same status in two steps",
                status(&[json!({"a": 1, "b": {"c": 2}})]),
                status(&[json!({"a": 0, "b": {"c": 2}}), json!({"a": 1})]),
                &[],
            ),
            (
                "a status that is cleared",
                status(&[json!({"a": 1})]),
                status(&[json!({"a": 1}), json!({"a": null})]),
                &["status /a 1 null"],
            ),
            (
                "the last condition counts",
                conditions(&["A", "B"]),
                conditions(&["C"]),
                &[r#"condition Ready /reason "B" "C""#],
            ),
            ("events of one reason", events(&["x", "y"]), events(&["x", "z"]), &[r#"event R #2 /message "y" "z""#]),
            (
                "an operation's object",
                operations(vec![create("m", machine("1"))]),
                operations(vec![create("m", machine("2"))]),
                &[r#"operation m /object/spec/version "1" "2""#],
            ),
            (
                "operations in another order",
                operations(vec![create("m", json!({})), delete.clone()]),
                operations(vec![delete, create("m", json!({}))]),
                &[r#"order of operations  ["m","d"] ["d","m"]"#],
            ),
            (
                "a problem instead of an answer",
                gone(Outcome { wake_after: Some(Duration::from_millis(1500)), ..Outcome::default() }),
                Ended::Replied { answer: Err(problem), outcome: Outcome::default() },
                &[
                    r#"result /answer {"gone":true} -"#,
                    r#"result /problem - {"fault":"waiting","message":"m","reason":"R","retryAfter":null}"#,
                    r#"wake  {"afterSeconds":1.5} -"#,
                ],
            ),
            (
                "a trap",
                gone(Outcome::default()),
                Ended::Failed(Failure::NotExported),
                &[r#"result /answer {"gone":true} -"#, r#"result /failed - "the component does not export this role""#],
            ),
        ];
        for (name, before, after, expected) in rows {
            assert_eq!(lines(&before, &after), expected, "{name}");
        }
    }

    #[test]
    fn secrets_differ_and_are_not_shown() {
        let secret = |value: &str| {
            let object = json!({"kind": "Secret", "data": {"token": value}, "type": "t"});
            let data = BootstrapData { format: "cloud-config".into(), value: value.as_bytes().to_vec() };
            replied(
                Answer::Bootstrap(Some(data)),
                Outcome { operations: vec![create("s", object)], ..Outcome::default() },
            )
        };
        let told = lines(&secret("old-secret"), &secret("new-secret-value"));
        assert_eq!(
            told,
            [
                r#"result /answer/bootstrap/value "(hidden, 10 bytes)" "(hidden, 16 bytes)""#,
                r#"operation s /object/data/token "(hidden, 10 bytes)" "(hidden, 16 bytes)""#,
            ]
        );
        let added = lines(&gone(Outcome::default()), &secret("new-secret-value")).join("\n");
        assert!(!added.contains("new-secret"), "{added}");
    }

    #[test]
    fn a_request_that_differs_shows_its_fields_but_no_credential() {
        let request = |memory: u64, token: &str| {
            let body = json!({"Memory": memory, "adminPassword": token}).to_string();
            Request::HttpSend(Exchange {
                method: "POST".into(),
                url: "http://docker.endpoint/create".into(),
                headers: vec![("X-Auth-Token".into(), token.into())],
                body: body.into(),
                trust: None,
                deadline_ms: None,
            })
        };
        let divergence =
            Divergence { at: 3, asked: Some(request(2, "new-token")), recorded: Some(request(1, "old-token")) };
        let told = format!("{:?}", of_requests(&divergence));
        assert!(told.contains("/body/Memory") && told.contains("/headers/0/X-Auth-Token"), "{told}");
        assert!(!told.contains("-token\""), "{told}");
    }
}
