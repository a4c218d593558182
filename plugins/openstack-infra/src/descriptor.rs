//! What this provider says about itself.

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Description, Kind};

use crate::kinds::{CLUSTER_FINALIZER, GROUP, IPAM_GROUP, MACHINE_FINALIZER, POOL_FINALIZER, SERVER_FINALIZER};

/// Versions that objects are handed over and stored in, as upstream stores them.
const V1BETA1: &str = "v1beta1";
const V1ALPHA1: &str = "v1alpha1";

/// Seven kinds; the credentials' Secrets, and what clusters are made of.
pub fn describe() -> Descriptor {
    Description::new("openstack-infra", env!("CARGO_PKG_VERSION"))
        .kind(
            Kind::new(Role::InfrastructureCluster, include_str!("../crds/openstackclusters.json"))
                .version(V1BETA1)
                .finalizer(CLUSTER_FINALIZER),
        )
        .kind(
            Kind::new(Role::InfrastructureMachine, include_str!("../crds/openstackmachines.json"))
                .version(V1BETA1)
                .finalizer(MACHINE_FINALIZER)
                .own("spec.providerID"),
        )
        .kind(Kind::new(Role::Template, include_str!("../crds/openstackclustertemplates.json")).version(V1BETA1))
        // Its status says what its machines would have.
        .kind(Kind::new(Role::Controller, include_str!("../crds/openstackmachinetemplates.json")).version(V1BETA1))
        .kind(
            Kind::new(Role::Controller, include_str!("../crds/openstackservers.json"))
                .version(V1ALPHA1)
                .finalizer(SERVER_FINALIZER)
                .bootstrap_data("spec.userDataRef.name"),
        )
        .kind(
            Kind::new(Role::Controller, include_str!("../crds/openstackfloatingippools.json"))
                .version(V1ALPHA1)
                .finalizer(POOL_FINALIZER),
        )
        .kind(Kind::new(Role::Template, include_str!("../crds/openstackclusteridentities.json")).version(V1ALPHA1))
        // clouds.yaml may stand in any Secret. Which clouds it may name is for the grants to say: no origin is wanted.
        .secret("*")
        .reads("", "Namespace")
        .reads("cluster.x-k8s.io", "*")
        .reads(GROUP, "*")
        .reads(IPAM_GROUP, "IPAddressClaim")
        .reads(IPAM_GROUP, "IPAddress")
        .reads("openstack.k-orc.cloud", "Image")
        .writes(GROUP, "OpenStackServer")
        .writes(GROUP, "OpenStackMachine")
        .writes(IPAM_GROUP, "IPAddressClaim")
        .writes(IPAM_GROUP, "IPAddress")
        .build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_kind_is_spoken_in_the_version_that_upstream_stores() {
        let told: Vec<(String, String)> =
            describe().kinds.into_iter().map(|kind| (format!("{}/{}", kind.group, kind.version), kind.kind)).collect();
        let kinds = [
            ("v1beta1", "OpenStackCluster"),
            ("v1beta1", "OpenStackMachine"),
            ("v1beta1", "OpenStackClusterTemplate"),
            ("v1beta1", "OpenStackMachineTemplate"),
            ("v1alpha1", "OpenStackServer"),
            ("v1alpha1", "OpenStackFloatingIPPool"),
            ("v1alpha1", "OpenStackClusterIdentity"),
        ];
        let wanted = kinds.map(|(version, kind)| (format!("{GROUP}/{version}"), kind.to_owned()));
        assert_eq!(told, wanted);
        for kind in describe().kinds {
            let versions = kind.crd["spec"]["versions"].as_array().unwrap();
            let stored: Vec<&Value> = versions.iter().filter(|version| version["storage"] == true).collect();
            assert_eq!((stored.len(), stored[0]["name"].as_str()), (1, Some(kind.version.as_str())), "{}", kind.kind);
            assert!(versions.iter().all(|version| version["served"] == true), "{}", kind.kind);
            // The contract in force is that of the spoken version, also where an API server serves no other.
            assert_eq!(
                kind.crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta1"],
                kind.version.as_str(),
                "{}",
                kind.kind
            );
            let both = kind.version == "v1beta1";
            assert_eq!(versions.iter().any(|version| version["name"] == "v1beta2"), both, "{}", kind.kind);
        }
    }

    #[test]
    fn it_wants_credentials_and_what_clusters_are_made_of_and_no_more() {
        let wants = describe().wants;
        assert_eq!(wants.secrets, ["*"]);
        assert!(wants.origins.is_empty() && wants.endpoints.is_empty() && !wants.pki && !wants.etcd);
        assert!(wants.workload_reads.is_empty() && wants.workload_writes.is_empty());
        let writes: Vec<&str> = wants.writes.iter().map(|pattern| pattern.kind.as_str()).collect();
        assert_eq!(writes, ["OpenStackServer", "OpenStackMachine", "IPAddressClaim", "IPAddress"]);
    }
}
