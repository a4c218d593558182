//! One table of requests, sent to the real services and to the fake: the same status, the same members, the same errors.
//!
//! What the real services answer, with ids and times taken out, is kept in `tests/fixtures/openstack/contract.json`; both are held
//! against it. `CAPWASM_RECORD_CONTRACT=1` on a test against the real services writes it anew.

mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::shape::{differences, normalized};
use super::{Cloud, Project};
use crate::{guests, wait};

/// One request and what is expected.
#[derive(Clone, Debug)]
pub struct Step {
    name: &'static str,
    method: Method,
    service: &'static str,
    path: String,
    body: Value,
    status: u16,
    who: Who,
    /// Values of the answer that later steps name as `{name}`.
    keep: Vec<(&'static str, &'static str)>,
    /// Asked again until this place of the answer has this value; or, with an empty place, until the status is as expected.
    until: Option<(&'static str, Value)>,
    /// Answers differ from one installation to the next: only this member counts, or nothing but the status.
    only: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    User,
    Admin,
    Nobody,
    Stranger,
}

impl Step {
    fn is(mut self, status: u16) -> Step {
        self.status = status;
        self
    }

    fn by(mut self, who: Who) -> Step {
        self.who = who;
        self
    }

    fn keep(mut self, name: &'static str, pointer: &'static str) -> Step {
        self.keep.push((name, pointer));
        self
    }

    fn until(mut self, pointer: &'static str, value: impl Into<Value>) -> Step {
        self.until = Some((pointer, value.into()));
        self
    }

    fn only(mut self, pointer: &'static str) -> Step {
        self.only = Some(pointer);
        self
    }
}

/// What was answered to each step, by name.
pub type Answers = BTreeMap<String, Value>;

/// Sends all requests in their order. Failures are told all at once, beside the answers that were as expected.
pub async fn run(project: &Project) -> (Answers, Vec<String>) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    known.insert("project".into(), project.cloud.project_id.clone());
    known.insert("user".into(), project.cloud.user_id.clone());
    known.insert("name".into(), project.name.clone());
    let volumes = &project.cloud.catalog["block-storage"];
    // Cinder's endpoint has the project's id in it, or has not.
    let has_project = volumes.ends_with(&project.cloud.project_id);
    known.insert("volumes".into(), if has_project { String::new() } else { format!("/{}", project.cloud.project_id) });
    let (mut answers, mut failures) = (Answers::new(), Vec::new());
    for step in table::steps() {
        match one(project, &step, &known).await {
            Ok((status, body)) => {
                for (name, pointer) in &step.keep {
                    match body.pointer(pointer).and_then(Value::as_str) {
                        Some(value) => drop(known.insert((*name).to_owned(), value.to_owned())),
                        None => failures.push(format!("{}: there is no {pointer} in {body}", step.name)),
                    }
                }
                if status != step.status {
                    failures.push(format!("{}: the status should be {}, is {status}: {body}", step.name, step.status));
                }
                let body = match step.only {
                    None => body,
                    Some("") => Value::Null,
                    Some(pointer) => body.pointer(pointer).cloned().unwrap_or_default(),
                };
                let body = body.to_string().replace(&project.name, "<name>");
                let body: Value = serde_json::from_str(&body).expect("it was JSON");
                answers.insert(step.name.to_owned(), json!({"status": status, "body": normalized(&body)}));
            }
            Err(problem) => failures.push(format!("{}: {problem}", step.name)),
        }
    }
    (answers, failures)
}

async fn one(project: &Project, step: &Step, known: &BTreeMap<String, String>) -> Result<(u16, Value), String> {
    let path = fill(&step.path, known)?;
    let body: Value = serde_json::from_str(&fill(&step.body.to_string(), known)?).expect("it was JSON");
    let cloud: Cloud = match step.who {
        Who::User => project.cloud.clone(),
        Who::Admin => project.admin.clone(),
        Who::Nobody => project.cloud.with_token(""),
        Who::Stranger => project.cloud.with_token("gAAAAAB-not-a-token"),
    };
    let send = || cloud.send(step.method.clone(), step.service, &path, &body);
    let Some((pointer, value)) = &step.until else {
        let answer = send().await;
        return Ok((answer.status, answer.body));
    };
    let deadline = Instant::now() + wait::LONG / 4;
    loop {
        let answer = send().await;
        let there =
            if pointer.is_empty() { answer.status == step.status } else { answer.body.pointer(pointer) == Some(value) };
        if there {
            return Ok((answer.status, answer.body));
        }
        if Instant::now() > deadline {
            return Err(format!("{pointer} does not become {value}: {} {}", answer.status, answer.body));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// With the values of earlier answers in the place of their names.
fn fill(text: &str, known: &BTreeMap<String, String>) -> Result<String, String> {
    let mut text = text.to_owned();
    for (name, value) in known {
        text = text.replace(&format!("<{name}>"), value);
    }
    match text.find('<') {
        Some(at) => Err(format!("an earlier step did not give {}", &text[at..])),
        None => Ok(text),
    }
}

/// What the real services answered when they were recorded.
pub fn recorded() -> Answers {
    let text = std::fs::read_to_string(file()).expect("the recorded answers are there");
    serde_json::from_str(&text).expect("the recorded answers are JSON")
}

/// Writes the recorded answers anew.
pub fn record(answers: &Answers) {
    let text = serde_json::to_string_pretty(answers).expect("answers are JSON");
    std::fs::write(file(), text + "\n").expect("the recorded answers can be written");
}

/// Where the fake differs from the recorded services on purpose: step, difference, reason. The fake's test prints them, and fails as
/// soon as one is not there any more.
pub const KNOWN: [(&str, &str, &str); 1] = [(
    "zones",
    r#"/body/availabilityZoneInfo: is missing, should be {"hosts":null,"zoneName":"az-fail","zoneState":{"available":true}}"#,
    "builds fail there, and no simulated cluster is to take it for a failure domain",
)];

/// What came of holding answers against those that are recorded.
#[derive(Debug, Default)]
pub struct Comparison {
    /// As `step: path: expected, found`.
    pub differences: Vec<String>,
    /// Differences that are known, with their reasons.
    pub known: Vec<String>,
}

/// Where answers differ from those that are recorded.
pub fn compare(recorded: &Answers, found: &Answers) -> Comparison {
    let mut all = Comparison::default();
    for (name, answer) in recorded {
        let Some(other) = found.get(name) else {
            all.differences.push(format!("{name}: was not answered"));
            continue;
        };
        for difference in differences(answer, other, true) {
            let known = KNOWN.iter().find(|(step, text, _)| step == name && difference == *text);
            match known {
                Some((.., reason)) => all.known.push(format!("{name}: {difference} ({reason})")),
                None => all.differences.push(format!("{name}: {difference}")),
            }
        }
    }
    let more = found.keys().filter(|name| !recorded.contains_key(*name));
    all.differences.extend(more.map(|name| format!("{name}: is not recorded")));
    all
}

fn file() -> PathBuf {
    guests::fixture_file("openstack/contract.json")
}
