//! Clusters of containers: an infrastructure provider for the Docker Engine.
//!
//! Every cluster gets a load balancer and every machine a container, found again by name and label, so that a pass may
//! begin anywhere. All requests go to the named endpoint `docker`. For real nodes (images of the kind project) machines
//! run privileged; with `"privileged": false` they are plain containers, as simulated nodes are.

mod bootstrap;
mod clock;
mod cloud_config;
mod cluster;
mod config;
mod descriptor;
mod engine;
mod haproxy;
mod kind_node;
mod kinds;
mod machine;
mod tar;
#[cfg(test)]
mod tests;

use capwasm_sdk::api::descriptor::Descriptor;
use capwasm_sdk::{
    ClusterAnswer, Context, InfrastructureCluster, InfrastructureMachine, MachineAnswer, Problem, Provider,
};
use serde_json::Value;

/// The provider.
pub struct Docker;

impl Provider for Docker {
    fn describe() -> Descriptor {
        descriptor::describe()
    }
}

impl InfrastructureCluster for Docker {
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem> {
        cluster::provision(cx, object)
    }

    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        cluster::deprovision(cx, object)
    }
}

impl InfrastructureMachine for Docker {
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem> {
        machine::provision(cx, object)
    }

    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        machine::deprovision(cx, object)
    }
}

capwasm_sdk::export_infrastructure_provider!(Docker);
