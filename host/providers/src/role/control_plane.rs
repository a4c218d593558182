//! The Machines that run API servers, or something outside that is an API server.

use async_trait::async_trait;
use capwasm_api::contract::Contract;
use capwasm_contract::{Answer, Function};
use capwasm_object::{json, meta};
use capwasm_reconcile::CacheError;
use capwasm_runtime::Grants;
use serde_json::Value;

use super::{Functions, Rules};
use crate::belongings::{Belongings, Owner, Waiting};
use crate::draft::Draft;
use crate::field::{ENDPOINT_HOST, ENDPOINT_PORT, READY, initialized};
use crate::layout::{Layout, Schema, Summary};
use crate::related::Related;

/// What follows the Cluster's name in the names of its Secrets.
const OWN_SECRETS: [&str; 5] = ["ca", "etcd", "proxy", "sa", "kubeconfig"];

pub struct ControlPlane;

/// Whether the object is the Cluster's control plane.
fn is_of(cluster: &Value, object: &Value) -> bool {
    let named = |field: &str| json::text(cluster, &format!("/spec/controlPlaneRef/{field}"));
    (named("apiGroup"), named("kind"), named("name"))
        == (Some(meta::group(object)), Some(meta::kind(object)), Some(meta::name(object)))
}

#[async_trait]
impl Rules for ControlPlane {
    fn functions(&self) -> Functions {
        Functions { reconcile: Function::ControlPlaneReconcile, delete: Function::ControlPlaneDelete }
    }

    fn owners(&self) -> &'static [Owner] {
        &[Owner::Cluster]
    }

    /// Everything else is up to the control plane provider.
    fn waits(&self, belongings: &Belongings) -> Result<(), Waiting> {
        belongings.has_cluster()
    }

    /// As upstream has it, where the provider may open them: the kubeconfig, and keys that no user brought along.
    fn own_secrets(&self, object: &Value, belongings: &Belongings, grants: &Grants) -> Vec<String> {
        let Some(cluster) = belongings.cluster.as_deref().filter(|cluster| is_of(cluster, object)) else {
            return Vec::new();
        };
        let names = OWN_SECRETS.into_iter().map(|purpose| format!("{}-{purpose}", meta::name(cluster)));
        names.filter(|name| grants.covers_secret(name)).collect()
    }

    async fn relate(&self, related: &mut Related<'_>, cluster: &Value) -> Result<(), CacheError> {
        related.infrastructure_cluster(cluster).await
    }

    fn layout(&self, schema: &Schema<'_>, common: Layout) -> Layout {
        Layout {
            summary: Summary::Available,
            // v1beta1's `ready` comes and goes.
            latches: vec![ENDPOINT_HOST, ENDPOINT_PORT, initialized(common.contract)],
            endpoint: schema.declares("spec.controlPlaneEndpoint"),
            ..common
        }
    }

    fn answer(&self, draft: &mut Draft<'_>, _: &Belongings, answer: &Answer) {
        let Answer::ControlPlane(state) = answer else { return };
        let contract = draft.layout.contract;
        draft.endpoint(state.endpoint.as_ref());
        draft.set_status("replicas", state.replicas);
        draft.set_status("readyReplicas", state.ready);
        match contract {
            Contract::V1Beta1 => {
                draft.set_status("updatedReplicas", state.up_to_date);
                draft.set_status("unavailableReplicas", state.replicas.saturating_sub(state.available));
            }
            Contract::V1Beta2 => {
                draft.set_status("availableReplicas", state.available);
                draft.set_status("upToDateReplicas", state.up_to_date);
            }
        }
        if !state.selector.is_empty() {
            draft.set_status("selector", state.selector.as_str());
        }
        if let Some(version) = &state.version {
            draft.set_status("version", version.as_str());
        }
        if state.initialized {
            draft.set(initialized(contract), true);
            if contract == Contract::V1Beta1 {
                draft.set(READY, state.ready > 0);
            }
        }
        draft.observed_generation();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use capwasm_api::contract::Contract;
    use capwasm_contract::descriptor::Role;
    use capwasm_contract::{Answer, ControlPlaneAnswer, Outcome};
    use serde_json::json;

    use std::sync::Arc;

    use super::*;
    use crate::write_back::testing::{object, write};

    #[test]
    fn a_cluster_s_keys_belong_to_its_own_control_plane_as_far_as_the_provider_may_open_them() {
        let of = |kind: &str, name: &str| {
            json!({"metadata": {"name": "c"}, "spec": {"controlPlaneRef":
                {"apiGroup": "infrastructure.example", "kind": kind, "name": name}}})
        };
        let all = ["*-ca", "*-etcd", "*-proxy", "*-sa", "*-apiserver-etcd-client", "*-kubeconfig"];
        let rows = [
            ("all", Some(of("Thing", "t")), &all[..], "c-ca c-etcd c-proxy c-sa c-kubeconfig"),
            ("some are granted", Some(of("Thing", "t")), &["c-kubeconfig", "d-ca"], "c-kubeconfig"),
            ("none is", Some(of("Thing", "t")), &[], ""),
            ("another control plane's", Some(of("Thing", "u")), &all, ""),
            ("of another kind", Some(of("Other", "t")), &all, ""),
            ("no Cluster", None, &all, ""),
        ];
        for (what, cluster, granted, expected) in rows {
            let belongings = Belongings { cluster: cluster.map(Arc::new), ..Belongings::default() };
            let secrets = granted.iter().map(|name| (*name).to_owned()).collect();
            let grants = Grants { secrets, ..Grants::default() };
            assert_eq!(ControlPlane.own_secrets(&object(), &belongings, &grants).join(" "), expected, "{what}");
        }
    }

    /// R7: what core reads of a control plane.
    #[test]
    fn a_control_plane_reports_counters_and_initialization() {
        let state = ControlPlaneAnswer {
            initialized: true,
            endpoint: None,
            version: Some("v1.36.0".into()),
            replicas: 3,
            ready: 2,
            available: 1,
            up_to_date: 3,
            selector: "a=b".into(),
        };
        let mut status = write(
            Role::ControlPlane,
            Contract::V1Beta2,
            &object(),
            Ok(Answer::ControlPlane(state)),
            &Outcome::default(),
        )
        .desired
        .unwrap();
        let conditions = status["status"]["conditions"].take();
        assert_eq!(
            conditions.as_array().unwrap().len(),
            1,
            "what else it says of itself is the provider's: {conditions}"
        );
        assert_eq!(conditions[0]["type"], "Paused");
        status["status"].as_object_mut().unwrap().remove("conditions");
        assert_eq!(
            status["status"],
            json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "upToDateReplicas": 3, "selector": "a=b",
                "version": "v1.36.0", "initialization": {"controlPlaneInitialized": true}, "observedGeneration": 3})
        );
    }
}
