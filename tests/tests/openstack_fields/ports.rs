//! Ports with everything that can be said of them, and trunks.

use capwasm_tests::objects::{is, text};
use capwasm_tests::openstack::proxy::Action;
use capwasm_tests::openstack::{self, Bed, manifests};
use capwasm_tests::wait;
use http::Method;
use serde_json::{Value, json};

use crate::world::{
    administrator, administrator_ref, machine_spec, make, neutron, nothing_is_left, only, remove, tagged, with,
};

/// Resources of OpenStack that the test made before the cluster.
#[derive(Default)]
pub struct Given {
    project: String,
    network: String,
    subnet: String,
    group: String,
    other_group: String,
    policy: String,
}

/// A machine with three ports.
pub fn machine(given: &Given) -> Value {
    let named = json!({"name": "side", "description": "of a test", "projectID": given.project});
    let described = with(named.clone(), json!({"tags": ["kept"], "notTags": ["y", "z"]}));
    let tagged = with(named, json!({"tagsAny": ["kept", "x"], "notTagsAny": ["y"]}));
    let subnet = with(described.clone(), json!({"ipVersion": 4, "gatewayIP": "10.47.0.1", "cidr": "10.47.0.0/24"}));
    let groups = |filter: &Value| json!([{"filter": filter}, {"id": given.other_group}]);
    machine_spec(json!({
        "identityRef": administrator_ref(),
        "trunk": true,
        "tags": ["of-a-machine"],
        "securityGroups": groups(&described),
        "ports": [
            {
                "nameSuffix": "first", "description": "the first", "tags": ["of-a-port"],
                "allowedAddressPairs": [{"ipAddress": "10.46.0.200", "macAddress": "fa:16:3e:00:00:02"}],
                "macAddress": "fa:16:3e:00:47:01",
                "valueSpecs": [{"name": "quality", "key": "qos_policy_id", "value": given.policy}],
                "propagateUplinkStatus": true,
            },
            {
                "network": {"id": given.network}, "trunk": false, "adminStateUp": false, "securityGroups": groups(&tagged),
                "fixedIPs": [{"subnet": {"id": given.subnet}, "ipAddress": "10.47.0.77"}],
                "hostID": "a-host-of-its-own", "vnicType": "baremetal",
                "profile": {"ovsHWOffload": true, "trustedVF": true},
            },
            {
                "network": {"filter": tagged}, "trunk": false, "disablePortSecurity": true,
                "fixedIPs": [{"subnet": {"filter": subnet}}],
            },
        ],
    }))
}

#[tokio::test]
async fn ports_are_as_the_fields_say_and_trunks_go_with_what_they_carry() {
    let test = "openstack_fields::ports_are_as_the_fields_say_and_trunks_go_with_what_they_carry";
    let Some(admin) = openstack::real(test) else { return };
    let bed = Bed::real(&admin, "ports").await;
    administrator(&bed, &admin).await;
    let cloud = bed.project.cloud.clone();
    let described = json!({"name": "side", "description": "of a test"});
    let network = tagged(&cloud, "network", described.clone(), &["kept"]).await;
    let subnet = json!({"network_id": network["id"], "ip_version": 4, "cidr": "10.47.0.0/24"});
    let subnet = tagged(&cloud, "subnet", with(described.clone(), subnet), &["kept"]).await;
    let group = tagged(&cloud, "security-group", described, &["kept"]).await;
    let other = tagged(&cloud, "security-group", json!({"name": "other"}), &[]).await;
    let policy = json!({"name": "of-a-test", "project_id": cloud.project_id});
    let policy = make(&bed.project.admin, "network", "/v2.0/qos/policies", "policy", policy).await;
    let id = |resource: &Value| text(resource, "/id").to_owned();
    let given = Given {
        project: cloud.project_id.clone(),
        network: id(&network),
        subnet: id(&subnet),
        group: id(&group),
        other_group: id(&other),
        policy: id(&policy),
    };
    // Nova binds ports to hosts of its own choice: what was asked for is seen before that.
    bed.proxy.rule(|call| {
        let is_server = call.method == Method::POST && call.path == "/servers";
        if is_server { Action::status(503, "not yet") } else { Action::Pass }
    });
    let spec = json!({
        "identityRef": manifests::identity_ref(), "disableExternalNetwork": true, "managedSubnets": [{"cidr": "10.46.0.0/24"}],
        "disableAPIServerFloatingIP": true, "apiServerFixedIP": "10.46.0.100", "managedSecurityGroups": {},
    });
    bed.create(manifests::cluster("ports", "c", spec)).await;
    bed.create(manifests::machine("ports", "c", "m", false, "", machine(&given))).await;
    wait::until("the machine has its ports", async || {
        let server = bed.objects.find("OpenStackServer", "m").await.unwrap_or_default();
        let ports = server["status"]["resources"]["ports"].as_array().map_or(0, Vec::len);
        if ports == 3 { Ok(()) } else { Err(server["status"].to_string()) }
    })
    .await;
    ports_are_as_wanted(&bed, &given).await;
    bed.proxy.pass();
    // Something that it watches: it need not wait until it would look again.
    bed.objects.merge("OpenStackServer", "m", json!({"metadata": {"annotations": {"of-a-test": "now"}}})).await;
    bed.machine_ready("m").await;

    // What may change reaches Neutron.
    let mut ports = machine(&given)["ports"].clone();
    ports[0]["allowedAddressPairs"] = json!([{"ipAddress": "10.46.0.201"}]);
    bed.objects.merge("OpenStackMachine", "m", json!({"spec": {"ports": ports}})).await;
    wait::until("the other pair is allowed", async || {
        let port = neutron(&bed, "ports", "name=m-first").await;
        let pairs = &port["allowed_address_pairs"];
        if pairs[0]["ip_address"] == "10.46.0.201" { Ok(()) } else { Err(pairs.to_string()) }
    })
    .await;

    // Somebody gives the trunk a port to carry.
    let trunk = neutron(&bed, "trunks", "name=m-first").await;
    let sub = make(&cloud, "network", "/v2.0/ports", "port", json!({"network_id": network["id"], "name": "sub"})).await;
    let carried = json!({"sub_ports": [{"port_id": sub["id"], "segmentation_type": "vlan", "segmentation_id": 7}]});
    cloud.put("network", &format!("/v2.0/trunks/{}/add_subports", text(&trunk, "/id")), &carried).await;
    bed.objects.delete("Cluster", "c").await;
    bed.objects.gone("Cluster", "c").await;
    remove(&cloud, "network", "/v2.0/networks", &[&network]).await;
    remove(&cloud, "network", "/v2.0/security-groups", &[&group, &other]).await;
    remove(&bed.project.admin, "network", "/v2.0/qos/policies", &[&policy]).await;
    nothing_is_left(&bed).await;
    bed.end().await;
}

async fn ports_are_as_wanted(bed: &Bed, given: &Given) {
    let cluster = bed.objects.get("OpenStackCluster", "c").await;
    let port = async |name: &str| {
        let path = format!("/v2.0/ports?name={name}&project_id={}", bed.project.cloud.project_id);
        // What is about hosts is shown to administrators only.
        only(&bed.project.admin, "network", &path, "ports").await
    };
    let first = port("m-first").await;
    assert_eq!((&first["description"], &first["mac_address"]), (&json!("the first"), &json!("fa:16:3e:00:47:01")));
    assert_eq!(first["network_id"], cluster["status"]["network"]["id"]);
    assert_eq!(sorted(&first["tags"]), ["of-a-machine", "of-a-port"]);
    let pair = json!([{"ip_address": "10.46.0.200", "mac_address": "fa:16:3e:00:00:02"}]);
    assert_eq!(first["allowed_address_pairs"], pair);
    assert_eq!((&first["qos_policy_id"], &first["propagate_uplink_status"]), (&json!(given.policy), &json!(true)));
    let mut groups = vec![text(&cluster, "/status/workerSecurityGroup/id"), &given.group, &given.other_group];
    groups.sort_unstable();
    assert_eq!(sorted(&first["security_groups"]), groups);
    let trunk = neutron(bed, "trunks", "name=m-first").await;
    assert_eq!((&trunk["port_id"], sorted(&trunk["tags"])), (&first["id"], vec!["of-a-machine", "of-a-port"]));
    assert_eq!(bed.project.cloud.list("network", "/v2.0/trunks", "trunks").await.len(), 1, "one port has a trunk");

    let second = port("m-1").await;
    assert_eq!((&second["network_id"], &second["admin_state_up"]), (&json!(given.network), &json!(false)));
    assert_eq!(second["fixed_ips"], json!([{"subnet_id": given.subnet, "ip_address": "10.47.0.77"}]));
    let mut own = vec![given.group.as_str(), &given.other_group];
    own.sort_unstable();
    assert_eq!(sorted(&second["security_groups"]), own, "the cluster's group is for ports that name none");
    assert_eq!(second["binding:host_id"], "a-host-of-its-own");
    assert_eq!(second["binding:vnic_type"], "baremetal");
    assert_eq!(second["binding:profile"], json!({"capabilities": ["switchdev"], "trusted": true}));

    let third = port("m-2").await;
    assert_eq!((&third["network_id"], &third["port_security_enabled"]), (&json!(given.network), &json!(false)));
    assert_eq!(third["fixed_ips"][0]["subnet_id"], given.subnet.as_str());
    assert_eq!(third["security_groups"], json!([]));
    assert!(!is(&bed.objects.get("OpenStackServer", "m").await, "Ready"));
}

fn sorted(texts: &Value) -> Vec<&str> {
    let mut texts: Vec<&str> = texts.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    texts.sort_unstable();
    texts
}
