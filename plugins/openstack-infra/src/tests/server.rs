use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_sdk::{Fault, Place};

use crate::kinds::{FLOATING_ADDRESS_READY, INSTANCE_READY};
use crate::testing::Fault as Lost;

pub fn object_of(spec: Value) -> Value {
    let mut server = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer",
        "metadata": {"name": "quick-1", "namespace": "default", "uid": "u1", "labels": {"cluster.x-k8s.io/cluster-name": "quick"}},
        "spec": {
            "identityRef": OpenStack::identity(), "flavor": "m1.small", "image": {"filter": {"name": "node-image"}},
            "sshKeyName": "", "userDataRef": {"name": "quick-1"},
            "ports": [{"network": {"id": "n1"}, "fixedIPs": [{"subnet": {"id": "s1"}}], "securityGroups": [{"id": "g-worker"}]}],
        },
    });
    object::merge(&mut server["spec"], &spec);
    server
}

pub fn world_of(spec: Value) -> World {
    let cloud = cloud();
    let host = cloud.host().bootstrap_data("value", USER_DATA);
    World { cloud, host, object: object_of(spec) }
}

fn world() -> World {
    world_of(json!({}))
}

/// Everything that can be made: two ports, one with a trunk, and three disks of which two are volumes.
pub fn everything() -> Value {
    json!({
        "tags": ["all"], "availabilityZone": "az1", "configDrive": true, "serverGroup": {"filter": {"name": "spread"}},
        "serverMetadata": [{"key": "a", "value": "1"}], "securityGroups": [{"filter": {"tags": ["groups"], "name": "g-extra"}}],
        "ports": [
            {"network": {"filter": {"name": "main"}}, "fixedIPs": [{"subnet": {"filter": {"name": "main-subnet"}}}], "tags": ["own"], "trunk": true},
            {"fixedIPs": [{"subnet": {"filter": {"name": "storage-subnet"}}, "ipAddress": "10.9.0.77"}], "nameSuffix": "storage", "vnicType": "direct", "disablePortSecurity": true},
        ],
        "rootVolume": {"sizeGiB": 20, "availabilityZone": {"from": "Machine"}},
        "additionalBlockDevices": [
            {"name": "etcd", "sizeGiB": 2, "storage": {"type": "Volume", "volume": {"type": "fast"}}},
            {"name": "scratch", "sizeGiB": 5, "storage": {"type": "Local"}},
        ],
    })
}

#[test]
fn a_server_is_made_in_order_and_then_costs_one_request_a_look() {
    let mut world = world();
    let first = world.reconcile().unwrap().unwrap_err();
    assert_eq!(first.fault, Fault::Waiting);
    assert!(world.cloud.writes().is_empty(), "nothing is made before it is written down what");
    assert_eq!(
        world.object["status"]["resolved"],
        json!({
            "imageID": "image-node", "flavorID": "flavor-small",
            "ports": [{
                "name": "quick-1-0", "networkID": "n1", "description": "Created by cluster-api-provider-openstack cluster default-quick",
                "fixedIPs": [{"subnet": "s1"}], "securityGroups": ["g-worker"],
            }],
        })
    );
    world.settle();
    let server = world.server();
    let look = format!("GET /servers/{server}");
    assert_eq!(
        world.calls(),
        [
            "GET /images?name=node-image",
            "GET /flavors",
            "GET /ports?name=quick-1-0&project_id=project-a&network_id=n1",
            "POST /ports",
            "GET /servers/detail?name=%5Equick-1%24",
            "POST /servers",
            look.as_str(),
            look.as_str(),
        ],
        "no more than upstream's sequence"
    );
    let body = &world.cloud.bodies("POST", "/servers")[0]["server"];
    assert_eq!(body["user_data"], STANDARD.encode(USER_DATA), "byte by byte");
    assert_eq!(body["description"], "Created by cluster-api-provider-openstack server default/quick-1");
    let port = world.cloud.named("ports", "quick-1-0");
    assert_eq!(world.object["status"]["resources"]["ports"], json!([{"id": port["id"]}]));
    assert_eq!((world.status("instanceID"), world.status("instanceState")), (server.as_str(), "ACTIVE"));
    assert_eq!(world.object["status"]["ready"], true);
    assert_eq!(world.condition(INSTANCE_READY), ("True", "Ready"));
    assert_eq!(world.condition("OpenStackAuthenticationSucceeded"), ("True", "Ready"));
    let address = &port["fixed_ips"][0]["ip_address"];
    assert_eq!(world.object["status"]["addresses"], json!([{"type": "InternalIP", "address": address}]));

    world.cloud.clear_calls();
    let before = world.object.clone();
    world.settle();
    assert_eq!(world.calls(), [look]);
    assert_eq!(world.object, before, "nothing to write");
    assert_eq!(world.cloud.tokens(), 1);

    world.cloud.clear_calls();
    world.end();
    assert_eq!(
        world.cloud.writes(),
        [format!("DELETE /servers/{server}"), format!("DELETE /ports/{}", port["id"].as_str().unwrap())]
    );
    assert!(left(&world.cloud).is_empty());
}

#[test]
fn everything_that_a_server_can_have_is_made_and_goes_with_it() {
    let mut world = world_of(everything());
    world.settle();
    assert_eq!(
        world.object["status"]["resolved"],
        json!({
            "serverGroupID": "group-1", "imageID": "image-node", "flavorID": "flavor-small",
            "ports": [
                {
                    "name": "quick-1-0", "networkID": "n1", "description": "Created by cluster-api-provider-openstack cluster default-quick",
                    "tags": ["all", "own"], "trunk": true, "fixedIPs": [{"subnet": "s1"}], "securityGroups": ["g-extra"],
                },
                {
                    "name": "quick-1-storage", "networkID": "n2", "description": "Created by cluster-api-provider-openstack cluster default-quick",
                    "tags": ["all"], "fixedIPs": [{"subnet": "s2", "ipAddress": "10.9.0.77"}], "vnicType": "direct", "disablePortSecurity": true,
                },
            ],
        })
    );
    let trunk = world.cloud.named("trunks", "quick-1-0");
    assert_eq!(trunk["tags"], json!(["all", "own"]));
    assert_eq!(world.cloud.named("ports", "quick-1-0")["tags"], json!(["all", "own"]));
    let storage = world.cloud.named("ports", "quick-1-storage");
    assert_eq!((&storage["port_security_enabled"], &storage["binding:vnic_type"]), (&json!(false), &json!("direct")));
    let root = world.cloud.named("volumes", "quick-1-root");
    assert_eq!(
        (&root["volume_image_metadata"]["image_id"], &root["availability_zone"], &root["size"]),
        (&json!("image-node"), &json!("az1"), &json!(20))
    );
    assert_eq!(world.cloud.named("volumes", "quick-1-etcd")["volume_type"], "fast");
    let server = world.cloud.named("servers", "quick-1");
    assert_eq!((&server["tags"], &server["_zone"]), (&json!(["all"]), &json!("az1")));
    assert_eq!(server["_hints"], json!({"group": "group-1"}));
    assert_eq!(world.object["status"]["addresses"].as_array().unwrap().len(), 2);
    let version =
        world.cloud.calls().into_iter().find(|call| call.method == "POST" && call.path == "/servers").unwrap();
    assert!(version.headers.contains(&("openstack-api-version".to_owned(), "compute 2.53".to_owned())), "{version:?}");

    // Somebody's own port on the trunk goes with it; what was there before stays.
    let sub_port = world.cloud.add(
        "ports",
        json!({"name": "sub", "network_id": "n2", "device_id": "", "description": "", "fixed_ips": [], "tags": []}),
    );
    world.cloud.change(
        "trunks",
        trunk["id"].as_str().unwrap(),
        &json!({"sub_ports": [{"port_id": sub_port, "segmentation_id": 7}]}),
    );
    world.cloud.add("ports", json!({"id": "mine", "name": "quick-1-9", "network_id": "n1", "device_id": "", "description": "", "fixed_ips": [], "tags": []}));
    world.end();
    assert!(left(&world.cloud).is_empty(), "{:?}", left(&world.cloud));
    assert_eq!(world.cloud.named("ports", "quick-1-9")["id"], "mine");
    assert_eq!(world.cloud.all("security_groups").len(), 3);
}

/// A server with a trunk that carries somebody's port.
fn with_sub_port() -> World {
    let mut world = world_of(json!({"trunk": true}));
    world.settle();
    let trunk = world.cloud.named("trunks", "quick-1-0")["id"].clone();
    let sub_port = world.cloud.add(
        "ports",
        json!({"name": "sub", "network_id": "n2", "device_id": "", "description": "", "fixed_ips": [], "tags": []}),
    );
    let carried = json!({"sub_ports": [{"port_id": sub_port, "segmentation_id": 7}]});
    world.cloud.change("trunks", trunk.as_str().unwrap(), &carried);
    world
}

#[test]
fn a_port_that_a_trunk_carried_goes_also_when_the_host_dies_after_any_request() {
    let mut calls = with_sub_port();
    calls.cloud.clear_calls();
    calls.end();
    assert!(left(&calls.cloud).is_empty(), "{:?}", left(&calls.cloud));
    let most = calls.cloud.calls().len();
    for nth in 1..=most {
        let mut world = with_sub_port();
        world.cloud.fail(nth, Lost::LostAfter);
        world.end();
        assert!(left(&world.cloud).is_empty(), "{nth}: {:?}", left(&world.cloud));
    }
}

#[test]
fn a_server_that_nova_makes_after_its_object_was_deleted_goes_too() {
    let mut world = world();
    world.cloud.set_quota("servers", 0);
    for _ in 0..4 {
        let _ = world.reconcile();
    }
    assert_eq!(world.delete(), Some(Ok(false)), "a request may be on its way");
    world.cloud.add("servers", json!({"name": "quick-1", "status": "ACTIVE", "description": "Created by cluster-api-provider-openstack server default/quick-1"}));
    world.end();
    assert!(left(&world.cloud).is_empty(), "{:?}", left(&world.cloud));
}

#[test]
fn a_trunk_that_somebody_put_on_a_port_does_not_hold_it() {
    let mut world = world();
    world.settle();
    let port = world.cloud.named("ports", "quick-1-0")["id"].clone();
    world.cloud.add("trunks", json!({"name": "theirs", "port_id": port, "sub_ports": [], "tags": []}));
    world.end();
    assert!(left(&world.cloud).is_empty());
}

#[test]
fn nothing_is_resolved_until_the_image_object_is_available() {
    let mut world = world_of(json!({"image": {"filter": null, "imageRef": {"name": "node"}}}));
    let problem = world.reconcile().unwrap().unwrap_err();
    assert_eq!(problem.fault, Fault::Waiting);
    assert_eq!(world.condition(INSTANCE_READY), ("False", "InstanceNotReady"));
    let mut image = json!({
        "apiVersion": "openstack.k-orc.cloud/v1alpha1", "kind": "Image", "metadata": {"name": "node", "namespace": "default"},
        "status": {"conditions": [{"type": "Progressing", "status": "True", "reason": "Progressing"}]},
    });
    world.host.put(Place::Management, image.clone());
    assert_eq!(world.reconcile().unwrap().unwrap_err().fault, Fault::Waiting);
    image["status"] = json!({"id": "image-other", "conditions": [{"type": "Available", "status": "True"}]});
    world.host.put(Place::Management, image);
    world.settle();
    assert_eq!(world.cloud.named("servers", "quick-1")["_image"], "image-other");
}

#[test]
fn a_reference_that_leads_nowhere_is_told_and_nothing_is_made() {
    let table = [
        ("image", json!({"image": {"filter": {"name": "none"}}})),
        ("flavor", json!({"flavor": "none"})),
        ("server group", json!({"serverGroup": {"filter": {"name": "none"}}})),
        ("network", json!({"ports": [{"network": {"filter": {"name": "none"}}}]})),
        ("several networks", json!({"ports": [{"network": {"filter": {"projectID": PROJECT}}}]})),
        (
            "subnet",
            json!({"ports": [{"network": {"id": "n1"}, "fixedIPs": [{"subnet": {"filter": {"name": "storage-subnet"}}}]}]}),
        ),
        (
            "security group",
            json!({"ports": [{"network": {"id": "n1"}, "securityGroups": [{"filter": {"name": "none"}}]}]}),
        ),
        ("no network", json!({"ports": [{"nameSuffix": "a"}]})),
    ];
    for (what, spec) in table {
        let mut world = world_of(spec);
        let problem = world.reconcile().unwrap().unwrap_err();
        assert_eq!(problem.fault, Fault::Invalid, "{what}: {problem}");
        assert_eq!(world.condition(INSTANCE_READY), ("False", "DependencyFailed"), "{what}");
        assert!(world.cloud.writes().is_empty(), "{what}");
        assert_eq!(world.object["status"].get("resolved"), None, "{what}");
        world.end();
    }
}

#[test]
fn a_trunk_needs_its_extension() {
    let mut world = world_of(json!({"trunk": true}));
    world.cloud.without_extension("trunk");
    assert_eq!(world.reconcile().unwrap().unwrap_err().reason, "TrunksNotSupported");
}

#[test]
fn an_error_at_the_first_boot_is_final_until_it_goes_by_itself() {
    let mut world = world();
    world.cloud.set_breaks(true);
    let mut last = Ok(());
    for _ in 0..5 {
        last = world.reconcile().unwrap();
    }
    let problem = last.unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "InstanceStateError"));
    assert!(problem.message.contains("No valid host was found."));
    assert_eq!(world.condition(INSTANCE_READY), ("False", "InstanceStateError"));
    assert_eq!(world.cloud.all("servers").len(), 1, "it is not tried again");
    world.cloud.change("servers", &world.server(), &json!({"status": "ACTIVE"}));
    world.settle();
    assert_eq!(world.condition(INSTANCE_READY), ("True", "Ready"));
    world.cloud.change("servers", &world.server(), &json!({"status": "ERROR"}));
    assert_eq!(world.reconcile().unwrap().unwrap_err().fault, Fault::Invalid, "it ran once");
    world.end();
    assert!(left(&world.cloud).is_empty());
}

#[test]
fn a_server_that_is_stopped_is_waited_for() {
    let mut world = world();
    world.settle();
    world.cloud.change("servers", &world.server(), &json!({"status": "SHUTOFF"}));
    assert_eq!(world.reconcile().unwrap().unwrap_err().fault, Fault::Waiting);
    assert_eq!(world.condition(INSTANCE_READY), ("Unknown", "InstanceNotReady"));
    assert_eq!(world.status("instanceState"), "SHUTOFF");
}

#[test]
fn a_server_that_vanished_is_told_and_never_made_again() {
    let mut world = world();
    world.settle();
    world.cloud.remove("servers", &world.server());
    world.cloud.clear_calls();
    for _ in 0..3 {
        let problem = world.reconcile().unwrap().unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "InstanceNotFound"));
    }
    assert_eq!(world.status("instanceState"), "DELETED");
    assert!(world.cloud.writes().is_empty());
    world.end();
    assert!(left(&world.cloud).is_empty(), "its port goes all the same");
}

#[test]
fn another_objects_server_and_port_of_the_same_name_are_left_alone() {
    let mut world = world();
    let theirs = json!({"name": "quick-1", "status": "ACTIVE", "description": "Created by cluster-api-provider-openstack server other/quick-1", "addresses": {}});
    world.cloud.add("servers", json!({"id": "mine-server"}));
    world.cloud.change("servers", "mine-server", &theirs);
    let port = json!({
        "id": "mine-port", "name": "quick-1-0", "network_id": "n1", "device_id": "mine-server", "fixed_ips": [], "tags": [],
        "description": "Created by cluster-api-provider-openstack cluster other-quick",
    });
    world.cloud.add("ports", port);
    let mut last = Ok(());
    for _ in 0..3 {
        last = world.reconcile().unwrap();
    }
    assert_eq!(last.unwrap_err().reason, "ServerNameTaken");
    world.end();
    assert!(left(&world.cloud).is_empty());
    assert_eq!((world.cloud.all("servers").len(), world.cloud.all("ports").len()), (1, 2), "theirs stay");
}

#[test]
fn a_lost_status_is_found_again_by_names() {
    for spec in [json!({}), everything()] {
        let mut world = world_of(spec);
        world.settle();
        let before = world.object["status"].clone();
        world.object.as_object_mut().unwrap().remove("status");
        world.cloud.clear_calls();
        world.settle();
        assert!(world.cloud.writes().is_empty(), "{:?}", world.cloud.writes());
        assert_eq!(world.object["status"]["resources"], before["resources"]);
        assert_eq!(world.object["status"]["instanceID"], before["instanceID"]);
        world.object.as_object_mut().unwrap().remove("status");
        world.end();
        assert!(left(&world.cloud).is_empty(), "without any status: {:?}", left(&world.cloud));
    }
}

#[test]
fn a_quota_that_is_used_up_is_waited_for() {
    let mut world = world();
    world.cloud.set_quota("servers", 0);
    world.reconcile();
    let problem = world.reconcile().unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Transient, "QuotaExceeded"));
    assert!(problem.retry_after.is_some_and(|delay| delay.as_secs() >= 60), "no storm: {problem:?}");
    assert_eq!(world.condition(INSTANCE_READY), ("False", "InstanceCreateFailed"));
    world.cloud.set_quota("servers", 1);
    world.settle();
    assert_eq!(world.cloud.all("servers").len(), 1);

    let mut world = self::world();
    world.cloud.set_quota("ports", 1);
    world.reconcile();
    assert_eq!(world.reconcile().unwrap().unwrap_err().reason, "QuotaExceeded");
    assert_eq!(world.condition(INSTANCE_READY), ("False", "PortCreateFailed"));
}

#[test]
fn a_port_that_somebody_deleted_before_the_server_came_is_made_again() {
    let mut world = world();
    world.cloud.set_quota("servers", 0);
    world.reconcile();
    world.reconcile();
    let port = world.cloud.named("ports", "quick-1-0")["id"].as_str().unwrap().to_owned();
    world.cloud.remove("ports", &port);
    world.cloud.set_quota("servers", 1);
    world.settle();
    assert_ne!(world.cloud.named("ports", "quick-1-0")["id"], port.as_str());
    world.end();
    assert!(left(&world.cloud).is_empty());
}

#[test]
fn without_user_data_there_is_no_server() {
    let mut world = world();
    world.host = world.cloud.host();
    world.reconcile();
    let problem = world.reconcile().unwrap().unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Waiting, "WaitingForBootstrapData"));
    assert_eq!(world.condition(INSTANCE_READY), ("False", "WaitingForBootstrapData"));
    assert!(world.cloud.all("servers").is_empty());
    let mut bare = world_of(json!({"userDataRef": null}));
    bare.host = bare.cloud.host();
    bare.settle();
    assert_eq!(bare.cloud.named("servers", "quick-1")["_user_data"], Value::Null);
}

#[test]
fn a_volume_that_failed_needs_a_person_and_goes_with_its_server() {
    let mut world = world_of(everything());
    world.cloud.set_breaks(true);
    let mut last = Ok(());
    for _ in 0..4 {
        last = world.reconcile().unwrap();
    }
    let problem = last.unwrap_err();
    assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "VolumeError"));
    assert_eq!(world.condition(INSTANCE_READY), ("False", "InstanceCreateFailed"));
    world.end();
    assert!(left(&world.cloud).is_empty(), "{:?}", left(&world.cloud));
}

#[test]
fn volumes_that_a_failed_server_leaves_are_deleted() {
    let mut world = world_of(everything());
    world.settle();
    let server = world.cloud.named("servers", "quick-1")["id"].as_str().unwrap().to_owned();
    world.cloud.remove("servers", &server);
    for volume in world.cloud.all("volumes") {
        world.cloud.change("volumes", volume["id"].as_str().unwrap(), &json!({"status": "available"}));
    }
    world.end();
    assert!(left(&world.cloud).is_empty(), "{:?}", left(&world.cloud));
}

/// As Nova leaves them when it refuses a server late: reserved for a server that never was.
fn reserve(world: &World) {
    for volume in world.cloud.all("volumes") {
        let id = volume["id"].as_str().unwrap();
        world.cloud.change("volumes", id, &json!({"status": "reserved", "updated_at": "2023-11-14T22:13:20.000000"}));
        world.cloud.add("attachments", json!({"volume_id": id, "status": "reserved", "instance": "never"}));
    }
}

#[test]
fn volumes_that_were_reserved_for_a_refused_server_are_released_after_a_while() {
    let refused = || {
        let mut world = world_of(everything());
        world.cloud.set_quota("servers", 0);
        for _ in 0..3 {
            let _ = world.reconcile();
        }
        reserve(&world);
        world.cloud.set_quota("servers", 1);
        world
    };
    let mut world = refused();
    assert_eq!(world.reconcile().unwrap().unwrap_err().fault, Fault::Waiting);
    assert_eq!(world.cloud.all("attachments").len(), 2, "a server may yet come of it");
    world.host.set_now_ms(1_700_000_031_000);
    world.settle();
    assert!(world.cloud.all("attachments").is_empty());
    assert_eq!(world.cloud.all("servers").len(), 1);

    let mut world = refused();
    world.host.set_now_ms(1_700_000_031_000);
    world.end();
    assert!(left(&world.cloud).is_empty(), "{:?}", left(&world.cloud));
}

#[test]
fn address_pairs_that_change_reach_the_port_once() {
    let mut world = world();
    world.settle();
    world.object["spec"]["ports"][0]["allowedAddressPairs"] = json!([{"ipAddress": "10.1.0.0/16"}]);
    world.cloud.clear_calls();
    world.settle();
    let port = world.cloud.named("ports", "quick-1-0");
    assert_eq!(
        port["allowed_address_pairs"],
        json!([{"ip_address": "10.1.0.0/16", "mac_address": port["mac_address"]}])
    );
    assert_eq!(world.cloud.writes().len(), 1);
    assert_eq!(
        world.object["status"]["resolved"]["ports"][0]["allowedAddressPairs"],
        json!([{"ipAddress": "10.1.0.0/16"}])
    );
    world.settle();
    assert_eq!(world.cloud.writes().len(), 1, "once");
    world.object["spec"]["ports"][0].as_object_mut().unwrap().remove("allowedAddressPairs");
    world.settle();
    assert_eq!(world.cloud.named("ports", "quick-1-0")["allowed_address_pairs"], json!([]));
    assert_eq!(world.cloud.writes().len(), 2);
}

/// A pool's answer, as it would stand there.
fn answer_claim(world: &World, address: &str) {
    let mut claim = world
        .host
        .objects(Place::Management)
        .into_iter()
        .find(|object| object["kind"] == "IPAddressClaim")
        .expect("a claim");
    claim["status"] = json!({"addressRef": {"name": "quick-1-floating-ip-address"}});
    world.host.put(Place::Management, claim);
    world.host.put(
        Place::Management,
        json!({
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
            "metadata": {"name": "quick-1-floating-ip-address", "namespace": "default"}, "spec": {"address": address},
        }),
    );
}

#[test]
fn a_floating_address_is_claimed_first_and_led_to_the_port_that_it_reaches() {
    let mut world = world_of(json!({
        "floatingIPPoolRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "pool"},
        "ports": [{"network": {"id": "n2"}}, {"network": {"id": "n1"}}],
    }));
    world.cloud.add("floatingips", json!({"id": "mine-floating", "floating_ip_address": "172.24.4.200", "floating_network_id": "network-external", "port_id": null, "tags": [], "description": ""}));
    for _ in 0..3 {
        assert_eq!(world.reconcile().unwrap().unwrap_err().fault, Fault::Waiting);
    }
    assert!(world.cloud.writes().is_empty(), "nothing is made before the address is there");
    assert_eq!(world.condition(FLOATING_ADDRESS_READY), ("False", "WaitingForIPAMProvider"));
    answer_claim(&world, "172.24.4.200");
    world.settle();
    assert_eq!(world.condition(FLOATING_ADDRESS_READY), ("True", "Ready"));
    let port = world.cloud.named("ports", "quick-1-1");
    assert_eq!(world.cloud.all("floatingips")[0]["port_id"], port["id"], "the storage network has no way out");
    let shown = world.object["status"]["addresses"].as_array().unwrap().clone();
    assert!(shown.contains(&json!({"type": "ExternalIP", "address": "172.24.4.200"})), "{shown:?}");
    world.cloud.clear_calls();
    world.settle();
    assert_eq!(world.calls().len(), 1, "{:?}", world.calls());

    world.end();
    assert!(left(&world.cloud).is_empty());
    assert!(world.host.objects(Place::Management).iter().all(|object| object["kind"] != "IPAddressClaim"));
    assert_eq!(world.cloud.all("floatingips").len(), 1, "it is the pool's to delete");
}

#[test]
fn a_floating_address_that_leads_nowhere_is_told() {
    let mut world = world_of(json!({
        "floatingIPPoolRef": {"kind": "OpenStackFloatingIPPool", "name": "pool"}, "ports": [{"network": {"id": "n2"}}],
    }));
    world.reconcile();
    world.reconcile();
    answer_claim(&world, "172.24.4.200");
    let mut last = Ok(());
    for _ in 0..4 {
        last = world.reconcile().unwrap();
    }
    assert_eq!(last.unwrap_err().reason, "FloatingIPError");
    assert_eq!(world.condition(FLOATING_ADDRESS_READY), ("False", "FloatingIPError"));
    assert_eq!(world.condition(INSTANCE_READY), ("True", "Ready"), "the server runs all the same");
}

#[test]
fn wrong_credentials_are_told_in_a_condition() {
    let mut world = world();
    world.host.set_secret(
        "cloud-config",
        "clouds.yaml",
        OpenStack::clouds().replace("secret: secret", "secret: wrong"),
    );
    let problem = world.reconcile().unwrap().unwrap_err();
    assert_eq!(problem.fault, Fault::Invalid, "{problem:?}");
    assert_eq!(world.condition("OpenStackAuthenticationSucceeded").0, "False");
    assert!(world.cloud.calls().is_empty());
}
