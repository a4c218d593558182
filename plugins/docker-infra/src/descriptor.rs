//! What this provider says about itself.

use capwasm_sdk::api::descriptor::{Descriptor, Role};
use capwasm_sdk::{Description, Kind};

/// Upstream's names, so that objects can go from its provider to this one and back.
const CLUSTER_FINALIZER: &str = "dockercluster.infrastructure.cluster.x-k8s.io";
const MACHINE_FINALIZER: &str = "dockermachine.infrastructure.cluster.x-k8s.io";

/// Four kinds, one endpoint, and the Nodes of the cluster that is being provisioned.
pub fn describe() -> Descriptor {
    Description::new("docker-infra", env!("CARGO_PKG_VERSION"))
        .kind(
            Kind::new(Role::InfrastructureCluster, include_str!("../crds/dockerclusters.json"))
                .finalizer(CLUSTER_FINALIZER),
        )
        .kind(
            Kind::new(Role::InfrastructureMachine, include_str!("../crds/dockermachines.json"))
                .finalizer(MACHINE_FINALIZER),
        )
        .kind(Kind::new(Role::Template, include_str!("../crds/dockerclustertemplates.json")))
        .kind(Kind::new(Role::Template, include_str!("../crds/dockermachinetemplates.json")))
        .endpoint("docker")
        .workload_reads("", "Node")
        .workload_writes("", "Node")
        .build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn every_kind_is_served_in_v1beta2_under_its_own_definition() {
        let descriptor = describe();
        let kinds: Vec<&str> = descriptor.kinds.iter().map(|kind| kind.kind.as_str()).collect();
        assert_eq!(kinds, ["DockerCluster", "DockerMachine", "DockerClusterTemplate", "DockerMachineTemplate"]);
        for kind in &descriptor.kinds {
            assert_eq!((kind.group.as_str(), kind.version.as_str()), ("infrastructure.cluster.x-k8s.io", "v1beta2"));
            assert_eq!(kind.crd["kind"], "CustomResourceDefinition", "{}", kind.kind);
        }
    }

    #[test]
    fn the_hints_in_the_status_are_part_of_the_definitions() {
        let descriptor = describe();
        let status = |index: usize, field: &str| {
            let at = format!("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/{field}/properties");
            descriptor.kinds[index].crd.pointer(&at).unwrap().as_object().unwrap().len()
        };
        assert_eq!((status(0, "loadBalancer"), status(1, "bootstrap")), (3, 3));
    }

    #[test]
    fn it_wants_no_more_than_the_engine_and_nodes() {
        let wants = describe().wants;
        assert_eq!(wants.endpoints, ["docker"]);
        assert!(
            wants.origins.is_empty() && wants.secrets.is_empty() && wants.reads.is_empty() && wants.writes.is_empty()
        );
        assert!(!wants.pki);
    }
}
