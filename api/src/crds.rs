//! CustomResourceDefinitions of the core groups, at v1beta2. Structure (types, defaults, limits, rules, columns) is upstream's.

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

/// All of them, parsed.
pub fn core_crds() -> Vec<Value> {
    // The files are part of this crate; a test parses each.
    CRDS.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use crate::{contract, json};

    #[test]
    fn every_definition_parses_and_is_named_as_the_contract_computes() {
        let all = core_crds();
        assert_eq!(all.len(), CRDS.len());
        for crd in &all {
            let text = |pointer| json::text(crd, pointer).unwrap();
            assert_eq!(json::name(crd), contract::crd_name(text("/spec/group"), text("/spec/names/kind")));
            assert_eq!(text("/spec/versions/0/name"), "v1beta2");
            assert!(json::text(crd, "/spec/versions/0/schema/openAPIV3Schema/description").is_some());
        }
    }
}
