//! Gates before a call: owner, pause, readiness, finalizer. Pure; the tests have the contract's table.
//!
//! A gate never reads what the provider owns: a closed gate means that the guest is not called.

use capwasm_object::{json, meta};
use serde_json::Value;

use crate::belongings::{Belongings, Waiting};
use crate::role::Rules;

/// What a pass may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write nothing: the object has no owner yet, or is externally managed.
    Ignore,
    /// Report the pause.
    Paused,
    /// Report what it waits for.
    Waiting(Waiting),
    /// Add this finalizer before the first side effect.
    Finalize(String),
    /// Call the provider to reconcile.
    Provision,
    /// Call the provider to delete.
    Deprovision,
    /// Do nothing: the object is being deleted without our finalizer.
    Leave,
}

/// The first of `finalizers` is the provider's own; the others are taken over from earlier controllers.
pub fn decide(rules: &dyn Rules, finalizers: &[String], object: &Value, belongings: &Belongings) -> Decision {
    let cluster_paused = |cluster: &Value| json::flag(cluster, "/spec/paused") == Some(true);
    let paused =
        meta::annotation(object, PAUSED).is_some() || belongings.cluster.as_deref().is_some_and(cluster_paused);
    let held = json::items(object, "/metadata/finalizers");
    let holds = |finalizer: &String| held.iter().any(|entry| entry.as_str() == Some(finalizer));
    if meta::is_deleting(object) {
        return match (finalizers.iter().any(holds), paused) {
            (false, _) => Decision::Leave,
            (true, true) => Decision::Paused,
            (true, false) => Decision::Deprovision,
        };
    }
    if rules.is_left_alone(object) || !(belongings.owned || rules.owners().is_empty()) {
        return Decision::Ignore;
    }
    if paused {
        return Decision::Paused;
    }
    if let Err(waiting) = rules.waits(belongings) {
        return Decision::Waiting(waiting);
    }
    if let Some(own) = finalizers.first().filter(|own| !holds(own)) {
        return Decision::Finalize(own.clone());
    }
    match rules.waits_for_data(object, belongings) {
        Err(waiting) => Decision::Waiting(waiting),
        Ok(()) => Decision::Provision,
    }
}

/// Annotation that pauses one object.
const PAUSED: &str = "cluster.x-k8s.io/paused";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use capwasm_contract::descriptor::Role;
    use serde_json::json;

    use super::*;
    use crate::role::rules;

    const OURS: &str = "docker.example/finalizer";

    fn of_role(role: Role, object: &Value, belongings: &Belongings) -> Decision {
        decide(rules(role).unwrap(), &[OURS.to_owned()], object, belongings)
    }

    fn finalize() -> Decision {
        Decision::Finalize(OURS.to_owned())
    }

    fn waiting(reason: &'static str, message: &'static str) -> Decision {
        Decision::Waiting(Waiting { reason, message })
    }

    fn object(held: bool, deleting: bool, paused: bool) -> Value {
        let mut object = json!({"metadata": {"name": "a"}});
        if held {
            object["metadata"]["finalizers"] = json!([OURS]);
        }
        if deleting {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        if paused {
            object["metadata"]["annotations"] = json!({PAUSED: ""});
        }
        object
    }

    /// C2, C9, C13, M1, R4a, G2: every row of the gate.
    #[test]
    fn gates_stand_before_every_call() {
        let ready = json!({"status": {"initialization": {"infrastructureProvisioned": true}}});
        let unready = json!({"status": {}});
        let paused =
            json!({"spec": {"paused": true}, "status": {"initialization": {"infrastructureProvisioned": true}}});
        let with_data = json!({"spec": {"bootstrap": {"dataSecretName": "s"}}});
        let without_data = json!({"spec": {"bootstrap": {}}});
        let some = |object: Option<&Value>| object.cloned().map(Arc::new);
        let owned = |cluster, machine| Belongings {
            machine: some(machine),
            cluster: some(cluster),
            owned: true,
            ..Belongings::default()
        };
        let (ic, im, bs, cp) =
            (Role::InfrastructureCluster, Role::InfrastructureMachine, Role::Bootstrap, Role::ControlPlane);
        let rows = [
            (
                "C2: without an owner nothing happens",
                ic,
                object(false, false, false),
                Belongings::default(),
                Decision::Ignore,
            ),
            (
                "a machine without an owner is left alone",
                im,
                object(false, false, false),
                Belongings::default(),
                Decision::Ignore,
            ),
            (
                "an owner that cannot be read is waited for",
                ic,
                object(false, false, false),
                owned(None, None),
                waiting("WaitingForCluster", "the Cluster that it belongs to is not there"),
            ),
            (
                "C9: a paused Cluster stops its infrastructure",
                ic,
                object(true, false, false),
                owned(Some(&paused), None),
                Decision::Paused,
            ),
            (
                "C9: a paused object is left alone",
                ic,
                object(true, false, true),
                owned(Some(&ready), None),
                Decision::Paused,
            ),
            (
                "C9: also when its Cluster is not there",
                ic,
                object(true, false, true),
                owned(None, None),
                Decision::Paused,
            ),
            (
                "C13: the finalizer comes before the first effect",
                ic,
                object(false, false, false),
                owned(Some(&unready), None),
                finalize(),
            ),
            (
                "an infrastructure cluster needs no readiness",
                ic,
                object(true, false, false),
                owned(Some(&unready), None),
                Decision::Provision,
            ),
            (
                "a control plane decides by itself what it waits for",
                cp,
                object(true, false, false),
                owned(Some(&unready), None),
                Decision::Provision,
            ),
            (
                "a machine waits for the cluster's infrastructure (R1)",
                im,
                object(true, false, false),
                owned(Some(&unready), Some(&with_data)),
                waiting("WaitingForClusterInfrastructureReady", "the Cluster's infrastructure is not provisioned"),
            ),
            (
                "R4a: a machine waits for bootstrap data",
                im,
                object(true, false, false),
                owned(Some(&ready), Some(&without_data)),
                waiting("WaitingForBootstrapData", "the Machine has no bootstrap data"),
            ),
            (
                "G2: with bootstrap data the machine is made",
                im,
                object(true, false, false),
                owned(Some(&ready), Some(&with_data)),
                Decision::Provision,
            ),
            (
                "R3: bootstrap data waits for the cluster's infrastructure",
                bs,
                object(true, false, false),
                owned(Some(&unready), Some(&without_data)),
                waiting("WaitingForClusterInfrastructureReady", "the Cluster's infrastructure is not provisioned"),
            ),
            (
                "R3: then it is generated",
                bs,
                object(true, false, false),
                owned(Some(&ready), Some(&without_data)),
                Decision::Provision,
            ),
            ("deletion needs no owner", im, object(true, true, false), Belongings::default(), Decision::Deprovision),
            ("deletion waits while paused", im, object(true, true, true), Belongings::default(), Decision::Paused),
            (
                "what has no finalizer of ours is not ours to delete",
                im,
                object(false, true, false),
                owned(Some(&ready), None),
                Decision::Leave,
            ),
        ];
        for (name, role, object, belongings, expected) in rows {
            assert_eq!(of_role(role, &object, &belongings), expected, "{name}");
        }
    }

    /// Nobody has to own it, and a Cluster that is named may not be there; pausing holds it all the same.
    #[test]
    fn a_controllers_object_needs_no_owner() {
        let (ready, paused) = (json!({}), json!({"spec": {"paused": true}}));
        let of =
            |cluster: Option<&Value>| Belongings { cluster: cluster.cloned().map(Arc::new), ..Belongings::default() };
        let rows = [
            ("nobody's", object(true, false, false), of(None), Decision::Provision),
            ("of a Cluster that is not provisioned", object(true, false, false), of(Some(&ready)), Decision::Provision),
            ("the finalizer first", object(false, false, false), of(None), finalize()),
            ("paused", object(true, false, true), of(None), Decision::Paused),
            ("of a paused Cluster", object(true, false, false), of(Some(&paused)), Decision::Paused),
            ("deleted", object(true, true, false), of(None), Decision::Deprovision),
            ("deleted while its Cluster is paused", object(true, true, false), of(Some(&paused)), Decision::Paused),
            ("deleted, and not ours", object(false, true, false), of(None), Decision::Leave),
        ];
        for (name, object, belongings, expected) in rows {
            assert_eq!(of_role(Role::Controller, &object, &belongings), expected, "{name}");
        }
        let free = object(false, false, false);
        let controller = rules(Role::Controller).unwrap();
        assert_eq!(decide(controller, &[], &free, &of(None)), Decision::Provision, "without a finalizer");
    }

    /// G8, G12: a template is never an instance.
    #[test]
    fn a_template_has_no_gate_to_pass() {
        assert!(rules(Role::Template).is_none());
    }

    #[test]
    fn an_externally_managed_infrastructure_cluster_is_left_alone() {
        let mut infra = object(true, false, false);
        infra["metadata"]["annotations"] = json!({"cluster.x-k8s.io/managed-by": "somebody"});
        let belongings = Belongings { cluster: Some(Arc::new(json!({}))), owned: true, ..Belongings::default() };
        assert_eq!(of_role(Role::InfrastructureCluster, &infra, &belongings), Decision::Ignore);
    }

    #[test]
    fn a_kind_without_finalizers_is_provisioned_and_left_when_deleted() {
        let cluster = json!({"status": {"initialization": {"infrastructureProvisioned": true}}});
        let machine = Some(Arc::new(json!({})));
        let belongings = Belongings { machine, cluster: Some(Arc::new(cluster)), owned: true, ..Belongings::default() };
        let bootstrap = rules(Role::Bootstrap).unwrap();
        assert_eq!(decide(bootstrap, &[], &object(false, false, false), &belongings), Decision::Provision);
        assert_eq!(decide(bootstrap, &[], &object(false, true, false), &belongings), Decision::Leave);
    }

    /// Pools stand behind the same gates as machines, with the MachinePool in the Machine's place.
    #[test]
    fn pools_wait_for_their_machine_pool_the_cluster_and_bootstrap_data() {
        let ready = json!({"status": {"initialization": {"infrastructureProvisioned": true}}});
        let with_data = json!({"spec": {"template": {"spec": {"bootstrap": {"dataSecretName": "s"}}}}});
        let without = json!({"spec": {"template": {"spec": {"bootstrap": {}}}}});
        let shared = json!({"spec": {"bootstrap": {"dataSecretName": ""}}});
        let unready = json!({});
        let some = |object: Option<&Value>| object.cloned().map(Arc::new);
        let of = |cluster, machine, pool| Belongings {
            machine: some(machine),
            pool: some(pool),
            cluster: some(cluster),
            owned: true,
            ..Belongings::default()
        };
        let held = || object(true, false, false);
        let mut provisioned = held();
        provisioned["status"] = json!({"initialization": {"provisioned": true}});
        let (pool, machine, bootstrap) =
            (Role::InfrastructureMachinePool, Role::InfrastructureMachine, Role::Bootstrap);
        let rows = [
            ("no owner", pool, held(), Belongings::default(), Decision::Ignore),
            (
                "owner not there",
                pool,
                held(),
                of(Some(&ready), None, None),
                waiting("WaitingForMachinePool", "the MachinePool that owns it is not there"),
            ),
            (
                "infrastructure not ready",
                pool,
                held(),
                of(Some(&unready), None, Some(&with_data)),
                waiting("WaitingForClusterInfrastructureReady", "the Cluster's infrastructure is not provisioned"),
            ),
            (
                "finalizer first",
                pool,
                object(false, false, false),
                of(Some(&ready), None, Some(&with_data)),
                finalize(),
            ),
            (
                "no data",
                pool,
                held(),
                of(Some(&ready), None, Some(&without)),
                waiting("WaitingForBootstrapData", "the MachinePool has no bootstrap data"),
            ),
            ("data is there", pool, held(), of(Some(&ready), None, Some(&with_data)), Decision::Provision),
            ("a pool that stands", pool, provisioned, of(Some(&ready), None, Some(&without)), Decision::Provision),
            ("deletion", pool, object(true, true, false), Belongings::default(), Decision::Deprovision),
            (
                "a machine of a pool has the pool's data",
                machine,
                held(),
                of(Some(&ready), Some(&shared), Some(&with_data)),
                Decision::Provision,
            ),
            (
                "a machine of a pool without data waits",
                machine,
                held(),
                of(Some(&ready), Some(&shared), Some(&without)),
                waiting("WaitingForBootstrapData", "the Machine has no bootstrap data"),
            ),
            (
                "a configuration may belong to a pool",
                bootstrap,
                held(),
                of(Some(&ready), None, Some(&without)),
                Decision::Provision,
            ),
            (
                "a configuration whose owner is not there waits",
                bootstrap,
                held(),
                of(Some(&ready), None, None),
                waiting("WaitingForMachine", "the Machine or MachinePool that owns it is not there"),
            ),
        ];
        for (name, role, object, belongings, expected) in rows {
            assert_eq!(of_role(role, &object, &belongings), expected, "{name}");
        }
    }
}
