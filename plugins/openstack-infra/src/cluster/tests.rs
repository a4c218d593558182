//! The cluster against an OpenStack in memory, pass after pass, from every state that a crash can leave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod balancer;
mod bastion;
mod calls;
mod deletion;
mod existing;
mod faults;
mod hostile;
mod life;
mod security;

use std::collections::BTreeMap;

use capwasm_sdk::test::{TestHost, run, write_back};
use capwasm_sdk::{ClusterAnswer, ObjectRef, Outcome, Place, Problem, object};
use serde_json::{Value, json};

use crate::kinds::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL, V1ALPHA1, V1BETA1};
use crate::testing::{OpenStack, assert_declared};

/// More passes than anything here needs.
const MOST_PASSES: usize = 80;
const COLLECTIONS: [&str; 11] = [
    "networks",
    "subnets",
    "routers",
    "ports",
    "security_groups",
    "security_group_rules",
    "floatingips",
    "loadbalancers",
    "listeners",
    "pools",
    "healthmonitors",
];

/// The spec of a cluster with everything that is made.
fn full() -> Value {
    json!({
        "identityRef": OpenStack::identity(),
        "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["1.1.1.1"]}],
        "managedSecurityGroups": {"allowAllInClusterTraffic": false},
        "apiServerLoadBalancer": {"enabled": true},
        "tags": ["mine"],
        "bastion": {"enabled": true, "spec": {"flavor": "m1.small", "image": {"id": "image-node"}, "sshKeyName": "key"}},
    })
}

fn without(mut spec: Value, field: &str) -> Value {
    spec.as_object_mut().unwrap().remove(field);
    spec
}

/// A cloud, a host in front of it, and an OpenStackCluster; what hosts and other kinds do is played here.
struct World {
    cloud: OpenStack,
    host: TestHost,
    object: Value,
    now_ms: u64,
}

struct Pass<R> {
    result: Result<R, Problem>,
    outcome: Outcome,
}

impl World {
    fn new(spec: Value) -> World {
        World::of("prod", spec, OpenStack::new())
    }

    fn of(cluster: &str, spec: Value, cloud: OpenStack) -> World {
        if spec.get("externalRouterIPs").is_some() {
            // Addresses of a router are an administrator's to choose.
            cloud.make_administrator();
        }
        let owner = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": {"name": cluster, "namespace": "default", "uid": format!("uid-of-{cluster}")},
        });
        let object = json!({
            "apiVersion": V1BETA1, "kind": "OpenStackCluster",
            "metadata": {
                "name": format!("{cluster}-infra"), "namespace": "default", "uid": format!("uid-{cluster}"),
                "labels": {CLUSTER_NAME_LABEL: cluster},
            },
            "spec": spec,
        });
        let host = cloud.host().related("cluster", owner);
        World { cloud, host, object, now_ms: 1_700_000_000_000 }
    }

    /// One pass; nothing of it is kept when the host crashed in it.
    fn pass(&mut self, crashed: impl FnOnce(&World) -> bool) -> Option<Pass<ClusterAnswer>> {
        let (result, outcome) = run(&self.host, |cx| super::provision(cx, &self.object));
        if crashed(self) {
            return None;
        }
        self.keep(&outcome);
        if let Ok(answer) = &result {
            self.answered(answer);
        }
        Some(Pass { result, outcome })
    }

    /// What the host writes of an outcome.
    fn keep(&mut self, outcome: &Outcome) {
        write_back(outcome, &mut self.object);
        self.host.carry_out(outcome);
    }

    /// Everything in the object is part of its definition.
    fn assert_declared(&self) {
        let mut declared = self.object.clone();
        // The host's, which writes more of them.
        object::merge(&mut declared, &json!({"status": {"conditions": null}}));
        assert_declared(&declared);
    }

    /// What the host writes of an answer.
    fn answered(&mut self, answer: &ClusterAnswer) {
        assert!(answer.provisioned);
        let domains: BTreeMap<&str, Value> = answer
            .failure_domains
            .iter()
            .map(|domain| (domain.name.as_str(), json!({"controlPlane": domain.control_plane})))
            .collect();
        object::merge(&mut self.object, &json!({"status": {"ready": true, "failureDomains": domains}}));
        if let (Some(endpoint), "") = (&answer.endpoint, object::text(&self.object, "/spec/controlPlaneEndpoint/host"))
        {
            let endpoint = json!({"host": endpoint.host, "port": endpoint.port});
            object::merge(&mut self.object, &json!({"spec": {"controlPlaneEndpoint": endpoint}}));
        }
    }

    /// The other kinds' part: OpenStackServers get a server with a port, or lose it. Says whether it did anything.
    fn play_servers(&mut self) -> bool {
        let reference = self.bastion_reference();
        let server =
            self.host.objects(Place::Management).into_iter().find(|found| {
                object::text(found, "/kind") == "OpenStackServer" && object::name(found) == reference.name
            });
        let ports = self.cloud.all("ports");
        let port = ports.iter().find(|port| port["device_owner"] == "compute:az1");
        match (server, port) {
            (Some(mut server), None) => {
                let network = object::text(&server, "/spec/ports/0/network/id").to_owned();
                let subnet = object::text(&self.object, "/status/network/subnets/0/id").to_owned();
                self.cloud.add(
                    "ports",
                    json!({
                        "name": "bastion-0", "network_id": network, "device_id": "instance", "device_owner": "compute:az1",
                        "fixed_ips": [{"subnet_id": subnet, "ip_address": "10.6.0.77"}],
                    }),
                );
                let status = json!({"ready": true, "instanceID": "instance", "instanceState": "ACTIVE"});
                object::merge(&mut server, &json!({"status": status}));
                self.host.put(Place::Management, server);
                true
            }
            (None, Some(port)) => {
                for ip in self.cloud.all("floatingips") {
                    if ip["port_id"] == port["id"] {
                        self.cloud.change("floatingips", ip["id"].as_str().unwrap(), &json!({"port_id": null}));
                    }
                }
                self.cloud.remove("ports", port["id"].as_str().unwrap());
                true
            }
            _ => false,
        }
    }

    fn bastion_reference(&self) -> ObjectRef {
        let cluster = object::label(&self.object, CLUSTER_NAME_LABEL).unwrap();
        ObjectRef::new(V1ALPHA1, "OpenStackServer", format!("{cluster}-bastion")).in_namespace("default")
    }

    /// Passes until one asks for nothing.
    fn settle(&mut self) {
        for _ in 0..MOST_PASSES {
            if self.step(|_| false) {
                return;
            }
            self.later(1);
        }
        panic!("it does not end: {:#?}\n{:#?}", self.object["status"], self.cloud.writes());
    }

    /// One pass, and what the others do then; says whether there is nothing more to do.
    fn step(&mut self, crashed: impl FnOnce(&World) -> bool) -> bool {
        let before = self.cloud.calls().len();
        let pass = self.pass(crashed);
        let is_idle = !self.play_servers();
        self.play_machines();
        let Some(pass) = pass else { return false };
        let is_quiet = pass.outcome.wake_after.is_none() && !pass.outcome.wake_when_applied;
        // One look at something that should be as it was made.
        let looked = self.cloud.calls().len() <= before + 1;
        pass.result.is_ok() && is_idle && is_quiet && looked && pass.outcome.operations.is_empty()
    }

    fn later(&mut self, seconds: u64) {
        self.now_ms += seconds * 1000;
        self.host.set_now_ms(self.now_ms);
        self.cloud.set_now(self.now_ms / 1000);
    }

    /// The machines as they are in the API server.
    fn play_machines(&mut self) {
        let all = self.host.objects(Place::Management);
        let machines: Vec<Value> =
            all.into_iter().filter(|found| object::text(found, "/kind") == "OpenStackMachine").collect();
        self.host.set_related("infrastructure-machines", machines);
    }

    /// A control-plane machine with an address.
    fn add_machine(&mut self, name: &str, address: &str) {
        let machine = json!({
            "apiVersion": V1BETA1, "kind": "OpenStackMachine",
            "metadata": {"name": name, "namespace": "default", "labels": {CONTROL_PLANE_LABEL: ""}},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        });
        self.host.put(Place::Management, machine);
        self.play_machines();
    }

    fn machine(&self, name: &str) -> Value {
        let all = self.host.objects(Place::Management);
        all.into_iter().find(|found| object::name(found) == name).unwrap()
    }

    /// Passes of the deletion until nothing is left, or no more are allowed.
    fn delete(&mut self) -> bool {
        self.delete_with(|_| false)
    }

    fn delete_with(&mut self, mut crashed: impl FnMut(&World) -> bool) -> bool {
        object::merge(&mut self.object, &json!({"metadata": {"deletionTimestamp": "2023-11-14T22:13:20Z"}}));
        for _ in 0..MOST_PASSES {
            let (result, outcome) = run(&self.host, |cx| super::deprovision(cx, &self.object));
            if !crashed(self) {
                self.keep(&outcome);
                if result == Ok(true) {
                    return true;
                }
            }
            self.play_servers();
            self.later(1);
        }
        false
    }

    /// Everything that is not there from the start: what it is, and its name.
    fn resources(&self) -> Vec<String> {
        resources(&self.cloud)
    }

    fn condition(&self, name: &str) -> (String, String) {
        let condition = object::condition(&self.object, name).unwrap_or_else(|| panic!("no condition {name}"));
        (object::text(condition, "/status").to_owned(), object::text(condition, "/reason").to_owned())
    }
}

fn resources(cloud: &OpenStack) -> Vec<String> {
    let mut left: Vec<String> = Vec::new();
    for collection in COLLECTIONS {
        for item in cloud.all(collection) {
            if item["project_id"] == "admin" {
                continue;
            }
            let what = match collection {
                "security_group_rules" => format!(
                    "{}/{}/{}/{}/{}",
                    item["direction"],
                    item["ethertype"],
                    item["protocol"],
                    item["port_range_min"],
                    item["port_range_max"]
                ),
                "floatingips" => format!("{} {}", item["description"], item["port_id"].is_string()),
                "ports" => item["device_owner"].to_string(),
                _ => item["name"].to_string(),
            };
            left.push(format!("{collection} {what}"));
        }
    }
    left.sort();
    left
}
