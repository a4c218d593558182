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

/// A version of the provider contract; the later is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Contract {
    /// `v1beta1`.
    V1Beta1,
    /// `v1beta2`.
    V1Beta2,
}

impl Contract {
    /// All, newest first: the order in which they are looked for.
    pub const NEWEST_FIRST: [Contract; 2] = [Contract::V1Beta2, Contract::V1Beta1];

    /// As it stands in a label key.
    pub fn as_str(self) -> &'static str {
        match self {
            Contract::V1Beta1 => "v1beta1",
            Contract::V1Beta2 => "v1beta2",
        }
    }

    /// Key of the label on a CRD that lists the versions which keep this contract.
    pub fn label(self) -> String {
        format!("{CONTRACT_PREFIX}{}", self.as_str())
    }
}

/// What an object of one role reports to core, read once by the contract that its kind keeps.
pub trait Report: Sized {
    /// Reads all of it.
    fn read(object: &Value, contract: Contract) -> Self;
}

/// Templates report nothing.
impl Report for () {
    fn read(_: &Value, _: Contract) {}
}

/// A role whose objects say by one flag that they are there.
pub trait Milestone: Report {
    /// Path of the flag, for messages: `status.initialization.provisioned`.
    fn flag(contract: Contract) -> &'static str;
}

/// The contract and the API version in which to speak to objects of a CRD: of the newest contract that its labels declare,
/// the highest version. `None` when no label does.
pub fn resolve(crd: &Value) -> Option<(Contract, String)> {
    Contract::NEWEST_FIRST.into_iter().find_map(|contract| {
        let versions = capwasm_object::meta::label(crd, &contract.label())?;
        let highest =
            versions.split('_').filter(|version| !version.is_empty()).max_by(|a, b| compare_versions(a, b))?;
        Some((contract, highest.to_owned()))
    })
}

/// The contract that one API version of a CRD keeps; the newest when several do.
pub fn of_version(crd: &Value, version: &str) -> Option<Contract> {
    Contract::NEWEST_FIRST.into_iter().find(|contract| {
        capwasm_object::meta::label(crd, &contract.label())
            .is_some_and(|versions| versions.split('_').any(|known| known == version))
    })
}

/// Name of the CRD of a kind, computed as the contract demands: `kubeadmconfigs.bootstrap.cluster.x-k8s.io`.
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
