//! The host's part after a call, on the objects of a [`TestHost`].

use capwasm_contract::{Condition, ObjectRef, Operation, Outcome, Place, Refusal, Refused};
use serde_json::{Value, json};

use super::TestHost;
use crate::object;

/// Writes an outcome's status, own fields and conditions into the object.
pub fn write_back(outcome: &Outcome, target: &mut Value) {
    for fields in &outcome.own {
        object::merge(target, fields);
    }
    for fields in &outcome.status {
        object::merge(target, &json!({"status": fields}));
    }
    for condition in &outcome.conditions {
        set_condition(target, condition);
    }
}

fn set_condition(target: &mut Value, condition: &Condition) {
    let status = match condition.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let entry =
        json!({"type": condition.name, "status": status, "reason": condition.reason, "message": condition.message});
    let mut conditions = target.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.retain(|known| object::text(known, "/type") != condition.name);
    conditions.push(entry);
    object::merge(target, &json!({"status": {"conditions": conditions}}));
}

impl TestHost {
    /// Carries out the operations of an outcome on this host's objects, in order until the first failure, and keeps how
    /// they ended for the next pass. Created objects get a uid of their own.
    pub fn carry_out(&self, outcome: &Outcome) {
        let mut results = Vec::new();
        for operation in &outcome.operations {
            let result = self.one(operation);
            let failed = result.is_err();
            results.push((operation.key().to_owned(), result));
            if failed {
                break;
            }
        }
        *self.results.borrow_mut() = results;
    }

    fn one(&self, operation: &Operation) -> Result<(), Refused> {
        match operation {
            Operation::Create { place, object, .. } => self.create(*place, object, false),
            Operation::Apply { place, object, .. } => self.create(*place, object, true),
            Operation::Patch { place, target, merge, .. } => {
                self.change(*place, target, |found| object::merge(found, merge))
            }
            Operation::SetConditionOf { target, condition, .. } => {
                self.change(Place::Management, target, |found| set_condition(found, condition))
            }
            Operation::Delete { place, target, uid, .. } => {
                let other = |found: &Value| uid.as_ref().is_some_and(|uid| uid != object::uid(found));
                if self.get(*place, target).is_ok_and(|found| !other(&found)) {
                    self.remove(*place, target);
                }
                Ok(())
            }
            Operation::Refused { refused, .. } => Err(refused.clone()),
        }
    }

    fn create(&self, place: Place, wanted: &Value, merge: bool) -> Result<(), Refused> {
        let mut wanted = wanted.clone();
        if place == Place::Management && object::namespace(&wanted).is_empty() {
            object::merge(&mut wanted, &json!({"metadata": {"namespace": self.namespace}}));
        }
        let mut target =
            ObjectRef::new(object::text(&wanted, "/apiVersion"), object::text(&wanted, "/kind"), object::name(&wanted));
        target.namespace = Some(object::namespace(&wanted).to_owned());
        match self.get(place, &target) {
            Ok(mut found) if merge => {
                object::merge(&mut found, &wanted);
                self.put(place, found);
                Ok(())
            }
            Ok(found) if shares_an_owner(&found, &wanted) => Ok(()),
            Ok(_) => Err(Refused::new(Refusal::Conflict, "NotOurs", format!("{} belongs to another", target.name))),
            Err(refused) if refused.is_not_found() => {
                if object::uid(&wanted).is_empty() {
                    object::merge(&mut wanted, &json!({"metadata": {"uid": format!("uid-{}", self.next())}}));
                }
                self.put(place, wanted);
                Ok(())
            }
            Err(refused) => Err(refused),
        }
    }

    fn change(&self, place: Place, target: &ObjectRef, change: impl FnOnce(&mut Value)) -> Result<(), Refused> {
        let mut found = self.get(place, target)?;
        change(&mut found);
        self.put(place, found);
        Ok(())
    }
}

/// Without owner references on the wanted object it counts as ours: a test has one provider only.
fn shares_an_owner(found: &Value, wanted: &Value) -> bool {
    let uids = |object: &Value| -> Vec<String> {
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.into_iter().flatten().map(|owner| object::text(owner, "/uid").to_owned()).collect()
    };
    let wanted = uids(wanted);
    wanted.is_empty() || uids(found).iter().any(|uid| wanted.contains(uid))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::Host;

    #[test]
    fn operations_run_in_order_until_the_first_failure_and_their_ends_are_told() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
        let reference = ObjectRef::new("v1", "Secret", "a");
        let mut first = Outcome::default();
        first
            .create("create", Place::Management, secret.clone())
            .patch("patch", Place::Management, reference.clone(), json!({"data": {"k": "dg=="}}))
            .patch("absent", Place::Management, ObjectRef::new("v1", "Secret", "b"), json!({}))
            .delete("never", Place::Management, reference.clone(), None);
        let host = TestHost::new();
        host.carry_out(&first);
        assert_eq!(host.lookup(&reference).unwrap()["data"]["k"], "dg==");
        let ends: Vec<_> = host.results().into_iter().map(|(key, result)| (key, result.is_ok())).collect();
        assert_eq!(ends, [("create".to_owned(), true), ("patch".to_owned(), true), ("absent".to_owned(), false)]);
        let mut second = Outcome::default();
        second.delete("delete", Place::Management, reference.clone(), Some("another".to_owned()));
        host.carry_out(&second);
        assert!(host.lookup(&reference).is_ok(), "another uid is another object");
    }

    #[test]
    fn an_outcome_is_written_back_into_the_object() {
        let mut object =
            json!({"metadata": {"name": "a"}, "status": {"old": 1, "conditions": [{"type": "A", "status": "False"}]}});
        let mut outcome = Outcome::default();
        outcome.status(json!({"old": null, "new": 2})).own(json!({"spec": {"providerID": "x"}}));
        outcome.condition("A", Some(true), "Done", "").condition("B", None, "Later", "");
        write_back(&outcome, &mut object);
        assert_eq!(object["spec"]["providerID"], "x");
        assert_eq!((object["status"].get("old"), &object["status"]["new"]), (None, &json!(2)));
        assert!(object::is_true(&object, "A"));
        assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 2);
    }
}
