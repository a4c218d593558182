//! The extensions that are there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::answer::{Answer, Outcome};

const ALIASES: [&str; 44] = [
    "address-group",
    "allowed-address-pairs",
    "availability_zone",
    "binding",
    "binding-extended",
    "dns-integration",
    "empty-string-filtering",
    "ext-gw-mode",
    "external-net",
    "extra_dhcp_opt",
    "extraroute",
    "filter-validation",
    "fip-port-details",
    "l3-port-ip-change-not-allowed",
    "multi-provider",
    "net-mtu",
    "net-mtu-writable",
    "network_availability_zone",
    "pagination",
    "port-mac-address-regenerate",
    "port-resource-request",
    "port-security",
    "port-security-groups-filtering",
    "project-id",
    "provider",
    "qos",
    "quota_details",
    "quotas",
    "rbac-policies",
    "router",
    "router_availability_zone",
    "security-group",
    "security-groups-normalized-cidr",
    "security-groups-remote-address-group",
    "sorting",
    "standard-attr-description",
    "standard-attr-revisions",
    "standard-attr-tag",
    "standard-attr-timestamp",
    "stateful-security-group",
    "subnet-service-types",
    "trunk",
    "trunk-details",
    "uplink-status-propagation",
];

fn document(alias: &str) -> Value {
    let name = alias.replace(['-', '_'], " ");
    json!({ "name": name, "alias": alias, "description": name, "updated": "2017-01-01T00:00:00-00:00", "links": [] })
}

pub(super) fn list(absent: &BTreeSet<String>) -> Answer {
    let all: Vec<Value> =
        ALIASES.iter().filter(|alias| !absent.contains(**alias)).map(|alias| document(alias)).collect();
    Answer::json(200, &json!({ "extensions": all }))
}

pub(super) fn show(absent: &BTreeSet<String>, alias: &str) -> Outcome {
    if ALIASES.contains(&alias) && !absent.contains(alias) {
        return Ok(Answer::json(200, &json!({ "extension": document(alias) })));
    }
    let detail = format!("Extension with alias {alias} does not exist");
    Err(Answer::page_with(404, "The resource could not be found.", &detail))
}
