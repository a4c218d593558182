//! Neutron: security groups and their rules.

use serde_json::{Value, json};

use super::{N, NOWHERE, Step, delete, get, post};

pub(super) fn security_groups() -> Vec<Step> {
    let rule = |more: Value| {
        let mut body = json!({"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4"});
        body.as_object_mut().into_iter().for_each(|body| body.extend(more.as_object().cloned().unwrap_or_default()));
        json!({"security_group_rule": body})
    };
    let path = "/v2.0/security-group-rules";
    let api =
        json!({"protocol": "tcp", "port_range_min": 6443, "port_range_max": 6443, "remote_ip_prefix": "0.0.0.0/0"});
    vec![
        post(
            "group",
            N,
            "/v2.0/security-groups",
            json!({"security_group": {"name": "contract", "description": "of a test"}}),
        )
        .keep("group", "/security_group/id"),
        get("group by id", N, "/v2.0/security-groups/<group>"),
        get("groups by name", N, "/v2.0/security-groups?name=contract&project_id=<project>"),
        get("group that is not there", N, &format!("/v2.0/security-groups/{NOWHERE}")).is(404),
        post("rule", N, path, rule(api.clone())).keep("rule", "/security_group_rule/id"),
        post("rule a second time", N, path, rule(api)).is(409),
        post(
            "rule of a protocol number",
            N,
            path,
            rule(json!({"protocol": "4", "remote_group_id": "<group>", "description": "ipip"})),
        ),
        post("rule of any IPv6", N, path, rule(json!({"ethertype": "IPv6", "remote_group_id": "<group>"}))),
        post(
            "rule with ports the wrong way round",
            N,
            path,
            rule(json!({"protocol": "tcp", "port_range_min": 9, "port_range_max": 8})),
        )
        .is(400),
        post("rule with ports of no protocol", N, path, rule(json!({"port_range_min": 8, "port_range_max": 9})))
            .is(400),
        post("rule of no direction", N, path, rule(json!({"direction": "sideways"}))).is(400),
        post("rule of another family's range", N, path, rule(json!({"remote_ip_prefix": "2001:db8::/32"}))).is(400),
        post(
            "rule with two sources",
            N,
            path,
            rule(json!({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": "<group>"})),
        )
        .is(400),
        post("rule of a group that is not there", N, path, rule(json!({"security_group_id": NOWHERE}))).is(404),
        post(
            "rules at once",
            N,
            path,
            json!({"security_group_rules": [
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "icmp"},
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "udp",
                "port_range_min": 30000, "port_range_max": 32767, "remote_ip_prefix": "10.6.0.0/24"}]}),
        ),
        post(
            "rules at once of which one is there",
            N,
            path,
            json!({"security_group_rules": [
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "sctp"},
            {"security_group_id": "<group>", "direction": "ingress", "ethertype": "IPv4", "protocol": "icmp"}]}),
        )
        .is(409),
        get("rules", N, "/v2.0/security-group-rules?security_group_id=<group>"),
        delete("rule away", N, "/v2.0/security-group-rules/<rule>"),
        delete("rule away again", N, "/v2.0/security-group-rules/<rule>").is(404),
    ]
}
