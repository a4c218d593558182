//! OpenStackCluster: what all machines of a cluster share.

use capwasm_sdk::{ClusterAnswer, Context, Problem};
use serde_json::Value;

/// Brings the cluster's infrastructure nearer to what `object` asks for.
pub fn provision(_: &mut Context<'_>, _: &Value) -> Result<ClusterAnswer, Problem> {
    Err(Problem::unsupported("NotImplemented", "OpenStackCluster is not reconciled yet"))
}

/// True when nothing is left.
pub fn deprovision(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
    Err(Problem::unsupported("NotImplemented", "OpenStackCluster is not deleted yet"))
}
