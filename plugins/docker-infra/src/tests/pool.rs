//! The pool's members are objects: the test plays core's part, which makes a Machine for each, and the members' own.
use capwasm_sdk::test::{TestHost, deprovision_pool, provision_pool, write_back};
use capwasm_sdk::{Fault, ObjectRef, Place, PoolAnswer, Problem, object};
use serde_json::{Value, json};

use crate::Docker;

const API: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

pub struct Pool {
    pub host: TestHost,
    pub object: Value,
}

impl Pool {
    pub fn new(replicas: u32) -> Pool {
        let object = json!({
            "apiVersion": API, "kind": "DockerMachinePool",
            "metadata": {"name": "mp", "namespace": "default", "uid": "pool-uid", "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
            "spec": {"template": {"customImage": "mine:1"}},
        });
        let mut pool = Pool { host: TestHost::new(), object };
        pool.want(replicas, "v1.36.0");
        pool
    }

    fn want(&mut self, replicas: u32, version: &str) {
        let machine_pool = json!({
            "metadata": {"name": "mp", "namespace": "default"},
            "spec": {
                "clusterName": "quick", "replicas": replicas, "failureDomains": ["a", "b"],
                "template": {"spec": {"version": version, "bootstrap": {"dataSecretName": "data"}}},
            },
        });
        self.host.set_related("machine-pool", vec![machine_pool]);
    }

    pub fn pass(&mut self) -> Result<PoolAnswer, Problem> {
        let (result, outcome) = provision_pool::<Docker>(&self.host, &self.object);
        write_back(&outcome, &mut self.object);
        self.host.carry_out(&outcome);
        result
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.host.objects(Place::Management).into_iter().filter(|object| object["kind"] == kind).collect()
    }

    pub fn members(&self) -> Vec<Value> {
        self.of_kind("DockerMachine")
    }

    /// Core makes missing Machines, and takes along members whose Machine is gone; every member becomes a node.
    fn others(&self) {
        for member in self.members() {
            let name = object::name(&member);
            let machine = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "metadata": {"name": name, "namespace": "default", "uid": format!("m-{name}"), "labels": member["metadata"]["labels"]},
                "spec": {"infrastructureRef": {"kind": "DockerMachine", "name": name}},
            });
            let had = member.pointer("/metadata/annotations/had-machine").is_some();
            let has = self.of_kind("Machine").iter().any(|machine| object::name(machine) == name);
            match (had, has) {
                (true, false) => self.host.remove(Place::Management, &ObjectRef::new(API, "DockerMachine", name)),
                (false, _) => {
                    self.host.put(Place::Management, machine);
                    let mut member = member.clone();
                    object::merge(
                        &mut member,
                        &json!({
                            "metadata": {"annotations": {"had-machine": ""}},
                            "spec": {"providerID": format!("docker:////quick-{name}")},
                            "status": {"initialization": {"provisioned": true}, "addresses": [{"type": "InternalIP", "address": "172.18.0.9"}]},
                        }),
                    );
                    self.host.put(Place::Management, member);
                }
                _ => {}
            }
        }
    }

    pub fn settle(&mut self) -> PoolAnswer {
        for _ in 0..20 {
            let answer = self.pass().unwrap();
            if answer.provisioned {
                return answer;
            }
            self.others();
        }
        panic!("not complete: {:#?}", self.members());
    }

    fn annotations(&self, name: &str) -> Vec<String> {
        let members = self.members();
        members.iter().map(|member| object::annotation(member, name).unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn a_pool_makes_its_members_and_is_complete_when_all_are_nodes() {
    let mut pool = Pool::new(3);
    assert!(!pool.pass().unwrap().provisioned);
    assert_eq!(pool.members().len(), 3);
    let member = &pool.members()[0];
    assert_eq!(
        member["metadata"]["labels"],
        json!({"cluster.x-k8s.io/cluster-name": "quick", "cluster.x-k8s.io/pool-name": "mp"})
    );
    assert_eq!(
        (&member["metadata"]["ownerReferences"][0]["uid"], &member["spec"]),
        (&json!("pool-uid"), &json!({"customImage": "mine:1"}))
    );
    let mut domains = pool.annotations("capwasm.dev/failure-domain");
    domains.sort();
    assert_eq!(domains, ["a", "a", "b"], "members are spread");
    let answer = pool.settle();
    assert_eq!((answer.replicas, answer.provider_ids.len()), (3, 3));
    assert!(answer.provider_ids.is_sorted());
    assert_eq!(pool.object["spec"]["providerID"], "docker:////quick-dmp-mp");
    assert_eq!(pool.object["status"]["infrastructureMachineKind"], "DockerMachine");
    let instance = &pool.object["status"]["instances"][0];
    assert_eq!((&instance["ready"], &instance["version"]), (&json!(true), &json!("v1.36.0")));
    assert!(object::is_true(&pool.object, "ReplicasReady"));
    let (_, outcome) = provision_pool::<Docker>(&pool.host, &pool.object);
    assert!(outcome.operations.is_empty() && outcome.events.is_empty(), "a complete pool is left alone");
}

#[test]
fn a_pool_grows_and_shrinks_by_machines() {
    let mut pool = Pool::new(3);
    pool.settle();
    let marked = object::name(&pool.members()[1]).to_owned();
    let mut machine = pool
        .host
        .objects(Place::Management)
        .into_iter()
        .find(|one| one["kind"] == "Machine" && object::name(one) == marked)
        .unwrap();
    object::merge(&mut machine, &json!({"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}}));
    pool.host.put(Place::Management, machine);
    pool.want(2, "v1.36.0");
    assert_eq!(pool.settle().replicas, 2);
    assert!(pool.members().iter().all(|member| object::name(member) != marked), "the marked one went");
    pool.want(4, "v1.36.0");
    assert_eq!(pool.settle().replicas, 4);
}

#[test]
fn another_version_or_template_replaces_every_member() {
    let mut pool = Pool::new(2);
    pool.settle();
    pool.want(2, "v1.36.1");
    pool.settle();
    // The old ones are on their way.
    for _ in 0..6 {
        pool.pass().unwrap();
        pool.others();
    }
    assert_eq!(pool.annotations("capwasm.dev/version"), ["v1.36.1", "v1.36.1"]);
    let before = pool.annotations("capwasm.dev/made-from");
    object::merge(&mut pool.object, &json!({"spec": {"template": {"customImage": "mine:2"}}}));
    for _ in 0..8 {
        pool.pass().unwrap();
        pool.others();
    }
    assert_eq!(pool.members().len(), 2);
    assert!(pool.members().iter().all(|member| member["spec"]["customImage"] == "mine:2"));
    assert!(pool.annotations("capwasm.dev/made-from").iter().all(|print| !before.contains(print)));
}

#[test]
fn a_repeated_pass_meets_itself() {
    let mut pool = Pool::new(3);
    let (_, outcome) = provision_pool::<Docker>(&pool.host, &pool.object);
    // The same outcome twice, as after a crash before the first was recorded.
    pool.host.carry_out(&outcome);
    pool.host.carry_out(&outcome);
    assert_eq!(pool.members().len(), 3);
    pool.pass().unwrap();
    assert_eq!(pool.members().len(), 3);
}

/// However far the pool had come, and whichever of its writes were lost: its deletion leaves neither members nor Machines.
#[test]
fn a_deletion_leaves_no_member_whatever_was_lost_before() {
    for passes in 0..5 {
        for kept in 0..6 {
            let mut pool = Pool::new(3);
            for _ in 0..passes {
                let (_, mut outcome) = provision_pool::<Docker>(&pool.host, &pool.object);
                outcome.operations.truncate(kept);
                pool.host.carry_out(&outcome);
                pool.others();
            }
            pool.host.set_related("machine-pool", Vec::new());
            let gone = (0..8).any(|_| {
                let (result, mut outcome) = deprovision_pool::<Docker>(&pool.host, &pool.object);
                outcome.operations.truncate(kept.max(1));
                pool.host.carry_out(&outcome);
                pool.others();
                result.unwrap()
            });
            assert!(gone && pool.members().is_empty(), "{passes} passes, {kept} writes of each");
            assert!(pool.of_kind("Machine").is_empty(), "{passes} passes, {kept} writes of each");
        }
    }
}

#[test]
fn a_pool_waits_for_its_owner_and_its_data() {
    let mut pool = Pool::new(1);
    pool.host.set_related("machine-pool", vec![json!({"metadata": {"name": "mp"}, "spec": {"clusterName": "quick"}})]);
    let problem = pool.pass().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "WaitingForBootstrapData"));
    pool.host.set_related("machine-pool", Vec::new());
    assert_eq!(pool.pass().unwrap_err().reason, "WaitingForMachinePool");
    assert!(pool.members().is_empty());
}
