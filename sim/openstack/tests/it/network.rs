//! Neutron.

use serde_json::{Value, json};

use super::client::{Client, cloud, id};

fn problem(body: &Value) -> (&str, &str) {
    let problem = &body["NeutronError"];
    (problem["type"].as_str().unwrap_or_default(), problem["message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_cluster_network_comes_and_goes_in_the_only_order_that_is_allowed() {
    let (cloud, client) = cloud().await;
    let (network, subnet, router) = client.network("c", "10.6.0.0/24").await;
    let found = client.get(&format!("/networking/v2.0/subnets/{subnet}")).await;
    assert_eq!(found["subnet"]["gateway_ip"], "10.6.0.1");
    assert_eq!(found["subnet"]["allocation_pools"], json!([{ "start": "10.6.0.2", "end": "10.6.0.254" }]));
    let ports = client.get(&format!("/networking/v2.0/ports?device_id={router}")).await;
    assert_eq!(ports["ports"].as_array().unwrap().len(), 1, "the gateway's port is nobody's: {ports}");
    assert_eq!(ports["ports"][0]["device_owner"], "network:router_interface");

    let paths = [
        (format!("/networking/v2.0/routers/{router}"), "RouterInUse"),
        (format!("/networking/v2.0/networks/{network}"), "NetworkInUse"),
        (format!("/networking/v2.0/subnets/{subnet}"), "SubnetInUse"),
    ];
    for (path, kind) in &paths {
        let (status, body) = client.ask("DELETE", path, Value::Null).await;
        assert_eq!((status, problem(&body).0), (409, *kind));
    }
    let path = format!("/networking/v2.0/routers/{router}/remove_router_interface");
    assert_eq!(client.ask("PUT", &path, json!({ "subnet_id": subnet })).await.0, 200);
    let (status, body) = client.ask("PUT", &path, json!({ "subnet_id": subnet })).await;
    assert_eq!((status, problem(&body).0), (404, "RouterInterfaceNotFoundForSubnet"));
    assert_eq!(client.delete(&paths[0].0).await, 204);
    assert_eq!(client.delete(&paths[1].0).await, 204);
    assert_eq!(client.delete(&paths[2].0).await, 404, "a network takes its subnets along");
    assert_eq!(cloud.resources(), Vec::<String>::new());
    cloud.stop().await;
}

#[tokio::test]
async fn bad_input_is_refused_in_neutrons_words() {
    let (cloud, client) = cloud().await;
    let networks = "/networking/v2.0/networks";
    for (given, message) in [
        (json!({ "network": { "bogus": 1 } }), "Unrecognized attribute(s) 'bogus'"),
        (json!({ "network": { "name": 5 } }), "Invalid input for name. Reason: '5' is not a valid string."),
        (json!({ "nonsense": 1 }), "Unable to find 'network' in request body"),
        (json!({ "network": { "tags": [] } }), "Attribute 'tags' not allowed in POST"),
    ] {
        let (status, body) = client.ask("POST", networks, given).await;
        assert_eq!((status, problem(&body)), (400, ("HTTPBadRequest", message)));
    }
    let (status, body) = client.ask("GET", "/networking/v2.0/networks?bogus=1", Value::Null).await;
    assert_eq!((status, problem(&body).1), (400, "['bogus'] is invalid attribute for filtering"));
    let (status, body) = client.ask("GET", "/networking/v2.0/networks/nope", Value::Null).await;
    assert_eq!((status, problem(&body)), (404, ("NetworkNotFound", "Network nope could not be found.")));
    let (network, subnet, _) = client.network("c", "10.6.0.0/24").await;
    let given = json!({ "subnet": { "network_id": network, "ip_version": 4, "cidr": "10.6.0.0/25" } });
    let (status, body) = client.ask("POST", "/networking/v2.0/subnets", given).await;
    assert_eq!((status, problem(&body).0), (400, "InvalidInput"));
    let ports = "/networking/v2.0/ports";
    let fixed = |ip: &str| json!({ "port": { "network_id": network, "fixed_ips": [{ "subnet_id": subnet, "ip_address": ip }] } });
    let (status, body) = client.ask("POST", ports, fixed("10.6.0.1")).await;
    assert_eq!((status, problem(&body).0), (409, "IpAddressAlreadyAllocated"));
    let (status, body) = client.ask("POST", ports, fixed("10.7.0.1")).await;
    assert_eq!((status, problem(&body).0), (400, "InvalidIpForSubnet"));
    let given = json!({ "port": { "network_id": network, "binding:host_id": "h" } });
    let (status, body) = client.ask("POST", ports, given).await;
    assert_eq!((status, problem(&body).0), (403, "PolicyNotAuthorized"));
    cloud.stop().await;
}

#[tokio::test]
async fn lists_are_filtered_by_names_tags_and_fields_and_come_in_pages() {
    let (cloud, client) = cloud().await;
    for name in ["a", "b", "c"] {
        let network = client.make("/networking/v2.0/networks", "network", json!({ "name": name })).await;
        let path = format!("/networking/v2.0/networks/{}/tags", id(&network));
        let (status, body) = client.ask("PUT", &path, json!({ "tags": ["x", name] })).await;
        assert_eq!((status, body), (200, json!({ "tags": ["x", name] })));
    }
    let names = async |query: &str| -> Vec<String> {
        let found = client.get(&format!("/networking/v2.0/networks?{query}")).await;
        let all = found["networks"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("name=a&name=c").await, ["a", "c"]);
    assert_eq!(names("tags=x,b").await, ["b"]);
    assert_eq!(names("tags-any=a,c").await, ["a", "c"]);
    assert_eq!(names("tags=x&not-tags=b").await, ["a", "c"]);
    let found = client.get("/networking/v2.0/networks?name=a&fields=name").await;
    assert_eq!(found["networks"], json!([{ "name": "a" }]));
    let page = client.get("/networking/v2.0/networks?tags=x&limit=2").await;
    assert_eq!(page["networks"].as_array().unwrap().len(), 2);
    let next = page["networks_links"][0]["href"].as_str().unwrap();
    let next = next.strip_prefix(&format!("http://{}", cloud.address())).unwrap();
    let page = client.get(next).await;
    assert_eq!(page["networks"][0]["name"], "c");
    assert!(page["networks_links"].is_null());
    cloud.stop().await;
}

#[tokio::test]
async fn security_groups_have_rules_that_are_never_there_twice() {
    let (cloud, client) = cloud().await;
    let group = client.make("/networking/v2.0/security-groups", "security_group", json!({ "name": "g" })).await;
    assert_eq!(group["security_group_rules"].as_array().unwrap().len(), 2);
    let rule = json!({ "security_group_id": group["id"], "direction": "ingress", "protocol": "tcp", "port_range_min": 6443, "port_range_max": 6443, "remote_ip_prefix": "0.0.0.0/0" });
    let rules = "/networking/v2.0/security-group-rules";
    let made = client.make(rules, "security_group_rule", rule.clone()).await;
    assert_eq!((made["ethertype"].as_str(), made["normalized_cidr"].as_str()), (Some("IPv4"), Some("0.0.0.0/0")));
    let mut again = rule.clone();
    again["description"] = json!("another");
    let (status, body) = client.ask("POST", rules, json!({ "security_group_rule": again })).await;
    let message = format!("Security group rule already exists. Rule id is {}.", id(&made));
    assert_eq!((status, problem(&body)), (409, ("SecurityGroupRuleExists", message.as_str())));
    let mut wrong = rule;
    wrong["port_range_max"] = json!(1);
    let (status, body) = client.ask("POST", rules, json!({ "security_group_rule": wrong })).await;
    assert_eq!((status, problem(&body).0), (400, "SecurityGroupInvalidPortRange"));

    let (network, ..) = client.network("c", "10.6.0.0/24").await;
    let given = json!({ "network_id": network, "security_groups": [group["id"]] });
    let port = client.make("/networking/v2.0/ports", "port", given).await;
    let path = format!("/networking/v2.0/security-groups/{}", id(&group));
    let (status, body) = client.ask("DELETE", &path, Value::Null).await;
    assert_eq!((status, problem(&body).0), (409, "SecurityGroupInUse"));
    client.delete(&format!("/networking/v2.0/ports/{}", id(&port))).await;
    assert_eq!(client.delete(&path).await, 204);
    cloud.stop().await;
}

#[tokio::test]
async fn a_default_group_is_an_administrators_to_delete() {
    let (cloud, client) = cloud().await;
    let groups = "/networking/v2.0/security-groups";
    client.make(groups, "security_group", json!({ "name": "g" })).await;
    let found = client.get(&format!("{groups}?name=default")).await;
    let path = format!("{groups}/{}", id(&found["security_groups"][0]));
    let (status, body) = client.ask("DELETE", &path, Value::Null).await;
    assert_eq!((status, problem(&body).0), (409, "SecurityGroupCannotRemoveDefault"));
    assert_eq!(Client::of(&cloud, "admin").await.delete(&path).await, 204);
    cloud.stop().await;
}

#[tokio::test]
async fn floating_ips_follow_ports_behind_a_router() {
    let (cloud, client) = cloud().await;
    let (network, subnet, router) = client.network("c", "10.6.0.0/24").await;
    let public = client.public().await;
    let port = client.make("/networking/v2.0/ports", "port", json!({ "network_id": network })).await;
    let given = json!({ "floating_network_id": public, "port_id": port["id"] });
    let made = client.make("/networking/v2.0/floatingips", "floatingip", given.clone()).await;
    assert_eq!((made["status"].as_str(), made["router_id"].as_str()), (Some("DOWN"), Some(router.as_str())));
    let path = format!("/networking/v2.0/floatingips/{}", id(&made));
    assert_eq!(client.get(&path).await["floatingip"]["status"], "ACTIVE");
    assert!(made["floating_ip_address"].as_str().unwrap().starts_with("127."), "it can be listened on: {made}");
    let (status, body) = client.ask("POST", "/networking/v2.0/floatingips", json!({ "floatingip": given })).await;
    assert_eq!((status, problem(&body).0), (409, "FloatingIPPortAlreadyAssociated"));
    let leave = format!("/networking/v2.0/routers/{router}/remove_router_interface");
    let (status, body) = client.ask("PUT", &leave, json!({ "subnet_id": subnet })).await;
    assert_eq!((status, problem(&body).0), (409, "RouterInterfaceInUseByFloatingIP"));
    client.delete(&format!("/networking/v2.0/ports/{}", id(&port))).await;
    assert_eq!(client.get(&path).await["floatingip"]["port_id"], Value::Null);
    assert_eq!(client.delete(&path).await, 204);

    let lonely = client.make("/networking/v2.0/networks", "network", json!({})).await;
    let given = json!({ "network_id": lonely["id"], "ip_version": 4, "cidr": "10.9.0.0/24" });
    client.make("/networking/v2.0/subnets", "subnet", given).await;
    let port = client.make("/networking/v2.0/ports", "port", json!({ "network_id": lonely["id"] })).await;
    let given = json!({ "floatingip": { "floating_network_id": public, "port_id": port["id"] } });
    let (status, body) = client.ask("POST", "/networking/v2.0/floatingips", given).await;
    assert_eq!((status, problem(&body).0), (404, "ExternalGatewayForFloatingIPNotFound"));
    assert!(!cloud.resources().iter().any(|name| name.starts_with("floatingips/")), "half a floating IP stayed");
    cloud.stop().await;
}

#[tokio::test]
async fn trunks_keep_their_ports() {
    let (cloud, client) = cloud().await;
    let (network, ..) = client.network("c", "10.6.0.0/24").await;
    let port = id(&client.make("/networking/v2.0/ports", "port", json!({ "network_id": network })).await);
    let trunk = client.make("/networking/v2.0/trunks", "trunk", json!({ "name": "t", "port_id": port })).await;
    let (status, body) = client.ask("POST", "/networking/v2.0/trunks", json!({ "trunk": { "port_id": port } })).await;
    assert_eq!((status, problem(&body).0), (409, "ParentPortInUse"));
    let (status, body) = client.ask("DELETE", &format!("/networking/v2.0/ports/{port}"), Value::Null).await;
    assert_eq!((status, problem(&body).0), (409, "PortInUseAsTrunkParent"));
    assert_eq!(client.delete(&format!("/networking/v2.0/trunks/{}", id(&trunk))).await, 204);
    assert_eq!(client.delete(&format!("/networking/v2.0/ports/{port}")).await, 204);
    cloud.stop().await;
}

#[tokio::test]
async fn quotas_are_set_by_administrators_and_then_hold() {
    let (cloud, client) = cloud().await;
    let network = client.make("/networking/v2.0/networks", "network", json!({})).await;
    let project = network["project_id"].as_str().unwrap();
    let path = format!("/networking/v2.0/quotas/{project}");
    let quota = json!({ "quota": { "network": 1 } });
    assert_eq!(client.ask("PUT", &path, quota.clone()).await.0, 403);
    let admin = Client::of(&cloud, "admin").await;
    assert_eq!(admin.ask("PUT", &path, quota).await.0, 200);
    let (status, body) = client.ask("POST", "/networking/v2.0/networks", json!({ "network": {} })).await;
    assert_eq!((status, problem(&body)), (409, ("OverQuota", "Quota exceeded for resources: ['network'].")));
    assert_eq!(client.get(&path).await["quota"]["network"], 1);
    cloud.stop().await;
}
