//! OpenStackFloatingIPPool: floating addresses for IPAddressClaims.

use capwasm_sdk::{Context, Problem};
use serde_json::Value;

/// Brings it nearer to what `object` asks for.
pub fn reconcile(_: &mut Context<'_>, _: &Value) -> Result<(), Problem> {
    Err(Problem::unsupported("NotImplemented", "OpenStackFloatingIPPool is not reconciled yet"))
}

/// True when nothing is left.
pub fn delete(_: &mut Context<'_>, _: &Value) -> Result<bool, Problem> {
    Err(Problem::unsupported("NotImplemented", "OpenStackFloatingIPPool is not deleted yet"))
}
