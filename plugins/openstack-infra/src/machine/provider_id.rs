//! `spec.providerID`, which has to be, letter by letter, what the Node of the machine says: nothing else joins the two.
//!
//! OpenStack's cloud provider gives Nodes `openstack:///<id>`, and `openstack://<region>/<id>` where it runs with
//! `OS_CCM_REGIONAL=true`. Which of them it is cannot be seen before there is a Node, so somebody has to say so: the machine,
//! with a region of its own as upstream has it, its OpenStackCluster, or the provider's configuration.

use capwasm_sdk::{Context, Host, Problem, object};
use serde_json::Value;

use crate::cloud::Cloud;
use crate::identity::IdentityRef;

/// Annotation of an OpenStackCluster: `true` or `false`, instead of the provider's configuration.
const ANNOTATION: &str = "capwasm.dev/openstack-provider-id-region";
/// The provider's configuration: Nodes have the region also where no machine names one.
const CONFIGURATION: &str = "providerIDRegion";

/// Of a machine with this server.
///
/// # Errors
/// Those of connecting, where the cloud has to tell its region.
pub fn of(cx: &Context<'_>, machine: &Value, cluster: &Value, server: &Value) -> Result<String, Problem> {
    let known = object::text(machine, "/spec/providerID");
    if !known.is_empty() {
        // The Node has it by now, whatever is said today.
        return Ok(known.to_owned());
    }
    let instance = object::text(server, "/status/instanceID");
    let own = object::text(machine, "/spec/identityRef/region");
    if !own.is_empty() || !has_region(cluster, &cx.host.configuration()) {
        return Ok(format!("openstack://{own}/{instance}"));
    }
    let identity = IdentityRef::read(server.get("spec").unwrap_or(&Value::Null))?;
    let host: &dyn Host = cx.host;
    let cloud = Cloud::connect(host, object::namespace(machine), &identity)?;
    Ok(format!("openstack://{}/{instance}", cloud.region()))
}

fn has_region(cluster: &Value, configuration: &Value) -> bool {
    match object::annotation(cluster, ANNOTATION) {
        Some("true") => true,
        Some("false") => false,
        _ => configuration.get(CONFIGURATION).and_then(Value::as_bool).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cluster_says_so_before_the_configuration() {
        let cluster = |value: &str| json!({"metadata": {"annotations": {ANNOTATION: value}}});
        let (on, off) = (json!({"providerIDRegion": true}), json!({}));
        assert!(has_region(&json!({}), &on) && has_region(&cluster("true"), &off));
        assert!(!has_region(&json!({}), &off) && !has_region(&cluster("false"), &on));
    }
}
