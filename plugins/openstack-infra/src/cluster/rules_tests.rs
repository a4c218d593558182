#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
use super::*;
use capwasm_sdk::object;
use serde_json::json;

fn ids(bastion: bool) -> GroupIds {
    GroupIds { control_plane: "cp".to_owned(), worker: "wk".to_owned(), bastion: bastion.then(|| "ba".to_owned()) }
}

/// `ingress IPv4 tcp 6443-6443 from group/cp`.
fn said(rule: &Wanted) -> String {
    let mut words = vec![rule.direction.clone(), rule.ethertype.clone()];
    words.extend(rule.protocol.clone());
    words.extend(rule.ports.map(|(first, last)| format!("{first}-{last}")));
    words.extend(rule.remote_group.as_ref().map(|id| format!("from {id}")));
    words.extend(rule.remote_prefix.as_ref().map(|prefix| format!("from {prefix}")));
    words.join(" ")
}

fn rules(role: SecurityGroupRole, spec: Value, bastion: bool) -> Result<Vec<String>, Problem> {
    let spec: Spec = object::spec(&json!({"metadata": {"name": "c"}, "spec": spec})).unwrap();
    let managed = spec.managed_security_groups.clone().unwrap_or_default();
    let cidrs = ["10.6.0.0/24", "fd00::/64"];
    let rules = wanted(role, &spec, &managed, &ids(bastion), cidrs.into_iter())?;
    Ok(rules.iter().map(said).collect())
}

const OPEN: [&str; 2] = ["egress IPv4", "egress IPv6"];
const NODE_PORTS_OF_ALL: [&str; 6] = [
    "ingress IPv4 tcp 30000-32767 from 10.6.0.0/24",
    "ingress IPv4 udp 30000-32767 from 10.6.0.0/24",
    "ingress IPv4 tcp 30000-32767 from wk",
    "ingress IPv4 udp 30000-32767 from wk",
    "ingress IPv4 tcp 30000-32767 from cp",
    "ingress IPv4 udp 30000-32767 from cp",
];

#[test]
fn machines_reach_each_other_on_the_ports_that_kubernetes_needs() {
    let control_plane = rules(SecurityGroupRole::ControlPlane, json!({}), true).unwrap();
    let expected = [
        "ingress IPv4 tcp 6443-6443",
        "ingress IPv4 tcp 2379-2380 from cp",
        "ingress IPv4 tcp 10250-10250 from cp",
        "ingress IPv4 tcp 10250-10250 from wk",
        "ingress IPv4 tcp 22-22 from ba",
    ];
    assert_eq!(control_plane, [&OPEN[..], &expected[..]].concat());
    let worker = rules(SecurityGroupRole::Worker, json!({}), false).unwrap();
    let expected = ["ingress IPv4 tcp 10250-10250 from cp", "ingress IPv4 tcp 10250-10250 from wk"];
    assert_eq!(worker, [&OPEN[..], &NODE_PORTS_OF_ALL[..], &expected[..]].concat());
    let bastion = rules(SecurityGroupRole::Bastion, json!({}), true).unwrap();
    assert_eq!(bastion, [&OPEN[..], &["ingress IPv4 tcp 22-22"][..]].concat());
}

#[test]
fn all_traffic_in_the_cluster_replaces_single_ports() {
    let spec = json!({"managedSecurityGroups": {"allowAllInClusterTraffic": true}, "apiServerPort": 443});
    let control_plane = rules(SecurityGroupRole::ControlPlane, spec.clone(), false).unwrap();
    let expected =
        ["ingress IPv4 tcp 6443-6443", "ingress IPv4 tcp 443-443", "ingress IPv4 from cp", "ingress IPv4 from wk"];
    assert_eq!(control_plane, [&OPEN[..], &expected[..]].concat());
    let worker = rules(SecurityGroupRole::Worker, spec, false).unwrap();
    assert_eq!(worker[8..], ["ingress IPv4 from cp", "ingress IPv4 from wk"]);
}

#[test]
fn ports_of_the_load_balancer_are_open_each_once() {
    let spec = json!({"apiServerLoadBalancer": {"enabled": true, "additionalPorts": [22, 6443, 22]}});
    let control_plane = rules(SecurityGroupRole::ControlPlane, spec, false).unwrap();
    assert_eq!(control_plane[2..4], ["ingress IPv4 tcp 6443-6443", "ingress IPv4 tcp 22-22"]);
    assert_eq!(control_plane.len(), 7);
}

#[test]
fn rules_of_the_user_come_on_top_and_may_name_managed_groups() {
    let calico = json!({
        "name": "bgp", "direction": "ingress", "etherType": "IPv4", "protocol": "TCP", "portRangeMin": 179,
        "portRangeMax": 179, "remoteManagedGroups": ["controlplane", "worker"],
    });
    let spec = json!({"managedSecurityGroups": {
        "allNodesSecurityGroupRules": [calico],
        "workerNodesSecurityGroupRules": [{"name": "web", "direction": "ingress", "protocol": "tcp", "portRangeMin": 80, "portRangeMax": 80, "remoteIPPrefix": "10.9.8.7/8"}],
        "controlPlaneNodesSecurityGroupRules": [{"name": "ipip", "direction": "ingress", "protocol": "4"}],
    }});
    let control_plane = rules(SecurityGroupRole::ControlPlane, spec.clone(), false).unwrap();
    let bgp = ["ingress IPv4 tcp 179-179 from cp", "ingress IPv4 tcp 179-179 from wk"];
    assert_eq!(control_plane[6..], [&["ingress IPv4 4"][..], &bgp[..]].concat());
    let worker = rules(SecurityGroupRole::Worker, spec, false).unwrap();
    assert_eq!(worker[10..], [&["ingress IPv4 tcp 80-80 from 10.0.0.0/8"][..], &bgp[..]].concat());
}

#[test]
fn a_rule_cannot_name_a_group_that_there_is_not_or_two_remotes() {
    let of = |rule: Value| json!({"managedSecurityGroups": {"allNodesSecurityGroupRules": [rule]}});
    let bastion = of(json!({"name": "x", "direction": "ingress", "remoteManagedGroups": ["bastion"]}));
    assert!(rules(SecurityGroupRole::Worker, bastion.clone(), true).is_ok());
    assert!(rules(SecurityGroupRole::Worker, bastion, false).is_err());
    let both = json!({"name": "x", "direction": "ingress", "remoteManagedGroups": ["worker"], "remoteGroupID": "g"});
    assert!(rules(SecurityGroupRole::Worker, of(both), false).is_err());
}

fn found(id: &str, fields: Value) -> Rule {
    let mut rule: Rule = serde_json::from_value(fields).unwrap();
    rule.id = id.to_owned();
    rule
}

#[test]
fn only_what_is_surplus_goes_and_only_what_is_missing_comes() {
    let api = Wanted::ingress("Kubernetes API").tcp(6443, 6443);
    let all = Wanted::ingress("In-cluster Ingress").of_group("cp");
    let range = Wanted::ingress("").tcp(80, 80).of_range("10.0.0.0/8");
    let rule = |fields: Value| found("r", fields);
    let same = rule(json!({
        "id": "", "direction": "ingress", "ethertype": "IPv4", "protocol": "TCP", "port_range_min": 6443,
        "port_range_max": 6443, "remote_group_id": null, "remote_ip_prefix": null, "description": "another",
    }));
    let none = Change::default();
    assert_eq!(compare(std::slice::from_ref(&same), std::slice::from_ref(&api)), none, "descriptions do not count");
    let group = json!({"id": "", "direction": "ingress", "ethertype": "IPv4", "remote_group_id": "cp"});
    assert_eq!(compare(&[rule(group.clone())], std::slice::from_ref(&all)), none);
    let wide = json!({"id": "", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_ip_prefix": "10.1.2.3/8"});
    assert_eq!(compare(&[rule(wide)], std::slice::from_ref(&range)), none, "a range is what Neutron makes of it");
    let change = compare(&[same, found("old", group)], &[api, range.clone()]);
    assert_eq!(change, Change { surplus: vec!["old".to_owned()], missing: vec![range] });
}

#[test]
fn a_request_has_only_what_the_rule_says() {
    let egress = Wanted::new("Full open", "egress", "IPv6").fields("g");
    let expected =
        json!({"security_group_id": "g", "direction": "egress", "ethertype": "IPv6", "description": "Full open"});
    assert_eq!(egress, expected);
    let fields = Wanted::ingress("x").udp(1, 2).of_group("o").fields("g");
    let ports = (&fields["protocol"], &fields["port_range_min"], &fields["port_range_max"], &fields["remote_group_id"]);
    assert_eq!(ports, (&json!("udp"), &json!(1), &json!(2), &json!("o")));
}
