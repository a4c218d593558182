//! Other kinds of a provider. Their objects need no owner; the label `cluster.x-k8s.io/cluster-name` names their
//! Cluster, if any. The host writes only `Ready` to their status.

use async_trait::async_trait;
use capwasm_contract::{Answer, Function};
use capwasm_reconcile::CacheError;
use serde_json::Value;

use super::{Functions, Rules};
use crate::belongings::{Belongings, Owner, Waiting};
use crate::draft::Draft;
use crate::layout::{Layout, Schema};
use crate::related::Related;

pub struct Controller;

#[async_trait]
impl Rules for Controller {
    fn functions(&self) -> Functions {
        Functions { reconcile: Function::ControllerReconcile, delete: Function::ControllerDelete }
    }

    fn owners(&self) -> &'static [Owner] {
        &[]
    }

    fn waits(&self, _: &Belongings) -> Result<(), Waiting> {
        Ok(())
    }

    async fn relate(&self, related: &mut Related<'_>, cluster: &Value) -> Result<(), CacheError> {
        related.infrastructure_cluster(cluster).await
    }

    fn layout(&self, schema: &Schema<'_>, common: Layout) -> Layout {
        // A kind may have no conditions: a template that only reports its capacity, say.
        let conditions = common.conditions.filter(|_| schema.declares("status.conditions"));
        Layout { conditions, ..common }
    }

    fn answer(&self, draft: &mut Draft<'_>, _: &Belongings, answer: &Answer) {
        if *answer == Answer::Reconciled {
            draft.summary(Some(true), "Ready", "", None);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use capwasm_api::contract::Contract;
    use capwasm_contract::descriptor::Role;
    use capwasm_contract::{Answer, Fault, Outcome, Problem};
    use serde_json::json;

    use crate::write_back::testing::{object, older, write_older};

    #[test]
    fn a_controllers_kind_says_ready_in_the_conditions_that_it_has() {
        let of = older(Role::Controller, "v1alpha1", "v1alpha1");
        let said = Outcome { status: vec![json!({"ready": true})], ..Outcome::default() };
        let done = write_older(&of, &object(), Ok(Answer::Reconciled), &said);
        assert_eq!(done["ready"], true, "the provider's own word");
        assert_eq!(
            (&done["conditions"][0]["type"], &done["conditions"][0]["status"]),
            (&json!("Ready"), &json!("True"))
        );
        let problem = |fault| Problem { fault, reason: "Why".into(), message: "m".into(), retry_after: None };
        let rows = [(Fault::Waiting, "Info"), (Fault::Transient, "Warning"), (Fault::Invalid, "Error")];
        for (fault, severity) in rows {
            let status = write_older(&of, &object(), Err(problem(fault)), &Outcome::default());
            let condition = &status["conditions"][0];
            assert_eq!(
                (&condition["status"], &condition["severity"]),
                (&json!("False"), &json!(severity)),
                "{fault:?}"
            );
            assert_eq!(status["ready"], false, "a status without it would be refused");
        }
        // In no contract at all, its schema says which conditions it has; one that cannot be said has no severity.
        let (kind, contract) = older(Role::Controller, "v1alpha1", "v1beta1");
        assert_eq!(contract, Contract::V1Beta2);
        let unknown = Outcome {
            conditions: vec![capwasm_contract::Condition {
                name: "Leased".into(),
                status: None,
                reason: "R".into(),
                message: String::new(),
            }],
            ..Outcome::default()
        };
        let status = write_older(&(kind, contract), &object(), Err(problem(Fault::Invalid)), &unknown);
        assert_eq!(status["conditions"][0].get("severity"), None, "{status}");
        assert_eq!(status["conditions"][0].get("message"), None, "v1beta1 refuses an empty one: {status}");
        assert_eq!(status["conditions"][1]["severity"], "Error", "{status}");
        // A template that reports its capacity has no conditions to write.
        let (mut kind, contract) = older(Role::Controller, "v1beta1", "v1beta1");
        kind.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"properties": {"capacity": {}}});
        let capacity = Outcome { status: vec![json!({"capacity": {"cpu": "4"}})], ..Outcome::default() };
        let status = write_older(&(kind, contract), &object(), Ok(Answer::Reconciled), &capacity);
        assert_eq!(status, json!({"capacity": {"cpu": "4"}}));
    }
}
