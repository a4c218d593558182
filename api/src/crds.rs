//! CustomResourceDefinitions of the core groups: v1beta2, which is stored, and the older served versions. Their
//! structure (types, defaults, limits, rules, columns) is upstream's.

use serde_json::Value;

const CRDS: [&str; 13] = [
    include_str!("../crds/clusters.json"),
    include_str!("../crds/machines.json"),
    include_str!("../crds/machinesets.json"),
    include_str!("../crds/machinedeployments.json"),
    include_str!("../crds/machinepools.json"),
    include_str!("../crds/machinehealthchecks.json"),
    include_str!("../crds/machinedrainrules.json"),
    include_str!("../crds/clusterclasses.json"),
    include_str!("../crds/clusterresourcesets.json"),
    include_str!("../crds/clusterresourcesetbindings.json"),
    include_str!("../crds/ipaddressclaims.json"),
    include_str!("../crds/ipaddresses.json"),
    include_str!("../crds/extensionconfigs.json"),
];

/// All CRDs, parsed.
pub fn core_crds() -> Vec<Value> {
    // The files are part of this crate; a test parses each.
    CRDS.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::contract;
    use capwasm_object::{json, meta};

    #[test]
    fn every_definition_parses_and_is_named_as_the_contract_computes() {
        let all = core_crds();
        assert_eq!(all.len(), CRDS.len());
        for crd in &all {
            let text = |pointer| json::text(crd, pointer).unwrap();
            assert_eq!(meta::name(crd), contract::crd_name(text("/spec/group"), text("/spec/names/kind")));
            assert_eq!(text("/spec/versions/0/name"), "v1beta2");
            assert!(json::text(crd, "/spec/versions/0/schema/openAPIV3Schema/description").is_some());
        }
    }

    #[test]
    fn every_older_version_is_served_and_converted_and_only_the_first_is_stored() {
        for crd in &core_crds() {
            let (group, kind) = (json::text(crd, "/spec/group").unwrap(), json::text(crd, "/spec/names/kind").unwrap());
            let versions = json::items(crd, "/spec/versions");
            assert!(versions.len() > 1, "{kind}");
            for (index, version) in versions.iter().enumerate() {
                let name = version["name"].as_str().unwrap();
                assert_eq!(
                    (&version["served"], &version["storage"]),
                    (&true.into(), &(index == 0).into()),
                    "{kind} {name}"
                );
                assert_eq!(
                    version["deprecated"] == true,
                    index > 0 && !(group.starts_with("ipam") && index == 2),
                    "{kind} {name}"
                );
                let object = serde_json::json!({"apiVersion": format!("{group}/{name}"), "kind": kind});
                let converted = crate::conversion::convert_core(object, &format!("{group}/v1beta2")).unwrap();
                assert_eq!(json::text(&converted, "/apiVersion"), Some(format!("{group}/v1beta2").as_str()));
            }
            assert_eq!(meta::label(crd, "cluster.x-k8s.io/v1beta2"), Some("v1beta2"), "{kind}");
        }
    }
}
