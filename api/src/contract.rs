//! What core reads from provider objects, by the contract that their CRD declares.
//!
//! Provider objects stay untyped: their kinds are not known here. Only the paths of the contract are read; everything else is
//! the provider's own. Each role has a type for what it reports ([`Report`]). A flag of the v1beta1 contract may be `status.ready` where v1beta2 has `status.initialization.*`.

pub mod bootstrap;
pub mod control_plane;
pub mod infrastructure;

pub use bootstrap::BootstrapConfig;
pub use control_plane::ControlPlane;
pub use infrastructure::{InfrastructureCluster, InfrastructureMachine, InfrastructurePool};

use capwasm_object::group_version::compare_versions;
use serde_json::Value;

use crate::names::labels::CONTRACT_PREFIX;

/// Version of the provider contract; newer ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contract {
    /// Contract `v1beta1` of Cluster API.
    V1Beta1,
    /// Contract `v1beta2` of Cluster API.
    V1Beta2,
}

impl Contract {
    /// All versions, newest first.
    pub const NEWEST_FIRST: [Contract; 2] = [Contract::V1Beta2, Contract::V1Beta1];

    /// As in a label key, such as `v1beta2`.
    pub fn as_str(self) -> &'static str {
        match self {
            Contract::V1Beta1 => "v1beta1",
            Contract::V1Beta2 => "v1beta2",
        }
    }

    /// Key of the CRD label that lists the API versions of this contract.
    pub fn label(self) -> String {
        format!("{CONTRACT_PREFIX}{}", self.as_str())
    }
}

/// What a provider object reports to core.
pub trait Report: Sized {
    /// Reads an object by the contract of its kind.
    fn read(object: &Value, contract: Contract) -> Self;
}

/// Templates report nothing.
impl Report for () {
    fn read(_: &Value, _: Contract) {}
}

/// Reports of roles with a flag that says that their object is provisioned.
pub trait Milestone: Report {
    /// Path of the flag for messages, such as `status.initialization.provisioned`.
    fn flag(contract: Contract) -> &'static str;
}

/// The newest contract in the labels of a CRD, with its highest API version. `None` without such a label.
pub fn resolve(crd: &Value) -> Option<(Contract, String)> {
    Contract::NEWEST_FIRST.into_iter().find_map(|contract| {
        let versions = capwasm_object::meta::label(crd, &contract.label())?;
        let highest =
            versions.split('_').filter(|version| !version.is_empty()).max_by(|a, b| compare_versions(a, b))?;
        Some((contract, highest.to_owned()))
    })
}

/// The contract of an API version of a CRD; the newest of several.
pub fn of_version(crd: &Value, version: &str) -> Option<Contract> {
    Contract::NEWEST_FIRST.into_iter().find(|contract| {
        capwasm_object::meta::label(crd, &contract.label())
            .is_some_and(|versions| versions.split('_').any(|known| known == version))
    })
}

/// Name of a kind's CRD, which the contract prescribes: `kubeadmconfigs.bootstrap.cluster.x-k8s.io`.
pub fn crd_name(group: &str, kind: &str) -> String {
    format!("{}.{group}", plural(&kind.to_lowercase()))
}

fn plural(word: &str) -> String {
    let vowel_before_y = || word.chars().rev().nth(1).is_some_and(|letter| "aeiou".contains(letter));
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end)) {
        format!("{word}es")
    } else if word.ends_with('y') && !vowel_before_y() {
        format!("{}ies", &word[..word.len() - 1])
    } else {
        format!("{word}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn c4_the_newest_contract_and_its_highest_version_are_spoken() {
        for (what, labels, expected) in [
            (
                "both",
                json!({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta1_v1beta2"}),
                Some((Contract::V1Beta2, "v1beta2")),
            ),
            ("old only", json!({"cluster.x-k8s.io/v1beta1": "v1alpha7_v1beta1"}), Some((Contract::V1Beta1, "v1beta1"))),
            (
                "stable beats beta",
                json!({"cluster.x-k8s.io/v1beta2": "v1_v1beta9_v1alpha3"}),
                Some((Contract::V1Beta2, "v1")),
            ),
            (
                "an empty label says nothing",
                json!({"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1"}),
                Some((Contract::V1Beta1, "v1")),
            ),
            ("none", json!({"cluster.x-k8s.io/provider": "x"}), None),
        ] {
            let crd = json!({"metadata": {"labels": labels}});
            assert_eq!(resolve(&crd), expected.map(|(contract, version)| (contract, version.to_owned())), "{what}");
        }
        let crd = json!({"metadata": {"labels": {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}}});
        assert_eq!(of_version(&crd, "v1beta1"), Some(Contract::V1Beta1));
        assert_eq!(of_version(&crd, "v1"), None);
    }

    #[test]
    fn names_of_crds_are_computed_plurals() {
        for (kind, expected) in [
            ("KubeadmConfig", "kubeadmconfigs.g"),
            ("OpenStackClusterIdentity", "openstackclusteridentities.g"),
            ("MachineClass", "machineclasses.g"),
            ("IPAddress", "ipaddresses.g"),
            ("Gateway", "gateways.g"),
        ] {
            assert_eq!(crd_name("g", kind), expected);
        }
    }
}
