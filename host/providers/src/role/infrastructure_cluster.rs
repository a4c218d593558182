//! The network, load balancer and whatever else the machines of a Cluster stand in.

use async_trait::async_trait;
use capwasm_api::contract::Contract;
use capwasm_contract::{Answer, ClusterAnswer, FailureDomain, Function};
use capwasm_object::meta;
use capwasm_reconcile::CacheError;
use capwasm_reconcile::interests::Fields;
use serde_json::{Map, Value};

use super::{Functions, Rules};
use crate::belongings::{Belongings, Owner, Waiting};
use crate::draft::Draft;
use crate::field::{ENDPOINT_HOST, ENDPOINT_PORT, Field};
use crate::layout::{Layout, Schema};
use crate::related::Related;

/// Annotation of externally managed infrastructure clusters.
const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";

/// A map by name in v1beta1, a list in v1beta2.
const FAILURE_DOMAINS: Field = Field("status.failureDomains");

/// Of a Cluster, all that it does not have from this very object, as it has endpoint, failure domains and the news that they are there.
const OF_CLUSTER: Fields = &[
    "/metadata/deletionTimestamp",
    "/metadata/annotations",
    "/metadata/labels",
    "/spec/availabilityGates",
    "/spec/clusterNetwork",
    "/spec/controlPlaneRef",
    "/spec/infrastructureRef",
    "/spec/paused",
    "/spec/topology",
    "/status/initialization/controlPlaneInitialized",
];

pub struct InfrastructureCluster;

#[async_trait]
impl Rules for InfrastructureCluster {
    fn functions(&self) -> Functions {
        Functions { reconcile: Function::ClusterProvision, delete: Function::ClusterDeprovision }
    }

    fn owners(&self) -> &'static [Owner] {
        &[Owner::Cluster]
    }

    fn news_of(&self, _: Owner) -> Fields {
        OF_CLUSTER
    }

    fn is_left_alone(&self, object: &Value) -> bool {
        meta::annotation(object, MANAGED_BY).is_some()
    }

    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_cluster()
    }

    async fn relate(&self, related: &mut Related<'_>, cluster: &Value) -> Result<(), CacheError> {
        related.machines(cluster).await
    }

    fn layout(&self, _: &Schema<'_>, common: Layout) -> Layout {
        let latches = [ENDPOINT_HOST, ENDPOINT_PORT].into_iter().chain(common.provisioned_latches()).collect();
        Layout { latches, ..common }
    }

    fn answer(&self, draft: &mut Draft<'_>, _: &Belongings, answer: &Answer) {
        let Answer::Cluster(ClusterAnswer { provisioned, endpoint, failure_domains }) = answer else { return };
        draft.endpoint(endpoint.as_ref());
        draft.set(FAILURE_DOMAINS, domains(draft.layout.contract, failure_domains));
        draft.provisioned(*provisioned);
    }
}

/// Failure domains in the contract's form; null without any.
fn domains(contract: Contract, domains: &[FailureDomain]) -> Value {
    let entry = |domain: &FailureDomain| {
        let mut entry = Map::from_iter([("controlPlane".to_owned(), domain.control_plane.into())]);
        if !domain.attributes.is_empty() {
            let attributes = domain.attributes.iter().map(|(key, value)| (key.clone(), value.clone().into()));
            entry.insert("attributes".to_owned(), Value::Object(attributes.collect()));
        }
        entry
    };
    match contract {
        _ if domains.is_empty() => Value::Null,
        Contract::V1Beta1 => {
            Value::Object(domains.iter().map(|domain| (domain.name.clone(), entry(domain).into())).collect())
        }
        Contract::V1Beta2 => {
            let named = |domain: &FailureDomain| {
                let mut entry = entry(domain);
                entry.insert("name".to_owned(), domain.name.clone().into());
                Value::Object(entry)
            };
            domains.iter().map(named).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use capwasm_api::conditions;
    use capwasm_api::contract::Contract;
    use capwasm_contract::Outcome;
    use capwasm_contract::descriptor::Role;
    use serde_json::{Value, json};

    use crate::write_back::testing::{cluster, object, older, write, write_older};

    /// C11, C12: endpoint and readiness by contract version.
    #[test]
    fn an_infrastructure_cluster_is_written_in_the_shape_of_its_contract() {
        let new = write(
            Role::InfrastructureCluster,
            Contract::V1Beta2,
            &object(),
            Ok(cluster(true, "10.0.0.1")),
            &Outcome::default(),
        );
        let new = new.desired.unwrap();
        assert_eq!(new["spec"]["controlPlaneEndpoint"], json!({"host": "10.0.0.1", "port": 6443}));
        assert_eq!(new["status"]["initialization"], json!({"provisioned": true}));
        assert_eq!(
            new["status"]["failureDomains"],
            json!([{"name": "fd1", "controlPlane": true, "attributes": {"zone": "a"}}])
        );
        assert!(conditions::is_true(&new, "Ready"));

        let old = write(
            Role::InfrastructureCluster,
            Contract::V1Beta1,
            &object(),
            Ok(cluster(true, "10.0.0.1")),
            &Outcome::default(),
        );
        let old = old.desired.unwrap();
        assert_eq!(old["status"]["ready"], json!(true));
        assert_eq!(
            old["status"]["failureDomains"],
            json!({"fd1": {"controlPlane": true, "attributes": {"zone": "a"}}})
        );
        assert_eq!(old["status"]["initialization"], Value::Null);
        let ready = &old["status"]["conditions"][0];
        assert_eq!(
            (ready["type"].as_str(), ready["status"].as_str(), ready.get("reason")),
            (Some("Ready"), Some("True"), None)
        );
    }

    /// Go writes an endpoint that is not known yet as an empty host and port 0.
    #[test]
    fn an_empty_endpoint_is_none_and_does_not_latch() {
        let mut object = object();
        object["spec"]["controlPlaneEndpoint"] = json!({"host": "", "port": 0});
        let answer = Ok(cluster(true, "10.0.0.1"));
        let plan = write(Role::InfrastructureCluster, Contract::V1Beta2, &object, answer, &Outcome::default());
        assert_eq!(plan.desired.unwrap()["spec"]["controlPlaneEndpoint"], json!({"host": "10.0.0.1", "port": 6443}));
    }

    #[test]
    fn a_v1beta1_kind_with_both_words_for_provisioned_gets_both_and_keeps_them() {
        let of = older(Role::InfrastructureCluster, "v1beta1", "v1beta1");
        assert_eq!(of.1, Contract::V1Beta1);
        let not_yet = write_older(&of, &object(), Ok(cluster(false, "h")), &Outcome::default());
        assert_eq!((&not_yet["ready"], not_yet.get("initialization")), (&json!(false), None));
        assert_eq!(not_yet["failureDomains"], json!({"fd1": {"controlPlane": true, "attributes": {"zone": "a"}}}));
        let condition = |status: &Value| status["conditions"][0].clone();
        let (kind, reason) = (&condition(&not_yet)["severity"], &condition(&not_yet)["reason"]);
        assert_eq!((kind, reason), (&json!("Info"), &json!("NotReady")));

        let done = write_older(&of, &object(), Ok(cluster(true, "h")), &Outcome::default());
        assert_eq!((&done["ready"], &done["initialization"]["provisioned"]), (&json!(true), &json!(true)));
        assert_eq!(
            condition(&done),
            json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        );
        let mut provisioned = object();
        provisioned["status"] = done.clone();
        let cleared = Outcome { status: vec![json!({"ready": null, "initialization": null})], ..Outcome::default() };
        let again = write_older(&of, &provisioned, Ok(cluster(false, "h")), &cleared);
        assert_eq!((&again["ready"], &again["initialization"]["provisioned"]), (&json!(true), &json!(true)));
        assert_eq!(
            write_older(&of, &provisioned, Ok(cluster(true, "h")), &Outcome::default()),
            done,
            "no write for nothing"
        );
    }
}
