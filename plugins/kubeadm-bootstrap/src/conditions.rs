//! Conditions of a KubeadmConfig, and their copies of the v1beta1 contract in `status.deprecated`.
//!
//! `Ready` of the v1beta2 contract is the host's. The v1beta1 conditions have severities, reasons of their own and a
//! `Ready` that repeats the worst of the others.

use capwasm_api::names::reason;
use capwasm_api::time;
use capwasm_sdk::{Fault, Outcome, Problem, conditions};
use serde_json::{Value, json};

/// The data Secret exists.
pub const DATA_SECRET_AVAILABLE: &str = "DataSecretAvailable";
/// The cluster's certificates exist.
pub const CERTIFICATES_AVAILABLE: &str = "CertificatesAvailable";
/// Reason of a condition that cannot be told because of an error.
const INTERNAL_ERROR: &str = "InternalError";

/// Says that the certificates are there.
pub fn certificates_available(out: &mut Outcome) {
    out.condition(CERTIFICATES_AVAILABLE, Some(true), reason::AVAILABLE, "");
}

/// Says that certificates are waited for.
pub fn certificates_missing(out: &mut Outcome, message: &str) {
    out.condition(CERTIFICATES_AVAILABLE, Some(false), reason::NOT_AVAILABLE, message);
}

/// Says that the certificates cannot be used as they are.
pub fn certificates_broken(out: &mut Outcome, message: &str) {
    out.condition(CERTIFICATES_AVAILABLE, None, INTERNAL_ERROR, message);
}

/// Says that the data Secret is there, or will be with this pass.
pub fn data_available(out: &mut Outcome) {
    out.condition(DATA_SECRET_AVAILABLE, Some(true), reason::AVAILABLE, "");
}

/// Says why there is no data Secret.
pub fn data_missing(out: &mut Outcome, problem: &Problem) {
    out.condition(DATA_SECRET_AVAILABLE, Some(false), reason::NOT_AVAILABLE, problem.message.clone());
}

/// A v1beta1 condition without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Old {
    kind: &'static str,
    /// `True`, or the severity and reason of `False`.
    state: Result<(), (Severity, &'static str)>,
    message: String,
}

/// The worst first, as they are summarized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Error,
    Warning,
    Info,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "Error",
            Severity::Warning => "Warning",
            Severity::Info => "Info",
        }
    }
}

/// Adds `status.deprecated.v1beta1.conditions` to the status, from the conditions that the outcome sets. `problem` is why
/// there is no data, `joins` whether certificates had to be there already.
pub fn deprecate(out: &mut Outcome, object: &Value, problem: Option<&Problem>, joins: bool, now_ms: u64) {
    let mut old = Vec::new();
    if let Some(condition) = out.condition_named(CERTIFICATES_AVAILABLE) {
        let failed = match (condition.status, joins) {
            (Some(true), _) => Ok(()),
            (Some(false), false) => Err((Severity::Warning, "CertificatesGenerationFailed")),
            _ => Err((Severity::Error, "CertificatesCorrupted")),
        };
        old.push(Old { kind: CERTIFICATES_AVAILABLE, state: failed, message: condition.message.clone() });
    }
    if let Some(condition) = out.condition_named(DATA_SECRET_AVAILABLE) {
        let state = match (condition.status, problem) {
            (Some(true), _) => Ok(()),
            (_, Some(problem)) if waits_for_control_plane(problem) => {
                Err((Severity::Info, "WaitingForControlPlaneAvailable"))
            }
            (_, Some(problem)) if problem.fault == Fault::Waiting => {
                Err((Severity::Info, "DataSecretGenerationFailed"))
            }
            _ => Err((Severity::Warning, "DataSecretGenerationFailed")),
        };
        old.push(Old { kind: DATA_SECRET_AVAILABLE, state, message: condition.message.clone() });
    }
    if old.is_empty() {
        return;
    }
    let worst = old.iter().filter_map(|it| Some((it.state.err()?, it))).min_by_key(|((severity, _), _)| *severity);
    let ready = match worst {
        None => Old { kind: "Ready", state: Ok(()), message: String::new() },
        Some((state, it)) => Old { kind: "Ready", state: Err(state), message: it.message.clone() },
    };
    old.insert(0, ready);
    let known = object.pointer("/status/deprecated/v1beta1/conditions").and_then(Value::as_array);
    let (known, now) = (known.map_or(&[][..], Vec::as_slice), time::format(now_ms / 1000));
    let written: Vec<Value> = old
        .into_iter()
        .map(|condition| {
            let mut written = written(condition);
            conditions::stamp(&mut written, known, &now);
            written
        })
        .collect();
    out.status(json!({"deprecated": {"v1beta1": {"conditions": written}}}));
}

fn written(condition: Old) -> Value {
    match condition.state {
        Ok(()) => json!({"type": condition.kind, "status": "True"}),
        Err((severity, reason)) => {
            let mut written = json!({
                "type": condition.kind, "status": "False", "severity": severity.as_str(), "reason": reason,
            });
            if !condition.message.is_empty() {
                written["message"] = json!(condition.message);
            }
            written
        }
    }
}

fn waits_for_control_plane(problem: &Problem) -> bool {
    [reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED, "AcquiringInitLock", "InitLockHeld"]
        .contains(&problem.reason.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use capwasm_sdk::object;

    use super::*;

    fn told(out: &Outcome) -> Vec<String> {
        let status = out.merged_status();
        let conditions = status.pointer("/deprecated/v1beta1/conditions").and_then(Value::as_array).cloned();
        let short = |it: &Value| {
            [
                object::text(it, "/type"),
                object::text(it, "/status"),
                object::text(it, "/severity"),
                object::text(it, "/reason"),
            ]
            .join(" ")
        };
        conditions.unwrap_or_default().iter().map(|it| short(it).trim().to_owned()).collect()
    }

    #[test]
    fn v1beta1_conditions_have_severities_and_a_ready_that_repeats_the_worst() {
        let corrupt = Problem::invalid("CertificateEmpty", "m");
        let held = Problem::waiting("InitLockHeld", "m");
        let endpoint = Problem::waiting("WaitingForEndpoint", "m");
        type Set = fn(&mut Outcome);
        type Case<'a> = (&'a str, Set, Option<&'a Problem>, bool, &'a [&'a str]);
        let cases: [Case<'_>; 6] = [
            ("nothing known", |_| {}, None, false, &[]),
            (
                "all well",
                |out| {
                    certificates_available(out);
                    data_available(out);
                },
                None,
                true,
                &["Ready True", "CertificatesAvailable True", "DataSecretAvailable True"],
            ),
            (
                "the lock is held",
                |_| {},
                Some(&held),
                false,
                &[
                    "Ready False Info WaitingForControlPlaneAvailable",
                    "DataSecretAvailable False Info WaitingForControlPlaneAvailable",
                ],
            ),
            (
                "no endpoint",
                |_| {},
                Some(&endpoint),
                true,
                &[
                    "Ready False Info DataSecretGenerationFailed",
                    "DataSecretAvailable False Info DataSecretGenerationFailed",
                ],
            ),
            (
                "an empty certificate for a joining machine",
                |out| certificates_broken(out, "m"),
                Some(&corrupt),
                true,
                &[
                    "Ready False Error CertificatesCorrupted",
                    "CertificatesAvailable False Error CertificatesCorrupted",
                    "DataSecretAvailable False Warning DataSecretGenerationFailed",
                ],
            ),
            (
                "certificates of the first machine are missing",
                |out| certificates_missing(out, "m"),
                Some(&endpoint),
                false,
                &[
                    "Ready False Warning CertificatesGenerationFailed",
                    "CertificatesAvailable False Warning CertificatesGenerationFailed",
                    "DataSecretAvailable False Info DataSecretGenerationFailed",
                ],
            ),
        ];
        for (what, set, problem, joins, expected) in cases {
            let mut out = Outcome::default();
            set(&mut out);
            if let Some(problem) = problem {
                data_missing(&mut out, problem);
            }
            deprecate(&mut out, &json!({}), problem, joins, 0);
            assert_eq!(told(&out), expected, "{what}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut first = Outcome::default();
        data_available(&mut first);
        deprecate(&mut first, &json!({}), None, false, 0);
        let object = json!({"status": first.merged_status()});
        for (what, available, since) in
            [("the same", true, "1970-01-01T00:00:00Z"), ("changed", false, "1970-01-01T00:01:00Z")]
        {
            let mut second = Outcome::default();
            let problem = Problem::transient("Any", "m");
            if available {
                data_available(&mut second);
            } else {
                data_missing(&mut second, &problem);
            }
            deprecate(&mut second, &object, Some(&problem), false, 60_000);
            let status = second.merged_status();
            let conditions = status["deprecated"]["v1beta1"]["conditions"].as_array().unwrap();
            assert!(conditions.iter().all(|it| it["lastTransitionTime"] == since), "{what}: {conditions:?}");
        }
    }
}
