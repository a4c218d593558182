//! The object of a call between observed and desired. Fields are written where the kind's layout has them; latched
//! fields stay.

use capwasm_api::conditions::{self, Condition, Status};
use capwasm_contract::{Endpoint, Fault};
use capwasm_object::{json, merge_patch, meta};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::field::{ENDPOINT_HOST, Field};
use crate::host_keys;
use crate::layout::{ConditionShape, Layout, Summary};
use crate::own_paths::Dropped;

/// The observed object, and the desired copy.
#[derive(Clone, Debug)]
pub struct Draft<'a> {
    /// The observed object.
    pub object: &'a Value,
    pub layout: &'a Layout,
    now: Timestamp,
    desired: Value,
    /// Latched fields whose observed value is wrong.
    corrected: Vec<Field>,
    /// Whether the object is known not to be paused.
    resumed: bool,
}

impl<'a> Draft<'a> {
    /// An unchanged draft. `now` becomes the transition time of its conditions.
    pub fn new(object: &'a Value, layout: &'a Layout, now: Timestamp) -> Self {
        Self { object, layout, now, desired: object.clone(), corrected: Vec::new(), resumed: false }
    }

    /// The object is not paused: the condition `Paused` says so where it said the opposite, and where the status is written anyway.
    pub fn resumed(mut self) -> Self {
        self.resumed = true;
        self
    }

    /// Merges the guest's status patch (JSON merge patch, RFC 7396), except reserved fields.
    pub fn merge_status(&mut self, fields: &Value) {
        let status = json::map(&mut self.desired, &["status"]);
        let reserved = self.layout.reserved;
        let reported = fields.as_object().into_iter().flatten().filter(|(key, _)| !reserved.contains(&key.as_str()));
        merge_patch::apply_fields(status, reported);
    }

    /// Merges the guest's fields at own paths; others go to `dropped`, as do labels and annotations of the host.
    pub fn merge_own(&mut self, fields: &Value, dropped: &mut Dropped) {
        for (path, value) in self.layout.own.declared(fields) {
            let Some((last, parents)) = path.split_last() else { continue };
            match room(&self.desired, parents) {
                // What is not there needs no parents to be cleared in.
                Some(there) if there || !value.is_null() => {
                    let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
                    merge_patch::apply_fields(json::map(&mut self.desired, &parents), [(last, value)]);
                }
                Some(_) => {}
                None => dropped.push(path.iter().map(String::as_str)),
            }
        }
        host_keys::keep(
            self.object,
            &mut self.desired,
            |_| false,
            |map, key| {
                dropped.push(["metadata", map, key].into_iter());
            },
        );
        self.layout.own.undeclared(fields, dropped);
    }

    pub fn set(&mut self, field: Field, value: impl Into<Value>) {
        field.set(&mut self.desired, value);
    }

    /// As [`set`](Draft::set), also where the field is latched with another value.
    pub fn correct(&mut self, field: Field, value: impl Into<Value>) {
        self.set(field, value);
        self.corrected.push(field);
    }

    pub fn set_status(&mut self, key: &str, value: impl Into<Value>) {
        json::map(&mut self.desired, &["status"]).insert(key.to_owned(), value.into());
    }

    /// Sets the API server's endpoint, unless it is known or the schema lacks the field.
    pub fn endpoint(&mut self, endpoint: Option<&Endpoint>) {
        let wanted = self.layout.endpoint && ENDPOINT_HOST.text(&self.desired).is_none();
        if let Some(Endpoint { host, port }) = endpoint.filter(|_| wanted) {
            json::set(&mut self.desired, &["spec", "controlPlaneEndpoint"], json!({"host": host, "port": port}));
        }
    }

    /// Sets the flags of a provisioned object, and the summary of any.
    pub fn provisioned(&mut self, provisioned: bool) {
        if provisioned {
            for field in &self.layout.provisioned {
                field.set(&mut self.desired, true);
            }
            self.summary(Some(true), "Ready", "", None);
        } else if let Some(field) = self.layout.provisioned.first() {
            // The words that core has for an object that has no conditions yet: no news to be copied.
            let message = format!("{} {field} is false", meta::kind(self.object));
            self.summary(Some(false), "NotReady", &message, Some(Fault::Waiting));
        }
    }

    /// Sets `status.observedGeneration`, where the schema has it.
    pub fn observed_generation(&mut self) {
        if let Some(generation) = json::number(self.object, "/metadata/generation")
            && self.layout.observed_generation
        {
            self.set_status("observedGeneration", generation);
        }
    }

    /// Sets the condition that summarises the call.
    pub fn summary(&mut self, status: Option<bool>, reason: &str, message: &str, fault: Option<Fault>) {
        let summary = self.layout.summary;
        if summary == Summary::Available && fault.is_none_or(|fault| fault == Fault::Waiting) {
            return;
        }
        self.condition(summary.name(), status, reason, message, fault);
    }

    /// Sets a condition; a status of `None` is Unknown. The fault decides the severity in v1beta1.
    pub fn condition(&mut self, name: &str, status: Option<bool>, reason: &str, message: &str, fault: Option<Fault>) {
        let Some(shape) = self.layout.conditions else { return };
        let reason = if reason.is_empty() { "Unspecified" } else { reason };
        let status = status.map_or(Status::Unknown, Status::from);
        conditions::set(&mut self.desired, &Condition::new(name, status, reason).message(message), self.now);
        if shape == ConditionShape::V1Beta1
            && let Some(entry) = self
                .desired
                .pointer_mut("/status/conditions")
                .and_then(Value::as_array_mut)
                .and_then(|list| list.iter_mut().find(|entry| entry["type"] == name)?.as_object_mut())
        {
            if status == Status::True {
                entry.remove("reason");
            }
            // v1beta1 refuses an empty one.
            if status == Status::True || message.is_empty() {
                entry.remove("message");
            }
            if status == Status::False {
                entry.insert("severity".to_owned(), severity(fault).into());
            }
        }
    }

    /// The desired object, with latched fields restored and required flags added.
    pub fn finish(mut self) -> Value {
        self.keep_latched();
        self.count_own_change();
        self.tell_resumed();
        if let Some(status) = self.desired.get_mut("status").and_then(Value::as_object_mut) {
            // Without these the API server takes no status at all. Whoever sets them says more than this.
            for flag in &self.layout.required {
                status.entry(flag).or_insert(Value::Bool(false));
            }
        }
        self.desired
    }

    fn tell_resumed(&mut self) {
        // Kinds of v1beta1 know no such condition.
        let news = self.layout.conditions == Some(ConditionShape::Metav1)
            && self.desired.get("status") != self.object.get("status");
        if self.resumed && (news || conditions::is_true(self.object, "Paused")) {
            self.condition("Paused", Some(false), "NotPaused", "", None);
        }
    }

    fn keep_latched(&mut self) {
        for latch in self.layout.latches.iter().filter(|latch| !self.corrected.contains(latch)) {
            // An endpoint that Go wrote empty has port 0.
            let empty = |held: &&Value| held.as_bool() == Some(false) || held.is_null() || **held == "" || **held == 0;
            if let Some(held) = latch.get(self.object).filter(|held| !empty(held)) {
                latch.set(&mut self.desired, held.clone());
            }
        }
    }

    /// Anticipates the generation that the plan's own write to the spec brings, which saves a second status write. If
    /// somebody else writes in between, the next pass corrects it.
    fn count_own_change(&mut self) {
        let observed = json::number(&self.desired, "/status/observedGeneration");
        if let Some(generation) = json::number(self.object, "/metadata/generation")
            && observed == Some(generation)
            && self.desired.get("spec") != self.object.get("spec")
        {
            self.set_status("observedGeneration", generation.saturating_add(1));
        }
    }
}

fn severity(fault: Option<Fault>) -> &'static str {
    match fault {
        None | Some(Fault::Waiting) => "Info",
        Some(Fault::Transient) => "Warning",
        Some(Fault::Invalid | Fault::Terminal | Fault::Unsupported) => "Error",
    }
}

/// Whether there is a map at these keys; `None` where another value is in the way.
fn room(object: &Value, keys: &[String]) -> Option<bool> {
    let mut at = Some(object);
    for key in keys {
        at = at.and_then(|at| at.get(key)).filter(|at| !at.is_null());
        if at.is_some_and(|at| !at.is_object()) {
            return None;
        }
    }
    Some(at.is_some())
}
