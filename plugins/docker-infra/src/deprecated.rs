//! Conditions as the v1beta1 contract had them: `status.deprecated.v1beta1.conditions`, with a severity.

use capwasm_api::time;
use capwasm_sdk::{Context, conditions, object};
use serde_json::{Value, json};

use crate::ownership::UNANSWERED;

/// Repeats the conditions of this pass under their old names, and `Ready` as the sum of them. Each comes with the reason that
/// it has when it is not true, unless that it waits.
pub fn conditions(cx: &mut Context<'_>, object: &Value, known: &[(&str, &str)]) {
    let now = time::format(cx.host.now_ms() / 1_000);
    let before = object.pointer("/status/deprecated/v1beta1/conditions").and_then(Value::as_array);
    let before = before.map_or(&[][..], Vec::as_slice);
    let mut list: Vec<Value> = Vec::new();
    let mut worst: Option<Value> = None;
    for (name, failed) in known {
        let Some(condition) = cx.out.condition_named(name) else { continue };
        let mut entry = json!({"type": name, "status": if condition.status == Some(true) { "True" } else { "False" }});
        if condition.status != Some(true) {
            let (reason, severity) = match condition.reason.as_str() {
                waiting if waiting.starts_with("WaitingFor") || waiting == "Deleting" => (waiting, "Info"),
                "NotSucceeded" => ("Bootstrapping", "Info"),
                "NotProvisioned" | "NotAvailable" | UNANSWERED => (*failed, "Warning"),
                other => (other, "Error"),
            };
            let message: String = condition.message.chars().take(1_000).collect();
            object::merge(&mut entry, &json!({"reason": reason, "severity": severity}));
            if !message.is_empty() {
                object::merge(&mut entry, &json!({"message": message}));
            }
            worst = worst.or(Some(entry.clone()));
        }
        list.push(entry);
    }
    if list.is_empty() {
        return;
    }
    let mut ready = worst.unwrap_or_else(|| json!({"status": "True"}));
    object::merge(&mut ready, &json!({"type": "Ready"}));
    list.insert(0, ready);
    for entry in &mut list {
        conditions::stamp(entry, before, &now);
    }
    cx.out.status(json!({"deprecated": {"v1beta1": {"conditions": list}}}));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::test::TestHost;

    #[test]
    fn old_conditions_keep_their_time_while_they_stay_as_they_are() {
        let host = TestHost::new();
        let object = json!({"status": {"deprecated": {"v1beta1": {"conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"},
            {"type": "A", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        ]}}}});
        let mut cx = Context::new(&host);
        cx.out.condition("A", Some(true), "Provisioned", "").condition("B", Some(false), "NotSucceeded", "step");
        conditions(&mut cx, &object, &[("A", "Failed"), ("B", "Failed"), ("C", "Failed")]);
        let status = cx.out.merged_status();
        let list = status.pointer("/deprecated/v1beta1/conditions").unwrap().as_array().unwrap();
        assert_eq!(list.len(), 3);
        assert_eq!(
            (&list[0]["type"], &list[0]["reason"], &list[0]["lastTransitionTime"]),
            (&json!("Ready"), &json!("Bootstrapping"), &json!("2020-01-01T00:00:00Z"))
        );
        assert_eq!(
            (&list[1]["status"], &list[1]["lastTransitionTime"]),
            (&json!("True"), &json!("2023-11-14T22:13:20Z"))
        );
        assert_eq!(list[2]["severity"], "Info");
    }
}
