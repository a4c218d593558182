//! Security groups as they are in Neutron.
use super::*;

fn rules(world: &World, role: &str) -> Vec<String> {
    let group = world.cloud.named("security_groups", &format!("k8s-cluster-default-prod-secgroup-{role}"));
    let mut rules: Vec<String> = world
        .cloud
        .all("security_group_rules")
        .iter()
        .filter(|rule| rule["security_group_id"] == group["id"])
        .map(|rule| {
            format!(
                "{} {} {} {}",
                rule["direction"].as_str().unwrap(),
                rule["protocol"],
                rule["port_range_min"],
                rule["remote_group_id"]
            )
        })
        .collect();
    rules.sort();
    rules
}

#[test]
fn groups_are_made_with_all_rules_in_one_request_each_and_keep_the_default_ones() {
    let mut world = World::new(full());
    world.settle();
    let bulk = world.cloud.bodies("POST", "/security-group-rules");
    assert_eq!(bulk.len(), 3);
    assert_eq!(
        bulk.iter().map(|body| body["security_group_rules"].as_array().unwrap().len()).collect::<Vec<_>>(),
        [5, 9, 1]
    );
    assert!(!world.cloud.writes().iter().any(|call| call.starts_with("DELETE")));
    assert_eq!(rules(&world, "controlplane").len(), 7);
}

#[test]
fn a_change_of_the_spec_takes_away_and_adds_what_it_has_to() {
    let mut world = World::new(full());
    world.settle();
    let change = json!({"spec": {
        "managedSecurityGroups": {"allNodesSecurityGroupRules": [{"name": "ping", "direction": "ingress", "protocol": "icmp", "remoteManagedGroups": ["worker"]}]},
        "bastion": {"enabled": false},
    }});
    object::merge(&mut world.object, &change);
    world.cloud.clear_calls();
    world.settle();
    assert!(rules(&world, "worker").iter().any(|rule| rule.contains("icmp")));
    assert!(!rules(&world, "worker").iter().any(|rule| rule.contains(" 22 ")), "no bastion, no way in from it");
    let deleted = world.cloud.writes().iter().filter(|call| call.starts_with("DELETE /security-group-rules")).count();
    assert_eq!(deleted, 2);
    world.cloud.named("security_groups", "k8s-cluster-default-prod-secgroup-bastion");
    assert!(world.delete());
    assert_eq!(world.resources(), [""; 0]);
}

#[test]
fn without_managed_groups_none_is_made() {
    let mut world = World::new(without(full(), "managedSecurityGroups"));
    world.settle();
    assert!(world.cloud.all("security_groups").is_empty());
    assert_eq!(world.object["status"].get("controlPlaneSecurityGroup"), None);
}

#[test]
fn a_rule_that_cannot_be_is_the_users_to_mend() {
    let mut spec = without(full(), "bastion");
    let rule = json!({"name": "x", "direction": "ingress", "remoteManagedGroups": ["bastion"]});
    object::merge(&mut spec, &json!({"managedSecurityGroups": {"allNodesSecurityGroupRules": [rule]}}));
    let mut world = World::new(spec);
    let problem = world.pass(|_| false).unwrap().result.unwrap_err();
    assert_eq!((problem.reason.as_str(), problem.fault), ("InvalidSecurityGroupRule", capwasm_sdk::Fault::Invalid));
    assert_eq!(world.condition("SecurityGroupsReady"), ("False".to_owned(), "SecurityGroupReconcileFailed".to_owned()));
}
