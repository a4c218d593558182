//! A server's floating address out of a pool: claimed, waited for, led to the server's port, and given back.

use capwasm_sdk::{Context, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Value, json};

use super::Subject;
use super::addresses;
use super::spec::{PoolRef, PortId};
use crate::cloud::{Cloud, Query};
use crate::kinds::{CLAIM_FINALIZER, CLUSTER_NAME_LABEL, FLOATING_ADDRESS_READY, GROUP, IPAM_GROUP, V1ALPHA1};
use crate::network::{self, FloatingIp, Port, Router};

/// The condition's reason while the pool has not answered.
const WAITING: &str = "WaitingForIPAMProvider";
/// The condition's reason when something is wrong.
const ERROR: &str = "FloatingIPError";
/// Owners of the ports that routers have in networks.
const ROUTER_INTERFACES: [&str; 4] = [
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
    "network:router_ha_interface",
];

/// Claims an address from the pool. None until there is one.
pub fn claim(cx: &mut Context<'_>, subject: &Subject<'_>, pool: &PoolRef) -> Result<Option<String>, Problem> {
    let name = claim_name(subject);
    let waiting = |cx: &mut Context<'_>| {
        let message = format!("Waiting for IPAddressClaim {name} to be allocated");
        cx.out.condition(FLOATING_ADDRESS_READY, Some(false), WAITING, message);
    };
    // Read: both wake when they come, and when they change.
    let Some(claim) = cx.host.lookup(&target("IPAddressClaim", &name)).optional()? else {
        cx.out.create("address-claim", Place::Management, new_claim(subject, &name, pool));
        waiting(cx);
        return Ok(None);
    };
    let address_name = object::text(&claim, "/status/addressRef/name");
    if address_name.is_empty() {
        waiting(cx);
        return Ok(None);
    }
    let Some(address) = cx.host.lookup(&target("IPAddress", address_name)).optional()? else {
        waiting(cx);
        return Ok(None);
    };
    Ok(Some(object::text(&address, "/spec/address").to_owned()))
}

/// Leads the floating address to the port that its network can be reached from.
pub fn associate(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    ports: &[PortId],
    shown: &[Value],
    address: &str,
) -> Result<(), Problem> {
    let result = lead(cx, cloud, ports, shown, address);
    match &result {
        Ok(()) => cx.out.condition(FLOATING_ADDRESS_READY, Some(true), "Ready", ""),
        Err(problem) => cx.out.condition(FLOATING_ADDRESS_READY, Some(false), ERROR, problem.message.clone()),
    };
    result
}

fn lead(
    cx: &mut Context<'_>,
    cloud: &Cloud<'_>,
    ports: &[PortId],
    shown: &[Value],
    address: &str,
) -> Result<(), Problem> {
    if addresses::has(shown, address) {
        return Ok(());
    }
    let floating = by_address(cloud, address)?
        .ok_or_else(|| Problem::invalid(ERROR, format!("floating IP {address} does not exist")))?;
    if ports.iter().any(|port| floating.port_id.as_deref() == Some(port.id.as_str())) {
        return Ok(());
    }
    let port = reachable(cloud, ports, &floating.floating_network_id)?.ok_or_else(|| {
        let network = &floating.floating_network_id;
        Problem::invalid(ERROR, format!("Can't find port for floating IP {address} on external network {network}"))
    })?;
    network::update::<FloatingIp>(cloud, &floating.id, json!({"port_id": port}))?;
    cx.out.event("SuccessfulAssociateFloatingIP", format!("Associated floating IP {address} with port {port}"));
    Ok(())
}

/// The project's floating IP of that address.
pub fn by_address(cloud: &Cloud<'_>, address: &str) -> Result<Option<FloatingIp>, Problem> {
    let query = Query::new().with("floating_ip_address", address).with("project_id", cloud.project_id());
    Ok(network::list::<FloatingIp>(cloud, &query)?.into_iter().next())
}

/// The first port whose subnet has a router with a gateway to the external network.
fn reachable(cloud: &Cloud<'_>, ports: &[PortId], external: &str) -> Result<Option<String>, Problem> {
    for port in ports {
        let Some(port) = network::get::<Port>(cloud, &port.id)? else { continue };
        let query = Query::new().with("network_id", port.network_id.as_str());
        let query = ROUTER_INTERFACES.iter().fold(query, |query, owner| query.with("device_owner", *owner));
        for interface in network::list::<Port>(cloud, &query)? {
            let shares = |subnet: &str| port.fixed_ips.iter().any(|own| own.subnet_id == subnet);
            if !interface.fixed_ips.iter().any(|address| shares(&address.subnet_id)) {
                continue;
            }
            let router = network::get::<Router>(cloud, &interface.device_id)?;
            let gateway = router.and_then(|router| router.external_gateway_info);
            if gateway.is_some_and(|gateway| gateway.network_id == external) {
                return Ok(Some(port.id));
            }
        }
    }
    Ok(None)
}

/// Gives the address back. True when the claim is gone.
pub fn release(cx: &mut Context<'_>, subject: &Subject<'_>) -> Result<bool, Problem> {
    if subject.spec.floating_ip_pool_ref.is_none() {
        return Ok(true);
    }
    let target = target("IPAddressClaim", &claim_name(subject));
    let Some(claim) = cx.host.lookup(&target).optional()? else { return Ok(true) };
    if !is_owned(&claim, subject) {
        return Ok(true);
    }
    if let Some(patch) = without_finalizer(&claim, CLAIM_FINALIZER) {
        cx.out.patch("release-claim", Place::Management, target.clone(), patch);
    }
    cx.out.delete("delete-claim", Place::Management, target, Some(object::uid(&claim).to_owned()));
    Ok(false)
}

/// A patch that takes a finalizer away; none where it is not there.
pub fn without_finalizer(found: &Value, finalizer: &str) -> Option<Value> {
    let finalizers = found.pointer("/metadata/finalizers")?.as_array()?;
    let others: Vec<&Value> = finalizers.iter().filter(|known| known.as_str() != Some(finalizer)).collect();
    (others.len() < finalizers.len()).then(
        || json!({"metadata": {"finalizers": others, "resourceVersion": found.pointer("/metadata/resourceVersion")}}),
    )
}

fn is_owned(claim: &Value, subject: &Subject<'_>) -> bool {
    let owners = claim.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners
        .into_iter()
        .flatten()
        .any(|owner| object::text(owner, "/kind") == "OpenStackServer" && object::text(owner, "/name") == subject.name)
}

fn claim_name(subject: &Subject<'_>) -> String {
    format!("{}-floating-ip-address", subject.name)
}

fn target(kind: &str, name: &str) -> ObjectRef {
    ObjectRef::new(format!("{IPAM_GROUP}/"), kind, name)
}

fn new_claim(subject: &Subject<'_>, name: &str, pool: &PoolRef) -> Value {
    let group = if pool.api_group.is_empty() { GROUP } else { pool.api_group.as_str() };
    let mut claim = json!({
        // The oldest that is still served everywhere.
        "apiVersion": format!("{IPAM_GROUP}/v1beta1"),
        "kind": "IPAddressClaim",
        "metadata": {
            "name": name,
            "finalizers": [CLAIM_FINALIZER],
            "ownerReferences": [{
                "apiVersion": V1ALPHA1,
                "kind": "OpenStackServer",
                "name": subject.name,
                "uid": object::uid(subject.object),
                "controller": true,
            }],
        },
        "spec": {"poolRef": {"apiGroup": group, "kind": pool.kind, "name": pool.name}},
    });
    if !subject.cluster.is_empty() {
        object::merge(&mut claim, &json!({"metadata": {"labels": {CLUSTER_NAME_LABEL: subject.cluster}}}));
    }
    claim
}
