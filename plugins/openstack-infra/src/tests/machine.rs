use super::*;
use capwasm_sdk::test::{deprovision_machine, provision_machine};
use capwasm_sdk::{Fault, MachineAnswer, ObjectRef, Place};

use crate::kinds::{API_SERVER_INGRESS_READY, INSTANCE_READY, V1ALPHA1, V1BETA1};

/// A machine, its server and what both need.
struct Machine {
    world: World,
    cluster: Value,
    owner: Value,
}

fn machine_object(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": V1BETA1, "kind": "OpenStackMachine",
        "metadata": {"name": name, "namespace": "default", "uid": uid, "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
        "spec": {"flavor": "m1.small", "image": {"filter": {"name": "node-image"}}},
    })
}

impl Machine {
    fn new(cluster_spec: Value) -> Machine {
        let mut cluster = json!({
            "apiVersion": V1BETA1, "kind": "OpenStackCluster", "metadata": {"name": "quick", "namespace": "default"},
            "spec": {"identityRef": OpenStack::identity(), "managedSecurityGroups": {}, "tags": ["all"]},
            "status": {
                "network": {"id": "n1", "name": "main", "subnets": [{"id": "s1"}]},
                "controlPlaneSecurityGroup": {"id": "g-extra"}, "workerSecurityGroup": {"id": "g-worker"},
            },
        });
        object::merge(&mut cluster["spec"], &cluster_spec);
        let owner = json!({
            "metadata": {"name": "quick-cp-1", "labels": {"cluster.x-k8s.io/control-plane": ""}},
            "spec": {"clusterName": "quick", "failureDomain": "az2", "bootstrap": {"dataSecretName": "quick-cp-1-data"}},
        });
        let cloud = cloud();
        let object = machine_object("m-1", "u1");
        let world = World { host: TestHost::new(), cloud, object };
        let mut machine = Machine { world, cluster, owner };
        machine.refresh();
        machine
    }

    fn worker() -> Machine {
        let mut machine = Machine::new(json!({}));
        machine.owner["metadata"]["labels"] = json!({});
        machine.refresh();
        machine
    }

    /// The host's view of cluster and owner; objects stay.
    fn refresh(&mut self) {
        let objects = self.world.host.objects(Place::Management);
        self.world.host = self
            .world
            .cloud
            .host()
            .bootstrap_data("value", USER_DATA)
            .related("cluster", json!({"metadata": {"name": "quick", "namespace": "default"}}))
            .related("infrastructure-cluster", self.cluster.clone())
            .related("machine", self.owner.clone());
        for object in objects {
            self.world.host.put(Place::Management, object);
        }
    }

    fn provision(&mut self) -> Result<MachineAnswer, Problem> {
        self.world.host.put(Place::Management, self.world.object.clone());
        let result = self.world.pass(|host, object| provision_machine::<Provider>(host, object)).unwrap();
        if let Ok(answer) = &result {
            // The host's write-back.
            let addresses: Vec<Value> =
                answer.addresses.iter().map(|it| json!({"type": it.kind.as_str(), "address": it.value})).collect();
            let fields =
                json!({"spec": {"providerID": answer.provider_id}, "status": {"addresses": addresses, "ready": true}});
            object::merge(&mut self.world.object, &fields);
        }
        result
    }

    fn server(&self) -> Option<Value> {
        let all = self.world.host.objects(Place::Management);
        all.into_iter().find(|object| object["kind"] == "OpenStackServer" && object["metadata"]["name"] == "m-1")
    }

    /// One pass of the server's object.
    fn serve(&mut self) -> Result<(), Problem> {
        let mut server = self.server().expect("a server");
        let (result, outcome) = reconcile_object::<Provider>(&self.world.host, &server);
        write_back(&outcome, &mut server);
        self.world.host.carry_out(&outcome);
        self.world.host.put(Place::Management, server);
        result
    }

    fn settle(&mut self) -> MachineAnswer {
        for _ in 0..MOST_PASSES {
            if let Ok(answer) = self.provision() {
                assert_known(&self.world.object);
                assert_known(&self.server().unwrap());
                return answer;
            }
            let _ = self.serve();
        }
        panic!("not provisioned: {:#}", self.world.object);
    }
}

/// R4b: one server per machine, provisioned only once it is up.
#[test]
fn a_machine_is_provisioned_once_its_server_runs_and_asks_openstack_for_nothing() {
    let mut machine = Machine::worker();
    let first = machine.provision().unwrap_err();
    assert_eq!((first.fault, first.reason.as_str()), (Fault::Waiting, "InstanceNotReady"));
    let server = machine.server().unwrap();
    assert_eq!(server["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "quick");
    assert_eq!(server["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(server["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(server["spec"]["userDataRef"]["name"], "quick-cp-1-data");
    assert_eq!(server["spec"]["availabilityZone"], "az2");
    assert_eq!(server["spec"]["tags"], json!(["all"]));
    assert_eq!(server["spec"]["ports"][0]["securityGroups"], json!([{"id": "g-worker"}]));
    let answer = machine.settle();
    let id = machine.world.status("instanceID").to_owned();
    assert_eq!(answer.provider_id, Some(format!("openstack:///{id}")));
    assert_eq!(answer.failure_domain.as_deref(), Some("az2"));
    let kinds: Vec<(&str, &str)> =
        answer.addresses.iter().map(|address| (address.kind.as_str(), address.value.as_str())).collect();
    let port = machine.world.cloud.named("ports", "m-1-0");
    let internal = port["fixed_ips"][0]["ip_address"].as_str().unwrap();
    assert_eq!(kinds, [("InternalIP", internal), ("InternalDNS", "m-1")]);
    assert_eq!(machine.world.condition(INSTANCE_READY), ("True", "Ready"));
    assert_eq!(machine.world.status("instanceState"), "ACTIVE");
    machine.world.cloud.clear_calls();
    machine.provision().unwrap();
    assert!(machine.world.calls().is_empty(), "the server's object says it all");
}

#[test]
fn the_region_is_in_the_provider_id_if_the_machine_names_one() {
    let mut machine = Machine::worker();
    machine.world.object["spec"]["identityRef"] =
        json!({"type": "Secret", "name": "cloud-config", "cloudName": "openstack", "region": "RegionOne"});
    let answer = machine.settle();
    assert!(answer.provider_id.unwrap().starts_with("openstack://RegionOne/"));
}

#[test]
fn the_clouds_region_is_in_the_provider_id_if_the_cluster_says_so() {
    let mut machine = Machine::worker();
    machine.cluster["metadata"]["annotations"] = json!({"capwasm.dev/openstack-provider-id-region": "true"});
    machine.refresh();
    let answer = machine.settle();
    assert!(answer.provider_id.clone().unwrap().starts_with("openstack://RegionOne/"), "{answer:?}");
    // Its Node is known by that name now.
    machine.cluster["metadata"]["annotations"] = json!({});
    machine.refresh();
    assert_eq!(machine.settle().provider_id, answer.provider_id);
}

#[test]
fn what_the_server_says_is_the_machines() {
    let mut machine = Machine::worker();
    machine.world.object["spec"]["image"] = json!({"filter": {"name": "none"}});
    let _ = machine.provision();
    let _ = machine.serve();
    let problem = machine.provision().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "DependencyFailed"));
    assert_eq!(machine.world.condition(INSTANCE_READY), ("False", "DependencyFailed"));
}

#[test]
fn an_error_before_there_was_a_node_fails_the_machine_until_the_server_recovers() {
    let mut machine = Machine::worker();
    machine.world.cloud.set_breaks(true);
    for _ in 0..5 {
        let _ = machine.provision();
        let _ = machine.serve();
    }
    let problem = machine.provision().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "InstanceStateError"));
    assert_eq!(machine.world.status("failureReason"), "UpdateError");
    let id = machine.world.status("instanceID").to_owned();
    machine.world.cloud.change("servers", &id, &json!({"status": "ACTIVE"}));
    machine.serve().unwrap();
    assert!(machine.provision().unwrap().provisioned);
    assert_eq!(machine.world.object["status"].get("failureReason"), None);

    machine.owner["status"] = json!({"nodeRef": {"name": "m-1"}});
    machine.refresh();
    machine.world.cloud.change("servers", &id, &json!({"status": "ERROR"}));
    let _ = machine.serve();
    assert_eq!(machine.provision().unwrap_err().fault, Fault::Invalid, "it was a node: this may pass");
    assert_eq!(machine.world.object["status"].get("failureReason"), None);
}

#[test]
fn a_vanished_server_is_told_and_none_is_made_again() {
    let mut machine = Machine::worker();
    machine.settle();
    let id = machine.world.status("instanceID").to_owned();
    machine.world.cloud.remove("servers", &id);
    let _ = machine.serve();
    let problem = machine.provision().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "InstanceDeleted"));
    let server = ObjectRef::new(V1ALPHA1, "OpenStackServer", "m-1");
    machine.world.host.remove(Place::Management, &server);
    assert_eq!(machine.provision().unwrap_err().reason, "InstanceDeleted");
    assert!(machine.server().is_none());
}

#[test]
fn another_objects_server_is_left_alone() {
    let mut machine = Machine::worker();
    let theirs = json!({
        "apiVersion": V1ALPHA1, "kind": "OpenStackServer",
        "metadata": {"name": "m-1", "namespace": "default", "uid": "x", "ownerReferences": [{"uid": "other"}]},
    });
    machine.world.host.put(Place::Management, theirs.clone());
    assert_eq!(machine.provision().unwrap_err().reason, "ServerNameTaken");
    let gone = machine.world.pass(|host, object| deprovision_machine::<Provider>(host, object)).unwrap();
    assert_eq!(gone, Ok(true));
    assert_eq!(machine.server(), Some(theirs));
}

#[test]
fn address_pairs_that_change_go_on_to_the_server() {
    let mut machine = Machine::worker();
    machine.world.object["spec"]["ports"] = json!([{"allowedAddressPairs": [{"ipAddress": "10.1.0.0/16"}]}]);
    machine.settle();
    machine.world.object["spec"]["ports"][0]["allowedAddressPairs"] = json!([{"ipAddress": "10.2.0.0/16"}]);
    machine.provision().unwrap();
    machine.serve().unwrap();
    let port = machine.world.cloud.named("ports", "m-1-0");
    assert_eq!(
        port["allowed_address_pairs"],
        json!([{"ip_address": "10.2.0.0/16", "mac_address": port["mac_address"]}])
    );
    assert_eq!(port["security_groups"], json!(["g-worker"]), "all else stays");
}

#[test]
fn a_deleted_machine_waits_for_its_server() {
    let mut machine = Machine::worker();
    machine.settle();
    let delete = |machine: &mut Machine| {
        machine.world.pass(|host, object| deprovision_machine::<Provider>(host, object)).unwrap()
    };
    assert_eq!(delete(&mut machine), Ok(false));
    assert!(machine.server().is_none(), "it was asked to go; no finalizer holds it here");
    assert_eq!(delete(&mut machine), Ok(true));
}

#[test]
fn a_control_plane_machine_leaves_the_load_balancer_before_it_goes() {
    let mut machine = Machine::new(json!({"apiServerLoadBalancer": {"enabled": true}}));
    machine.settle();
    let delete = |machine: &mut Machine| {
        machine.world.pass(|host, object| deprovision_machine::<Provider>(host, object)).unwrap()
    };
    let ingress =
        |status: &str, reason: &str| json!({"type": API_SERVER_INGRESS_READY, "status": status, "reason": reason});
    machine.world.object["status"]["conditions"].as_array_mut().unwrap().push(ingress("True", "Ready"));
    assert_eq!(delete(&mut machine).unwrap_err().fault, Fault::Waiting);
    assert!(machine.server().is_some());
    let conditions = machine.world.object["status"]["conditions"].as_array_mut().unwrap();
    conditions.retain(|condition| condition["type"] != API_SERVER_INGRESS_READY);
    conditions.push(ingress("False", "Deleting"));
    assert_eq!(delete(&mut machine), Ok(false));
    assert_eq!(delete(&mut machine), Ok(true));

    let mut machine = Machine::new(json!({"apiServerLoadBalancer": {"enabled": true}}));
    machine.settle();
    machine.world.object["status"]["conditions"].as_array_mut().unwrap().push(ingress("True", "Ready"));
    machine.cluster["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    machine.refresh();
    assert_eq!(delete(&mut machine), Ok(false), "the whole load balancer goes");
}

fn with_floating_endpoint() -> Machine {
    let machine = Machine::new(json!({"controlPlaneEndpoint": {"host": "172.24.4.7", "port": 6443}}));
    machine.world.cloud.add(
        "floatingips",
        json!({"id": "mine-api", "floating_ip_address": "172.24.4.7", "floating_network_id": "network-external", "port_id": null, "tags": [], "description": ""}),
    );
    machine
}

#[test]
fn without_a_load_balancer_the_endpoints_floating_ip_leads_to_the_machine() {
    let mut machine = with_floating_endpoint();
    let answer = machine.settle();
    let port = machine.world.cloud.named("ports", "m-1-0");
    assert_eq!(machine.world.cloud.all("floatingips")[0]["port_id"], port["id"]);
    assert!(answer.addresses.iter().any(|it| it.kind.as_str() == "ExternalIP" && it.value == "172.24.4.7"));
    assert_eq!(machine.world.condition(API_SERVER_INGRESS_READY), ("True", "Ready"));
    machine.world.cloud.clear_calls();
    machine.provision().unwrap();
    assert!(machine.world.calls().is_empty(), "{:?}", machine.world.calls());
}

#[test]
fn a_floating_ip_that_is_not_there_is_told_and_the_machine_runs_all_the_same() {
    let mut machine = Machine::new(json!({"controlPlaneEndpoint": {"host": "172.24.4.7", "port": 6443}}));
    let answer = machine.settle();
    assert!(answer.provisioned);
    assert_eq!(machine.world.condition(API_SERVER_INGRESS_READY), ("False", "FloatingIPError"));
    let (_, outcome) = provision_machine::<Provider>(&machine.world.host, &machine.world.object);
    assert!(outcome.wake_after.is_some(), "nothing tells when it comes");
}

#[test]
fn the_floating_ip_moves_on_when_its_machine_goes_and_stays_on_a_port_of_somebodys_own() {
    let mut machine = with_floating_endpoint();
    let mut holder = machine_object("m-0", "u0");
    holder["status"] =
        json!({"addresses": [{"type": "ExternalIP", "address": "172.24.4.7"}], "instanceID": "mine-old"});
    machine.world.cloud.add("ports", json!({"id": "mine-old-port", "name": "m-0-0", "network_id": "n1", "device_id": "mine-old", "fixed_ips": [], "tags": [], "description": ""}));
    machine.world.cloud.change("floatingips", "mine-api", &json!({"port_id": "mine-old-port"}));
    machine.world.host.put(Place::Management, holder.clone());
    let answer = machine.settle();
    assert_eq!(machine.world.cloud.all("floatingips")[0]["port_id"], "mine-old-port", "another machine has it");
    assert!(!answer.addresses.iter().any(|it| it.value == "172.24.4.7"));
    assert_eq!(machine.world.condition(API_SERVER_INGRESS_READY), ("True", "Ready"));

    holder["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    machine.world.host.put(Place::Management, holder);
    machine.provision().unwrap();
    let port = machine.world.cloud.named("ports", "m-1-0");
    assert_eq!(machine.world.cloud.all("floatingips")[0]["port_id"], port["id"]);

    let mut machine = with_floating_endpoint();
    machine.world.cloud.add("ports", json!({"id": "mine-vip", "name": "vip", "network_id": "n1", "device_id": "", "fixed_ips": [], "tags": [], "description": ""}));
    machine.world.cloud.change("floatingips", "mine-api", &json!({"port_id": "mine-vip"}));
    machine.settle();
    assert_eq!(machine.world.cloud.all("floatingips")[0]["port_id"], "mine-vip");
}

#[test]
fn a_template_of_a_cluster_tells_its_capacity_and_then_asks_for_nothing() {
    let machine = Machine::worker();
    let template = |owner: &str| {
        json!({
            "apiVersion": V1BETA1, "kind": "OpenStackMachineTemplate",
            "metadata": {"name": "t", "namespace": "default", "ownerReferences": [{"kind": owner, "name": "quick"}]},
            "spec": {"template": {"spec": {"flavor": "m1.medium", "image": {"filter": {"name": "node-image"}}, "identityRef": OpenStack::identity()}}},
        })
    };
    let mut world = World { cloud: machine.world.cloud, host: machine.world.host, object: template("Cluster") };
    world.settle();
    assert_eq!(world.object["status"]["capacity"], json!({"cpu": "2", "memory": "4096Mi", "storage": "40Gi"}));
    assert_eq!(world.object["status"]["nodeInfo"]["operatingSystem"], "linux");
    world.cloud.clear_calls();
    world.settle();
    assert!(world.calls().is_empty());
    world.object = template("ClusterClass");
    world.settle();
    assert_eq!(world.object.get("status"), None, "its values are still to be patched");
}

#[test]
fn a_templates_address_pairs_go_on_to_its_machines() {
    let mut machine = Machine::worker();
    machine.world.object["metadata"]["annotations"] = json!({"cluster.x-k8s.io/cloned-from-name": "t"});
    machine.world.object["spec"]["ports"] = json!([{"nameSuffix": "a"}]);
    let mut other = machine_object("m-2", "u2");
    other["spec"]["ports"] = json!([{"nameSuffix": "a"}]);
    machine.world.host.put(Place::Management, machine.world.object.clone());
    machine.world.host.put(Place::Management, other.clone());
    let pairs = json!([{"ipAddress": "10.1.0.0/16"}]);
    let template = json!({
        "apiVersion": V1BETA1, "kind": "OpenStackMachineTemplate",
        "metadata": {"name": "t", "namespace": "default", "ownerReferences": [{"kind": "Cluster", "name": "quick"}]},
        "spec": {"template": {"spec": {"flavor": "m1.medium", "image": {"id": "image-node"}, "identityRef": OpenStack::identity(), "ports": [{"allowedAddressPairs": pairs}]}}},
    });
    let (result, outcome) = reconcile_object::<Provider>(&machine.world.host, &template);
    result.unwrap();
    machine.world.host.carry_out(&outcome);
    let ports = |name: &str| {
        let all = machine.world.host.objects(Place::Management);
        all.into_iter().find(|object| object["metadata"]["name"] == name).unwrap()["spec"]["ports"].clone()
    };
    assert_eq!(ports("m-1"), json!([{"nameSuffix": "a", "allowedAddressPairs": pairs}]));
    assert_eq!(ports("m-2"), other["spec"]["ports"], "made of another template");
}
