//! Failure domains: Nova's availability zones.

use std::collections::BTreeSet;

use capwasm_sdk::{FailureDomain, Problem, object};
use serde_json::Value;

use super::pass::Pass;
use super::spec::Spec;
use crate::cloud::{Query, Service};

/// All zones that Nova has, sorted.
pub fn read(pass: &Pass<'_>) -> Result<Vec<FailureDomain>, Problem> {
    let found = pass.cloud.list(Service::Compute, "/os-availability-zone", "availabilityZoneInfo", &Query::new())?;
    let mut names = BTreeSet::new();
    names.extend(found.iter().map(|zone| object::text(zone, "/zoneName")));
    let domain = |name: &str| FailureDomain {
        name: name.to_owned(),
        control_plane: is_for_control_plane(&pass.spec, name),
        attributes: Vec::new(),
    };
    Ok(names.into_iter().filter(|name| !name.is_empty()).map(domain).collect())
}

/// Zones that are named are; without names all are, or none.
fn is_for_control_plane(spec: &Spec, zone: &str) -> bool {
    if spec.control_plane_availability_zones.is_empty() {
        return !spec.control_plane_omit_availability_zone;
    }
    spec.control_plane_availability_zones.iter().any(|named| named == zone)
}

/// Those of the status, as they were answered before.
pub fn known(object: &Value) -> Vec<FailureDomain> {
    let domains = object.pointer("/status/failureDomains").and_then(Value::as_object);
    let domains = domains.into_iter().flatten().map(|(name, domain)| FailureDomain {
        name: name.clone(),
        control_plane: domain.get("controlPlane").and_then(Value::as_bool).unwrap_or_default(),
        attributes: attributes(domain),
    });
    domains.collect()
}

fn attributes(domain: &Value) -> Vec<(String, String)> {
    let attributes = domain.get("attributes").and_then(Value::as_object).into_iter().flatten();
    attributes.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn control_planes_are_where_the_spec_says() {
        let spec = |zones: &[&str], omit: bool| Spec {
            control_plane_availability_zones: zones.iter().map(|&zone| zone.to_owned()).collect(),
            control_plane_omit_availability_zone: omit,
            ..Spec::default()
        };
        let table = [
            (spec(&[], false), true, true),
            (spec(&[], true), false, false),
            (spec(&["a"], false), true, false),
            (spec(&["a"], true), true, false),
        ];
        for (spec, a, b) in table {
            assert_eq!([is_for_control_plane(&spec, "a"), is_for_control_plane(&spec, "b")], [a, b], "{spec:?}");
        }
    }
}
