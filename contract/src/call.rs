//! What is called, and the facts that a call begins with.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::descriptor::Role;
use crate::refused::Refused;

/// The functions that the roles export. Written as `interface.function`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum Function {
    /// `infrastructure-cluster.provision`
    ClusterProvision,
    /// `infrastructure-cluster.deprovision`
    ClusterDeprovision,
    /// `infrastructure-machine.provision`
    MachineProvision,
    /// `infrastructure-machine.deprovision`
    MachineDeprovision,
    /// `infrastructure-machine-pool.provision`
    PoolProvision,
    /// `infrastructure-machine-pool.deprovision`
    PoolDeprovision,
    /// `bootstrap.generate`
    BootstrapGenerate,
    /// `bootstrap.release`
    BootstrapRelease,
    /// `control-plane.reconcile`
    ControlPlaneReconcile,
    /// `control-plane.delete`
    ControlPlaneDelete,
    /// `controller.reconcile`
    ControllerReconcile,
    /// `controller.delete`
    ControllerDelete,
}

impl Function {
    /// All of them.
    pub const ALL: [Function; 12] = [
        Function::ClusterProvision,
        Function::ClusterDeprovision,
        Function::MachineProvision,
        Function::MachineDeprovision,
        Function::PoolProvision,
        Function::PoolDeprovision,
        Function::BootstrapGenerate,
        Function::BootstrapRelease,
        Function::ControlPlaneReconcile,
        Function::ControlPlaneDelete,
        Function::ControllerReconcile,
        Function::ControllerDelete,
    ];

    /// The role whose interface has this function.
    pub fn role(self) -> Role {
        match self {
            Function::ClusterProvision | Function::ClusterDeprovision => Role::InfrastructureCluster,
            Function::MachineProvision | Function::MachineDeprovision => Role::InfrastructureMachine,
            Function::PoolProvision | Function::PoolDeprovision => Role::InfrastructureMachinePool,
            Function::BootstrapGenerate | Function::BootstrapRelease => Role::Bootstrap,
            Function::ControlPlaneReconcile | Function::ControlPlaneDelete => Role::ControlPlane,
            Function::ControllerReconcile | Function::ControllerDelete => Role::Controller,
        }
    }

    /// `interface.function`, as in the WIT.
    pub fn name(self) -> &'static str {
        match self {
            Function::ClusterProvision => "infrastructure-cluster.provision",
            Function::ClusterDeprovision => "infrastructure-cluster.deprovision",
            Function::MachineProvision => "infrastructure-machine.provision",
            Function::MachineDeprovision => "infrastructure-machine.deprovision",
            Function::PoolProvision => "infrastructure-machine-pool.provision",
            Function::PoolDeprovision => "infrastructure-machine-pool.deprovision",
            Function::BootstrapGenerate => "bootstrap.generate",
            Function::BootstrapRelease => "bootstrap.release",
            Function::ControlPlaneReconcile => "control-plane.reconcile",
            Function::ControlPlaneDelete => "control-plane.delete",
            Function::ControllerReconcile => "controller.reconcile",
            Function::ControllerDelete => "controller.delete",
        }
    }

    /// The interface and the function by itself, as in the WIT: `("bootstrap", "generate")`.
    pub fn interface_and_function(self) -> (&'static str, &'static str) {
        self.name().split_once('.').unwrap_or_default()
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Function> for &'static str {
    fn from(function: Function) -> &'static str {
        function.name()
    }
}

impl TryFrom<String> for Function {
    type Error = String;

    fn try_from(name: String) -> Result<Function, String> {
        let found = Function::ALL.into_iter().find(|function| function.name() == name);
        found.ok_or_else(|| format!("{name:?} is no function of the contract"))
    }
}

/// The facts behind the `call` interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Milliseconds since 1970; WASI's wall clock stands at this instant.
    pub now_ms: u64,
    /// 1 for the first try since the object, or something that was read, changed.
    pub attempt: u32,
    /// Correlates logs, traces and recordings.
    pub id: String,
    /// The provider's configuration, JSON text. Empty is answered as `{}`.
    pub configuration: String,
    /// Objects that the host holds for this call, JSON text by role: `cluster`, `machine`, `machines` ...
    pub related: BTreeMap<String, Vec<String>>,
    /// How the operations of the previous pass ended, by key.
    pub results: Vec<(String, Result<(), Refused>)>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::{json, to_value};

    #[test]
    fn a_function_is_written_by_its_name_in_the_interface_of_its_role() {
        for function in Function::ALL {
            assert_eq!(to_value(function).unwrap(), json!(function.name()));
            assert_eq!(serde_json::from_value::<Function>(json!(function.name())).unwrap(), function);
            assert_eq!(to_value(function.role()).unwrap(), json!(function.interface_and_function().0));
        }
        let unknown = serde_json::from_value::<Function>(json!("bootstrap.degenerate")).unwrap_err();
        assert_eq!(unknown.to_string(), "\"bootstrap.degenerate\" is no function of the contract");
    }
}
