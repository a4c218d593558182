//! Clusters of containers: an infrastructure provider for the Docker Engine.
//!
//! Every cluster gets a load balancer and every machine a container, found again by name and label, so that a pass may
//! begin anywhere. All requests go to the named endpoint `docker`. For real nodes (images of the kind project) machines
//! run privileged; with `"privileged": false` they are plain containers, as simulated nodes are.

mod bootstrap;
mod cloud_config;
mod cluster;
mod config;
mod conversion;
mod deprecated;
mod descriptor;
mod engine;
mod family;
#[doc(hidden)]
#[cfg(not(target_family = "wasm"))]
pub mod fuzzing;
mod haproxy;
mod ignition;
mod kind_node;
mod kinds;
mod machine;
mod network;
mod ownership;
mod pool;
mod ports;
mod recipe;
mod tar;
#[cfg(test)]
mod tests;

use capwasm_sdk::descriptor::Descriptor;
use capwasm_sdk::{
    ClusterAnswer, Context, Conversion, InfrastructureCluster, InfrastructureMachine, InfrastructureMachinePool,
    MachineAnswer, PoolAnswer, Problem, Provider,
};
use serde_json::Value;

/// Cluster API's Docker infrastructure provider: machines are containers.
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

impl InfrastructureMachinePool for Docker {
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<PoolAnswer, Problem> {
        pool::provision(cx, object)
    }

    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        pool::deprovision(cx, object)
    }
}

impl Conversion for Docker {
    fn convert(object: Value, to: &str) -> Result<Value, Problem> {
        conversion::convert(object, to).map_err(|error| Problem::invalid("ConversionFailed", error.to_string()))
    }
}

capwasm_sdk::export_interfaces!(
    Docker: descriptor, infrastructure_cluster, infrastructure_machine, infrastructure_machine_pool, conversion
);
