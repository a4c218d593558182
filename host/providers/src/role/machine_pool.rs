//! Servers managed as a group, such as an autoscaling group. They share the bootstrap data of their MachinePool.

use async_trait::async_trait;
use capwasm_api::contract::Contract;
use capwasm_contract::{Answer, Function, PoolAnswer};
use capwasm_reconcile::CacheError;
use serde_json::{Value, json};

use super::{Functions, Rules};
use crate::belongings::{Belongings, Owner, Waiting, there};
use crate::draft::Draft;
use crate::field::{Field, READY, provisioned};
use crate::layout::{Layout, Schema};
use crate::related::Related;

/// Provider IDs of the existing instances.
const PROVIDER_IDS: Field = Field("spec.providerIDList");

pub struct MachinePool;

#[async_trait]
impl Rules for MachinePool {
    fn functions(&self) -> Functions {
        Functions { reconcile: Function::PoolProvision, delete: Function::PoolDeprovision }
    }

    fn owners(&self) -> &'static [Owner] {
        &[Owner::MachinePool]
    }

    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_cluster()?;
        there(belongings.pool.is_some(), "WaitingForMachinePool", "the MachinePool that owns it is not there")?;
        belongings.has_infrastructure()
    }

    fn waits_for_data(&self, object: &Value, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_bootstrap_data(object, "the MachinePool has no bootstrap data")
    }

    async fn relate(&self, related: &mut Related<'_>, cluster: &Value) -> Result<(), CacheError> {
        related.infrastructure_cluster(cluster).await
    }

    fn layout(&self, schema: &Schema<'_>, common: Layout) -> Layout {
        let newer = provisioned(Contract::V1Beta2);
        // Pools of the newer contract that have `ready` only: upstream's own among them.
        let older = common.contract == Contract::V1Beta2 && !schema.declares("status.initialization");
        let mut flags = if older { vec![READY] } else { common.provisioned };
        // Upstream's core looks for `ready` of pools in either contract (up to 1.14).
        if schema.declares(READY.0) && !flags.contains(&READY) {
            flags.push(READY);
        }
        Layout { provisioned: flags, latches: vec![READY, newer], ..common }
    }

    fn answer(&self, draft: &mut Draft<'_>, _: &Belongings, answer: &Answer) {
        let Answer::Pool(PoolAnswer { provisioned, provider_ids, replicas }) = answer else { return };
        // An empty list where there was none would be a write for nothing.
        let had = PROVIDER_IDS.get(draft.object).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !provider_ids.is_empty() || had {
            draft.set(PROVIDER_IDS, json!(provider_ids));
        }
        draft.set_status("replicas", *replicas);
        draft.provisioned(*provisioned);
        draft.observed_generation();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use capwasm_api::contract::Contract;
    use capwasm_contract::descriptor::Role;
    use capwasm_contract::{Answer, Outcome, PoolAnswer};
    use serde_json::json;

    use crate::write_back::Ending;
    use crate::write_back::testing::{kind, object, plan_of, write};

    /// Instances come and go, and readiness latches, in the shape of either contract.
    #[test]
    fn a_pool_is_written_with_what_there_is_now() {
        let pool = |provisioned, ids: &[&str]| {
            let provider_ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            Answer::Pool(PoolAnswer { provisioned, replicas: u32::try_from(ids.len()).unwrap(), provider_ids })
        };
        let role = Role::InfrastructureMachinePool;
        for (contract, ready) in
            [(Contract::V1Beta1, "/status/ready"), (Contract::V1Beta2, "/status/initialization/provisioned")]
        {
            let none = write(role, contract, &object(), Ok(pool(false, &[])), &Outcome::default()).desired.unwrap();
            assert_eq!((none.pointer("/spec/providerIDList"), none.pointer(ready)), (None, None), "{contract:?}");
            assert_eq!(none["status"]["replicas"], 0);
            let two = write(role, contract, &none, Ok(pool(true, &["a", "b"])), &Outcome::default()).desired.unwrap();
            assert_eq!(two["spec"]["providerIDList"], json!(["a", "b"]));
            assert_eq!(
                (&two["status"]["replicas"], two.pointer(ready)),
                (&json!(2), Some(&json!(true))),
                "{contract:?}"
            );
            let empty = write(role, contract, &two, Ok(pool(false, &[])), &Outcome::default()).desired.unwrap();
            assert_eq!(empty["spec"]["providerIDList"], json!([]), "what is gone leaves the list");
            assert_eq!(empty.pointer(ready), Some(&json!(true)), "{contract:?}: what latched stays");
            assert_eq!(empty["status"]["observedGeneration"], 4, "with the change of the list");
        }
        let mut upstream = kind(role);
        upstream.crd = json!({"spec": {"versions": [{"name": "v1beta2", "schema": {"openAPIV3Schema": {"properties": {
            "status": {"properties": {"ready": {}, "replicas": {}}}}}}}]}});
        let answer = Ok(pool(true, &["a"]));
        let nothing = Outcome::default();
        let ending = Ending::Replied(&answer, &nothing);
        let written = plan_of(upstream, Contract::V1Beta2, &object(), ending).desired.unwrap();
        assert_eq!((&written["status"]["ready"], written["status"].get("initialization")), (&json!(true), None));
    }
}
