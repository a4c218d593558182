//! Clusters of virtual machines: an infrastructure provider for OpenStack.
//!
//! Everything in OpenStack is found again by name or tag, so that a pass may begin anywhere. Requests go to Keystone and to
//! the services of its catalog, through `cloud::Cloud` alone.

mod answer;
mod cloud;
mod cluster;
mod compute;
mod conversion;
mod descriptor;
mod floating_ip_pool;
#[doc(hidden)]
#[cfg(not(target_family = "wasm"))]
pub mod fuzzing;
mod identity;
mod image;
mod kinds;
mod late;
mod load_balancer;
mod machine;
mod machine_template;
mod names;
mod network;
mod param;
mod port;
mod server;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod volume;

use capwasm_sdk::descriptor::Descriptor;
use capwasm_sdk::{
    ClusterAnswer, Context, Controller, Conversion, InfrastructureCluster, InfrastructureMachine, MachineAnswer,
    Problem, Provider, object,
};
use serde_json::Value;

/// Cluster API's OpenStack infrastructure provider.
pub struct OpenStack;

impl Provider for OpenStack {
    fn describe() -> Descriptor {
        descriptor::describe()
    }
}

impl InfrastructureCluster for OpenStack {
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<ClusterAnswer, Problem> {
        cluster::provision(cx, object)
    }

    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        cluster::deprovision(cx, object)
    }
}

impl InfrastructureMachine for OpenStack {
    fn provision(cx: &mut Context<'_>, object: &Value) -> Result<MachineAnswer, Problem> {
        machine::provision(cx, object)
    }

    fn deprovision(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        machine::deprovision(cx, object)
    }
}

impl Controller for OpenStack {
    fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem> {
        match object::kind(object) {
            "OpenStackServer" => server::reconcile(cx, object),
            "OpenStackFloatingIPPool" => floating_ip_pool::reconcile(cx, object),
            "OpenStackMachineTemplate" => machine_template::reconcile(cx, object),
            other => Err(unknown(other)),
        }
    }

    fn delete(cx: &mut Context<'_>, object: &Value) -> Result<bool, Problem> {
        match object::kind(object) {
            "OpenStackServer" => server::delete(cx, object),
            "OpenStackFloatingIPPool" => floating_ip_pool::delete(cx, object),
            // Nothing is made for a template.
            "OpenStackMachineTemplate" => Ok(true),
            other => Err(unknown(other)),
        }
    }
}

impl Conversion for OpenStack {
    fn convert(object: Value, to: &str) -> Result<Value, Problem> {
        conversion::convert(object, to).map_err(|error| Problem::invalid("ConversionFailed", error.to_string()))
    }
}

fn unknown(kind: &str) -> Problem {
    Problem::unsupported("UnknownKind", format!("{kind} is not a kind of this provider"))
}

capwasm_sdk::export_interfaces!(
    OpenStack: descriptor, infrastructure_cluster, infrastructure_machine, controller, conversion
);
