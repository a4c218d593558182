//! The infrastructure provider {{name}}.
//!
//! The host calls these functions whenever the object, or something that they read, changed; and again from the start after a crash.
//! Nothing is remembered between calls but the objects and the cloud.

mod kinds;
mod servers;
#[cfg(test)]
mod tests;

use capwasm_sdk::descriptor::{Descriptor, Role};
use capwasm_sdk::{
    Address, AddressKind, ClusterAnswer, Context, Description, Endpoint, InfrastructureCluster, InfrastructureMachine,
    Kind, MachineAnswer, Problem, Provider, object,
};
use kinds::{ClusterSpec, MachineSpec};
use serde_json::Value;

/// The provider.
pub struct {{Name}};

impl Provider for {{Name}} {
    fn describe() -> Descriptor {
        Description::new("{{name}}", env!("CARGO_PKG_VERSION"))
            .kind(
                Kind::new(Role::InfrastructureCluster, include_str!("../crds/{{lower}}clusters.json"))
                    .finalizer("{{lower}}cluster.infrastructure.cluster.x-k8s.io"),
            )
            .kind(
                Kind::new(Role::InfrastructureMachine, include_str!("../crds/{{lower}}machines.json"))
                    .finalizer("{{lower}}machine.infrastructure.cluster.x-k8s.io"),
            )
            .kind(Kind::new(Role::Template, include_str!("../crds/{{lower}}machinetemplates.json")))
            // For src/servers.rs; a real cloud is an `.origin("https://…")` instead.
            .reads("", "ConfigMap")
            .writes("", "ConfigMap")
            .build()
    }
}

impl InfrastructureCluster for {{Name}} {
    fn provision(_: &mut Context<'_>, cluster: &Value) -> Result<ClusterAnswer, Problem> {
        let spec: ClusterSpec = object::spec(cluster)?;
        let endpoint = Endpoint { host: format!("{}.{}", object::name(cluster), spec.domain), port: 6443 };
        Ok(ClusterAnswer { provisioned: true, endpoint: Some(endpoint), ..ClusterAnswer::default() })
    }

    fn deprovision(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
        Ok(true)
    }
}

impl InfrastructureMachine for {{Name}} {
    fn provision(cx: &mut Context<'_>, machine: &Value) -> Result<MachineAnswer, Problem> {
        let spec: MachineSpec = object::spec(machine)?;
        let Some(server) = servers::find(cx, machine)? else {
            let user_data = cx.host.bootstrap_data("value")?;
            servers::start(cx, machine, spec.size, &user_data);
            // What was read above calls this function again; no need to poll.
            return Err(Problem::waiting("ServerStarting", "the server was asked for and does not run yet"));
        };
        Ok(MachineAnswer {
            provisioned: true,
            provider_id: Some(format!("{{name}}:///{}", server.id)),
            addresses: vec![Address { kind: AddressKind::InternalIp, value: server.address }],
            failure_domain: None,
        })
    }

    fn deprovision(cx: &mut Context<'_>, machine: &Value) -> Result<bool, Problem> {
        servers::stop(cx, machine)
    }
}

capwasm_sdk::export_infrastructure_provider!({{Name}});
