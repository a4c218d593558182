//! What this provider says about itself.

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{Description, Kind};

/// Upstream's names, so that objects can go from its provider to this one and back.
const CLUSTER_FINALIZER: &str = "dockercluster.infrastructure.cluster.x-k8s.io";
const MACHINE_FINALIZER: &str = "dockermachine.infrastructure.cluster.x-k8s.io";
const POOL_FINALIZER: &str = "dockermachinepool.infrastructure.cluster.x-k8s.io";
const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// Six kinds, one endpoint, the Nodes of the cluster that is being provisioned, templates of load balancers, and what a pool is
/// made of.
pub fn describe() -> Descriptor {
    Description::new("docker-infra", env!("CARGO_PKG_VERSION"))
        .kind(
            Kind::new(Role::InfrastructureCluster, include_str!("../crds/dockerclusters.json"))
                .finalizer(CLUSTER_FINALIZER),
        )
        .kind(
            Kind::new(Role::InfrastructureMachine, include_str!("../crds/dockermachines.json"))
                .finalizer(MACHINE_FINALIZER)
                .may_wait("addresses")
                .may_wait("bootstrap")
                .may_wait("failureDomain")
                .may_wait("ContainerProvisioned"),
        )
        .kind(Kind::new(Role::Template, include_str!("../crds/dockerclustertemplates.json")))
        .kind(Kind::new(Role::Template, include_str!("../crds/dockermachinetemplates.json")))
        .kind(
            Kind::new(Role::InfrastructureMachinePool, include_str!("../crds/dockermachinepools.json"))
                .finalizer(POOL_FINALIZER)
                .own("spec.providerID"),
        )
        .kind(Kind::new(Role::Template, include_str!("../crds/dockermachinepooltemplates.json")))
        .endpoint("docker")
        .reads("", "ConfigMap")
        .reads(GROUP, "DockerMachine")
        .writes(GROUP, "DockerMachine")
        .reads("cluster.x-k8s.io", "Machine")
        .writes("cluster.x-k8s.io", "Machine")
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
        assert_eq!(
            kinds,
            [
                "DockerCluster",
                "DockerMachine",
                "DockerClusterTemplate",
                "DockerMachineTemplate",
                "DockerMachinePool",
                "DockerMachinePoolTemplate"
            ]
        );
        for kind in &descriptor.kinds {
            assert_eq!((kind.group.as_str(), kind.version.as_str()), ("infrastructure.cluster.x-k8s.io", "v1beta2"));
            assert_eq!(kind.crd["kind"], "CustomResourceDefinition", "{}", kind.kind);
        }
    }

    #[test]
    fn the_hints_in_the_status_are_part_of_the_definitions() {
        let descriptor = describe();
        let has = |index: usize, field: &str, name: &str| {
            let at = format!(
                "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/{field}/properties/{name}"
            );
            assert!(descriptor.kinds[index].crd.pointer(&at).is_some(), "{field}.{name}");
        };
        for name in ["containerID", "configuration", "address", "backends"] {
            has(0, "loadBalancer", name);
        }
        for name in ["startedAt", "exec"] {
            has(1, "bootstrap", name);
        }
    }

    #[test]
    fn it_wants_no_more_than_the_engine_nodes_templates_and_the_members_of_pools() {
        let wants = describe().wants;
        let names = |patterns: &[capwasm_sdk::descriptor::KindPattern]| -> Vec<String> {
            patterns.iter().map(|pattern| pattern.kind.clone()).collect()
        };
        assert_eq!(wants.endpoints, ["docker"]);
        assert_eq!(names(&wants.reads), ["ConfigMap", "DockerMachine", "Machine"]);
        assert_eq!(names(&wants.writes), ["DockerMachine", "Machine"]);
        assert!(wants.origins.is_empty() && wants.secrets.is_empty() && !wants.pki);
    }
}
