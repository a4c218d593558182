//! The bastion through its life.
use super::*;

fn server(world: &World) -> Option<Value> {
    let all = world.host.objects(Place::Management);
    all.into_iter().find(|found| object::text(found, "/kind") == "OpenStackServer")
}

#[test]
fn a_bastion_is_an_openstackserver_with_the_clusters_network_and_group() {
    let mut world = World::new(full());
    world.settle();
    let server = server(&world).unwrap();
    assert_eq!(object::name(&server), "prod-bastion");
    assert_eq!(server["metadata"]["ownerReferences"][0]["uid"], "uid-prod");
    assert_eq!(server["metadata"]["labels"][CLUSTER_NAME_LABEL], "prod");
    let spec = &server["spec"];
    assert_eq!(
        (&spec["flavor"], &spec["sshKeyName"], &spec["tags"]),
        (&json!("m1.small"), &json!("key"), &json!(["mine"]))
    );
    assert_eq!(spec["ports"][0]["network"]["id"], world.object["status"]["network"]["id"]);
    assert_eq!(spec["ports"][0]["securityGroups"][0]["id"], world.object["status"]["bastionSecurityGroup"]["id"]);
    assert_eq!(spec["identityRef"], OpenStack::identity());
}

#[test]
fn the_cluster_is_provisioned_whatever_becomes_of_its_bastion() {
    let mut world = World::new(full());
    for _ in 0..20 {
        let _ = world.pass(|_| false);
    }
    assert_eq!(world.object["status"]["ready"], true);
    assert!(object::text(&world.object, "/spec/controlPlaneEndpoint/host").starts_with("172."));
    assert_eq!(server(&world).unwrap()["status"]["ready"], Value::Null);
}

#[test]
fn it_goes_with_its_floating_ip_when_it_is_disabled_and_comes_back_when_it_is_enabled() {
    let mut world = World::new(full());
    world.settle();
    let before = world.resources();
    object::merge(&mut world.object, &json!({"spec": {"bastion": {"enabled": false}}}));
    world.settle();
    assert!(server(&world).is_none());
    assert_eq!(world.cloud.all("floatingips").len(), 1, "the endpoint's stays");
    assert_eq!(world.object["status"].get("bastion"), None);
    object::merge(&mut world.object, &json!({"spec": {"bastion": {"enabled": true}}}));
    world.settle();
    assert_eq!(world.resources(), before);
}

#[test]
fn it_is_made_anew_when_its_spec_changes() {
    let mut world = World::new(full());
    world.settle();
    let before = object::uid(&server(&world).unwrap()).to_owned();
    object::merge(&mut world.object, &json!({"spec": {"bastion": {"spec": {"flavor": "m1.medium"}}}}));
    world.settle();
    let after = server(&world).unwrap();
    assert_ne!(object::uid(&after), before);
    assert_eq!(after["spec"]["flavor"], "m1.medium");
    assert_eq!(world.cloud.all("floatingips").len(), 2);
}

#[test]
fn it_may_reach_the_api_server_where_not_everybody_may() {
    let mut spec = full();
    object::merge(&mut spec, &json!({"apiServerLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}));
    let mut world = World::new(spec);
    world.settle();
    let cidrs = world.cloud.all("listeners")[0]["allowed_cidrs"].clone();
    let has = |address: &str| cidrs.as_array().unwrap().contains(&json!(format!("{address}/32")));
    assert!(has("10.6.0.77") && has(world.object["status"]["bastion"]["floatingIP"].as_str().unwrap()), "{cidrs}");
}
