//! A server, real or virtual, that becomes a Node by running its Machine's bootstrap data.

use async_trait::async_trait;
use capwasm_contract::{Answer, Function, MachineAnswer};
use capwasm_reconcile::CacheError;
use serde_json::{Value, json};

use super::{Functions, Rules};
use crate::belongings::{Belongings, Owner, Waiting, there};
use crate::draft::Draft;
use crate::field::{Field, PROVIDER_ID};
use crate::layout::{Layout, Schema};
use crate::related::Related;

pub struct InfrastructureMachine;

#[async_trait]
impl Rules for InfrastructureMachine {
    fn functions(&self) -> Functions {
        Functions { reconcile: Function::MachineProvision, delete: Function::MachineDeprovision }
    }

    fn owners(&self) -> &'static [Owner] {
        &[Owner::Machine]
    }

    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_cluster()?;
        there(belongings.machine.is_some(), "WaitingForMachine", "the Machine that owns it is not there")?;
        belongings.has_infrastructure()
    }

    fn waits_for_data(&self, object: &Value, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_bootstrap_data(object, "the Machine has no bootstrap data")
    }

    async fn relate(&self, related: &mut Related<'_>, cluster: &Value) -> Result<(), CacheError> {
        related.infrastructure_cluster(cluster).await
    }

    fn layout(&self, _: &Schema<'_>, common: Layout) -> Layout {
        let latches = [PROVIDER_ID].into_iter().chain(common.provisioned_latches()).collect();
        Layout { latches, ..common }
    }

    fn answer(&self, draft: &mut Draft<'_>, _: &Belongings, answer: &Answer) {
        let Answer::Machine(MachineAnswer { provisioned, provider_id: answered, addresses, failure_domain }) = answer
        else {
            return;
        };
        if let (None, Some(id)) = (PROVIDER_ID.text(draft.object), answered) {
            draft.set(PROVIDER_ID, id.clone());
        }
        if !addresses.is_empty() {
            let addresses: Value = addresses.iter().map(|a| json!({"type": a.kind, "address": a.value})).collect();
            draft.set(Field("status.addresses"), addresses);
        }
        if let Some(domain) = failure_domain.as_ref().filter(|_| draft.layout.failure_domain) {
            draft.set(Field("status.failureDomain"), domain.clone());
        }
        draft.provisioned(*provisioned);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use capwasm_api::contract::Contract;
    use capwasm_contract::descriptor::Role;
    use capwasm_contract::{Address, Answer, MachineAnswer, Outcome};
    use serde_json::json;

    use crate::write_back::testing::{object, write};

    /// R5: what core copies from an infrastructure machine.
    #[test]
    fn a_machine_reports_provider_id_addresses_and_failure_domain() {
        let answer = Answer::Machine(MachineAnswer {
            provisioned: true,
            provider_id: Some("docker:////t".into()),
            addresses: vec![Address { kind: "InternalIP".into(), value: "10.0.0.2".into() }],
            failure_domain: Some("fd4".into()),
        });
        let machine = write(Role::InfrastructureMachine, Contract::V1Beta2, &object(), Ok(answer), &Outcome::default())
            .desired
            .unwrap();
        assert_eq!(machine["spec"]["providerID"], "docker:////t");
        assert_eq!(machine["status"]["addresses"], json!([{"type": "InternalIP", "address": "10.0.0.2"}]));
        assert_eq!(machine["status"]["failureDomain"], "fd4");
    }
}
