//! OpenStackMachine: one machine, made of an OpenStackServer.

use capwasm_sdk::{Context, MachineAnswer, Problem};
use serde_json::Value;

/// Brings the machine nearer to what `object` asks for.
pub fn provision(_: &mut Context<'_>, _: &Value) -> Result<MachineAnswer, Problem> {
    Err(Problem::unsupported("NotImplemented", "OpenStackMachine is not reconciled yet"))
}

/// True when nothing is left.
pub fn deprovision(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
    Err(Problem::unsupported("NotImplemented", "OpenStackMachine is not deleted yet"))
}
