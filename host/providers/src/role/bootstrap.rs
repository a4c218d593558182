//! What a machine runs to become a Node: generated once for a Machine, again and again for a MachinePool, whose later instances
//! need a token that still holds.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_api::names::{SECRET_TYPE, labels::CLUSTER_NAME};
use capwasm_contract::{Answer, BootstrapData, Fault, Function};
use capwasm_object::{meta, owners};
use capwasm_reconcile::interests::Fields;
use capwasm_reconcile::{Action, CacheError, Operation};
use capwasm_runtime::Grants;
use serde_json::{Value, json};

use super::{Functions, Rules};
use crate::belongings::{Belongings, OF_OTHERS_MACHINE, Owner, Waiting, there};
use crate::draft::Draft;
use crate::field::{DATA_SECRET_NAME, data_secret_created};
use crate::layout::{Layout, Schema};
use crate::reads::may_be_of_a_cluster;
use crate::related::Related;

pub struct Bootstrap;

#[async_trait]
impl Rules for Bootstrap {
    fn functions(&self) -> Functions {
        Functions { reconcile: Function::BootstrapGenerate, delete: Function::BootstrapRelease }
    }

    fn owners(&self) -> &'static [Owner] {
        &[Owner::Machine, Owner::MachinePool]
    }

    fn news_of(&self, owner: Owner) -> Fields {
        match owner {
            // Its bootstrap data is what it has from this very object.
            Owner::Machine => OF_OTHERS_MACHINE,
            Owner::Cluster | Owner::MachinePool => owner.news(),
        }
    }

    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_cluster()?;
        there(
            belongings.machine.is_some() || belongings.pool.is_some(),
            "WaitingForMachine",
            "the Machine or MachinePool that owns it is not there",
        )?;
        belongings.has_infrastructure()
    }

    async fn relate(&self, related: &mut Related<'_>, cluster: &Value) -> Result<(), CacheError> {
        related.control_plane(cluster).await
    }

    fn layout(&self, _: &Schema<'_>, common: Layout) -> Layout {
        Layout {
            latches: vec![DATA_SECRET_NAME, data_secret_created(common.contract)],
            // Whoever names the data Secret says what machines get for bootstrap data, and what the host writes over: that is
            // the Secret that the host made, no other.
            reserved: &["conditions", "dataSecretName"],
            ..common
        }
    }

    fn own_secrets(&self, object: &Value, _: &Belongings, _: &Grants) -> Vec<String> {
        let own = self.named_secret(object).map(|_| meta::name(object));
        own.filter(|own| !may_be_of_a_cluster(own)).map(str::to_owned).into_iter().collect()
    }

    fn named_secret<'a>(&self, object: &'a Value) -> Option<&'a str> {
        DATA_SECRET_NAME.text(object)
    }

    fn operation(&self, object: &Value, belongings: &Belongings, answer: &Answer) -> Option<Operation> {
        let Answer::Bootstrap(Some(data)) = answer else { return None };
        let made = data_secret(object, belongings);
        let secret = secret(object, made.unwrap_or(meta::name(object)), data);
        let action = if belongings.is_of_pool() && made.is_some() {
            // It was made for this object, so nothing of somebody else's is replaced.
            Action::Apply { object: secret, manager: "capwasm".into(), force: true }
        } else {
            Action::Create(secret)
        };
        Some(Operation::management("bootstrap-data", action))
    }

    fn answer(&self, draft: &mut Draft<'_>, belongings: &Belongings, answer: &Answer) {
        let Answer::Bootstrap(data) = answer else { return };
        let announced = DATA_SECRET_NAME.text(draft.object);
        if data.is_some() || announced.is_some() {
            let kept = announced.filter(|_| data.is_none());
            let made = data_secret(draft.object, belongings).or(kept).unwrap_or(meta::name(draft.object));
            draft.correct(DATA_SECRET_NAME, made);
            draft.set(data_secret_created(draft.layout.contract), true);
            draft.summary(Some(true), "Ready", "", None);
        } else {
            draft.summary(Some(false), "WaitingForBootstrapData", "", Some(Fault::Waiting));
        }
    }
}

/// Name of the Secret that the host made for an object that announces one. What is announced may have been edited: then it is the
/// one that is named like the object. `None` when there is neither. One that nobody controls counts as made, as its owner reference may
/// have been stripped, unless its name is that of a Secret of a cluster.
fn data_secret<'a>(object: &'a Value, belongings: &Belongings) -> Option<&'a str> {
    let (announced, own) = (DATA_SECRET_NAME.text(object)?, meta::name(object));
    let is_made = |name: &str| {
        belongings.secret(name).is_some_and(|secret| match owners::controller_uid(secret) {
            Some(controller) => controller == meta::uid(object),
            None => name == own && !may_be_of_a_cluster(own),
        })
    };
    if is_made(announced) || announced == own && belongings.secret(own).is_none() {
        return Some(announced);
    }
    is_made(own).then_some(own)
}

fn secret(object: &Value, name: &str, data: &BootstrapData) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": meta::namespace(object),
            "labels": {(CLUSTER_NAME): meta::label(object, CLUSTER_NAME).unwrap_or_default()},
            "ownerReferences": [owners::reference_to(object, true)],
        },
        "type": SECRET_TYPE,
        "data": {"value": STANDARD.encode(&data.value), "format": STANDARD.encode(data.format.as_str().as_bytes())},
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::Rules;
    use capwasm_api::contract::Contract;
    use capwasm_contract::descriptor::Role;
    use capwasm_contract::{Answer, BootstrapData, Outcome};
    use capwasm_object::meta;
    use capwasm_reconcile::{Action, ClusterId, Place};
    use serde_json::json;

    use std::sync::Arc;

    use crate::write_back::testing::{object, write, write_with};

    /// R3, G9: one Secret per configuration, owned by it, named in the status.
    #[test]
    fn bootstrap_data_becomes_a_secret_after_the_other_operations() {
        let data = BootstrapData { format: "cloud-config".into(), value: b"#cloud-config".to_vec() };
        let outcome = Outcome {
            operations: vec![capwasm_contract::Operation::Create {
                key: "token".into(),
                place: capwasm_contract::Place::Workload,
                object: json!({}),
            }],
            ..Outcome::default()
        };
        let plan = write(Role::Bootstrap, Contract::V1Beta2, &object(), Ok(Answer::Bootstrap(Some(data))), &outcome);
        let keys: Vec<_> = plan.operations.iter().map(|operation| operation.key.as_str()).collect();
        assert_eq!(keys, ["token", "bootstrap-data"]);
        assert_eq!(plan.operations[0].place, Place::Workload(ClusterId::new("ns", "c")));
        let Action::Create(secret) = &plan.operations[1].action else { panic!("not a create") };
        assert_eq!(
            (secret["metadata"]["name"].as_str(), secret["type"].as_str()),
            (Some("t"), Some("cluster.x-k8s.io/secret"))
        );
        assert_eq!(secret["data"]["value"], "I2Nsb3VkLWNvbmZpZw==");
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(
            plan.fallback.unwrap().pointer("/status/dataSecretName"),
            None,
            "not announced when the Secret could not be written"
        );
        let status = &plan.desired.unwrap()["status"];
        assert_eq!(
            (status["dataSecretName"].as_str(), status["initialization"]["dataSecretCreated"].as_bool()),
            (Some("t"), Some(true))
        );
    }

    /// Otherwise a provider that has both roles would open any Secret of the namespace, and a pool's data would overwrite it.
    #[test]
    fn a_guest_cannot_name_another_secret_for_its_bootstrap_data() {
        let named = Outcome { status: vec![json!({"dataSecretName": "c-ca", "said": true})], ..Outcome::default() };
        let data = || Some(BootstrapData { format: "cloud-config".into(), value: b"#cloud-config".to_vec() });
        let mut of_pool = object();
        of_pool["metadata"]["ownerReferences"] = json!([{"kind": "MachinePool", "name": "p"}]);
        for object in [object(), of_pool] {
            for contract in [Contract::V1Beta1, Contract::V1Beta2] {
                let without = write(Role::Bootstrap, contract, &object, Ok(Answer::Bootstrap(None)), &named);
                let desired = without.desired.unwrap();
                assert_eq!(
                    (&desired["status"]["said"], desired.pointer("/status/dataSecretName")),
                    (&json!(true), None)
                );
                let with = write(Role::Bootstrap, contract, &object, Ok(Answer::Bootstrap(data())), &named);
                assert_eq!(with.desired.unwrap()["status"]["dataSecretName"], "t");
                let Action::Create(secret) = &with.operations[0].action else { panic!("{:?}", with.operations) };
                assert_eq!(secret["metadata"]["name"], "t");
            }
        }
    }

    /// `c-ca` is a Secret of the cluster, or of another configuration: neither is what this one's machines get.
    #[test]
    fn a_name_that_somebody_wrote_into_the_status_is_mended() {
        let (own, none, anothers) =
            (json!([{"uid": "u", "controller": true}]), json!([]), json!([{"uid": "v", "controller": true}]));
        let rows = [
            ("as it should be", "t", vec![("t", &own)], "t"),
            ("edited", "c-ca", vec![("t", &own), ("c-ca", &anothers)], "t"),
            ("edited to what nobody controls", "c-ca", vec![("t", &own), ("c-ca", &none)], "t"),
            ("edited to what is not there", "x", vec![("t", &own)], "t"),
            ("and the owner was taken away", "x", vec![("t", &none)], "t"),
            ("named otherwise by who made it", "t-data", vec![("t-data", &own)], "t-data"),
            ("its namesake is another's", "t-data", vec![("t-data", &none), ("t", &anothers)], "t-data"),
            ("nobody knows better", "x", vec![], "x"),
        ];
        for (what, announced, secrets, expected) in rows {
            let mut config = object();
            config["metadata"]["ownerReferences"] = json!([{"kind": "Machine"}]);
            config["status"] = json!({"dataSecretName": announced, "initialization": {"dataSecretCreated": true}});
            let metadata = |(name, owners)| Arc::new(json!({"metadata": {"name": name, "ownerReferences": owners}}));
            let secrets: Vec<_> = secrets.into_iter().map(metadata).collect();
            let plan = write_with(secrets.clone(), &config, Answer::Bootstrap(None));
            assert_eq!(plan.desired.unwrap()["status"]["dataSecretName"], expected, "{what}");

            // A pool's data is written over and over: never into a Secret of another's.
            config["metadata"]["ownerReferences"] = json!([{"kind": "MachinePool"}]);
            let data = BootstrapData { format: "cloud-config".into(), value: b"#".to_vec() };
            let plan = write_with(secrets, &config, Answer::Bootstrap(Some(data)));
            let [operation] = plan.operations.as_slice() else { panic!("{what}: one operation") };
            match &operation.action {
                Action::Apply { object, .. } => assert_eq!(meta::name(object), expected, "{what}"),
                Action::Create(object) => assert_eq!(meta::name(object), "t", "{what}"),
                other => panic!("{what}: {other:?}"),
            }
            let applied = matches!(operation.action, Action::Apply { .. });
            assert_eq!(applied, !what.contains("namesake") && !what.contains("nobody knows"), "{what}");
        }
    }

    /// A token of a pool is rotated by new data; a machine's data is what it was made with.
    #[test]
    fn bootstrap_data_is_replaced_for_a_pool_only() {
        let data = || BootstrapData { format: "cloud-config".into(), value: b"#".to_vec() };
        let answer = || Ok(Answer::Bootstrap(Some(data())));
        let rows = [
            ("a machine's first data", "Machine", None, true),
            ("a machine's later data", "Machine", Some("t"), true),
            ("a pool's first data", "MachinePool", None, true),
            ("a pool's later data", "MachinePool", Some("t"), false),
        ];
        for (name, owner, announced, created) in rows {
            let mut config = object();
            config["metadata"]["ownerReferences"] = json!([{"kind": owner}]);
            if let Some(secret) = announced {
                config["status"] = json!({"dataSecretName": secret});
            }
            let plan = write(Role::Bootstrap, Contract::V1Beta2, &config, answer(), &Outcome::default());
            let [operation] = plan.operations.as_slice() else { panic!("{name}: one operation") };
            match &operation.action {
                Action::Create(secret) => assert!(created && meta::name(secret) == "t", "{name}"),
                Action::Apply { object, .. } => assert!(!created && meta::name(object) == "t", "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }

        // A kubeconfig that nobody controls is no data of a configuration that is named like it.
        let mut config = object();
        config["metadata"]["name"] = json!("c-kubeconfig");
        config["metadata"]["ownerReferences"] = json!([{"kind": "MachinePool"}]);
        config["status"] = json!({"dataSecretName": "c-kubeconfig"});
        let kubeconfig = Arc::new(json!({"metadata": {"name": "c-kubeconfig"}}));
        let plan = write_with(vec![kubeconfig], &config, answer().unwrap());
        assert!(matches!(plan.operations[0].action, Action::Create(_)), "the API server refuses it");
        let belongings = crate::belongings::Belongings::default();
        assert!(
            Rules::own_secrets(&super::Bootstrap, &config, &belongings, &Default::default()).is_empty(),
            "and it is not taken"
        );
    }
}
