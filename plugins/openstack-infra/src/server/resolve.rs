//! What the references of a spec stand for: looked up once, and kept in `status.resolved` before anything is made.

use capwasm_sdk::{Host, ObjectRef, Optional, Problem, object};
use serde_json::Value;

use super::spec::{PortSpec, Resolved, ResolvedFixedIp, ResolvedPort, ServerSpec};
use crate::cloud::{Cloud, Query};
use crate::network::{self, Network, SecurityGroup, Subnet};
use crate::param::Param;
use crate::{compute, image, names, port};

/// What came of looking things up.
pub enum Resolution {
    Done(Resolved),
    /// These objects of the management cluster have to be there first; they wake.
    Pending(Vec<String>),
}

/// Looks everything up.
///
/// # Errors
/// Invalid where a reference leads nowhere, or to several.
pub fn resolve(
    host: &dyn Host,
    cloud: &Cloud<'_>,
    server: &str,
    description: &str,
    spec: &ServerSpec,
) -> Result<Resolution, Problem> {
    let Some(image_id) = image_id(host, cloud, &spec.image)? else {
        let name = object::text(&spec.image, "/imageRef/name");
        return Ok(Resolution::Pending(vec![format!("Image {name}")]));
    };
    Ok(Resolution::Done(Resolved {
        server_group_id: server_group_id(cloud, &spec.server_group)?,
        image_id,
        flavor_id: flavor_id(cloud, &spec.flavor_id, &spec.flavor)?,
        ports: ports(cloud, server, description, spec)?,
    }))
}

/// The image's id; none while the Image object that it comes from is not available.
///
/// # Errors
/// Invalid: no image, or several; terminal where the Image object failed for good.
pub fn image_id(host: &dyn Host, cloud: &Cloud<'_>, wanted: &Value) -> Result<Option<String>, Problem> {
    let reference = object::text(wanted, "/imageRef/name");
    if !reference.is_empty() {
        // Read: it wakes when the Image comes, and when it becomes available.
        let found = host.lookup(&ObjectRef::new("openstack.k-orc.cloud/", "Image", reference)).optional()?;
        return found.as_ref().map_or(Ok(None), available_image);
    }
    match Param::read(wanted, "spec.image")? {
        Some(Param::Id(id)) => Ok(Some(id)),
        Some(Param::Filter(filter)) => {
            let found = image::images(cloud, &filter.image_query())?;
            only(found, "image", &filter_text(wanted)).map(|image| Some(image.id))
        }
        None => Err(Problem::invalid("InvalidMachineSpec", "spec.image names no image: use id, filter or imageRef")),
    }
}

/// The id of an Image of the OpenStack Resource Controller, once Glance has it.
fn available_image(found: &Value) -> Result<Option<String>, Problem> {
    let id = object::text(found, "/status/id");
    if object::is_true(found, "Available") && !id.is_empty() {
        return Ok(Some(id.to_owned()));
    }
    match object::condition(found, "Progressing") {
        Some(progress)
            if object::text(progress, "/status") == "False"
                && matches!(object::text(progress, "/reason"), "InvalidConfiguration" | "UnrecoverableError") =>
        {
            let message = format!("Image {} failed: {}", object::name(found), object::text(progress, "/message"));
            Err(Problem::terminal("DependencyFailed", message))
        }
        _ => Ok(None),
    }
}

/// The flavor's id, by either.
///
/// # Errors
/// Invalid: there is none of that name.
pub fn flavor_id(cloud: &Cloud<'_>, id: &str, name: &str) -> Result<String, Problem> {
    if !id.is_empty() {
        return Ok(id.to_owned());
    }
    compute::flavor_named(cloud, name)?.map(|flavor| flavor.id).ok_or_else(|| nothing("flavor", name))
}

fn server_group_id(cloud: &Cloud<'_>, wanted: &Value) -> Result<String, Problem> {
    match Param::read(wanted, "spec.serverGroup")? {
        None => Ok(String::new()),
        Some(Param::Id(id)) => Ok(id),
        Some(Param::Filter(filter)) => {
            let name = filter.name().unwrap_or_default();
            let found = compute::server_groups(cloud)?.into_iter().filter(|group| group.name == name).collect();
            only(found, "server group", name).map(|group| group.id)
        }
    }
}

fn ports(cloud: &Cloud<'_>, server: &str, description: &str, spec: &ServerSpec) -> Result<Vec<ResolvedPort>, Problem> {
    let usual = security_groups(cloud, &spec.security_groups)?;
    let mut ports = Vec::with_capacity(spec.ports.len());
    for (index, wanted) in spec.ports.iter().enumerate() {
        let (network_id, fixed_ips) = target(cloud, index, wanted)?;
        let mut port = ResolvedPort {
            name: names::port(server, index, wanted.name_suffix.as_deref()),
            description: wanted.description.clone().unwrap_or_else(|| description.to_owned()),
            network_id,
            tags: merged(&spec.tags, &wanted.tags),
            trunk: wanted.trunk.or_else(|| spec.trunk.then_some(true)),
            fixed_ips,
            security_groups: Vec::new(),
            fields: wanted.fields.clone(),
        };
        if port.is_secured() {
            port.security_groups = match wanted.security_groups.as_slice() {
                [] => usual.clone(),
                own => security_groups(cloud, own)?,
            };
        }
        ports.push(port);
    }
    if ports.is_empty() {
        return Err(Problem::invalid("InvalidMachineSpec", "spec.ports is empty: a server needs a port"));
    }
    if ports.iter().any(ResolvedPort::has_trunk) && !cloud.network_extension(port::TRUNK_EXTENSION)? {
        let message = "a port shall carry a trunk, and this Neutron does not have the extension trunk";
        return Err(Problem::invalid("TrunksNotSupported", message));
    }
    Ok(ports)
}

/// A port's network, and its addresses. Without a network it is that of the first subnet which only one network has.
fn target(cloud: &Cloud<'_>, index: usize, wanted: &PortSpec) -> Result<(String, Vec<ResolvedFixedIp>), Problem> {
    let mut known: Option<(usize, String)> = None;
    let network_id = match Param::read(&wanted.network, &format!("spec.ports[{index}].network"))? {
        Some(Param::Id(id)) => id,
        Some(param) => network::one::<Network>(cloud, &param, &Query::new())?.id,
        None => {
            let mut network = None;
            for (place, fixed_ip) in wanted.fixed_ips.iter().enumerate() {
                let Some(param) = subnet_param(index, place, &fixed_ip.subnet)? else { continue };
                match network::one::<Subnet>(cloud, &param, &Query::new()) {
                    Ok(subnet) => {
                        network = Some(subnet.network_id);
                        known = Some((place, subnet.id));
                        break;
                    }
                    // One that several networks have may be clear once another has told the network.
                    Err(problem) if problem.reason == "FilterMatchesSeveral" => {}
                    Err(problem) => return Err(problem),
                }
            }
            network.ok_or_else(|| {
                let message = format!("spec.ports[{index}] names no network, and its fixed IPs tell none");
                Problem::invalid("InvalidMachineSpec", message)
            })?
        }
    };
    let mut addresses = Vec::with_capacity(wanted.fixed_ips.len());
    for (place, fixed_ip) in wanted.fixed_ips.iter().enumerate() {
        let subnet = match (&known, subnet_param(index, place, &fixed_ip.subnet)?) {
            (Some((at, id)), _) if *at == place => Some(id.clone()),
            (_, None) => None,
            (_, Some(Param::Id(id))) => Some(id),
            (_, Some(param)) => {
                let among = Query::new().with("network_id", network_id.as_str());
                Some(network::one::<Subnet>(cloud, &param, &among)?.id)
            }
        };
        addresses.push(ResolvedFixedIp { subnet, ip_address: fixed_ip.ip_address.clone() });
    }
    Ok((network_id, addresses))
}

fn subnet_param(index: usize, place: usize, subnet: &Value) -> Result<Option<Param>, Problem> {
    Param::read(subnet, &format!("spec.ports[{index}].fixedIPs[{place}].subnet"))
}

/// Ids of all security groups that are meant, each once. A filter means all that it matches, and at least one.
fn security_groups(cloud: &Cloud<'_>, wanted: &[Value]) -> Result<Vec<String>, Problem> {
    let mut ids: Vec<String> = Vec::new();
    for (index, value) in wanted.iter().enumerate() {
        let found = match Param::read(value, &format!("securityGroups[{index}]"))? {
            Some(Param::Id(id)) => vec![id],
            Some(Param::Filter(filter)) => {
                let found = network::list::<SecurityGroup>(cloud, &filter.network_query())?;
                found.into_iter().map(|group| group.id).collect()
            }
            None => Vec::new(),
        };
        if found.is_empty() {
            return Err(nothing("security group", &filter_text(value)));
        }
        ids = merged(&ids, &found);
    }
    Ok(ids)
}

/// Both lists, each item once, in order.
pub fn merged(one: &[String], other: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::with_capacity(one.len() + other.len());
    for item in one.iter().chain(other) {
        if !all.contains(item) {
            all.push(item.clone());
        }
    }
    all
}

fn only<T>(mut found: Vec<T>, what: &str, which: &str) -> Result<T, Problem> {
    match (found.len(), found.pop()) {
        (1, Some(only)) => Ok(only),
        (_, None) => Err(nothing(what, which)),
        (many, _) => {
            Err(Problem::invalid("FilterMatchesSeveral", format!("{many} {what}s match {which}, and one should")))
        }
    }
}

fn nothing(what: &str, which: &str) -> Problem {
    Problem::invalid("FilterMatchesNothing", format!("there is no {what} {which}"))
}

fn filter_text(value: &Value) -> String {
    value.get("filter").map(Value::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_sdk::Fault;
    use serde_json::json;

    #[test]
    fn an_image_object_is_waited_for_until_it_is_available_or_has_failed() {
        let image = |id: Value, conditions: Value| json!({"metadata": {"name": "node"}, "status": {"id": id, "conditions": conditions}});
        let available = json!([{"type": "Available", "status": "True"}]);
        assert_eq!(available_image(&image(json!("i1"), available)).unwrap().as_deref(), Some("i1"));
        assert_eq!(available_image(&json!({})).unwrap(), None);
        let under_way = json!([{"type": "Progressing", "status": "True", "reason": "Progressing"}]);
        assert_eq!(available_image(&image(json!(null), under_way)).unwrap(), None);
        let retried = json!([{"type": "Progressing", "status": "False", "reason": "TransientError"}]);
        assert_eq!(available_image(&image(json!(null), retried)).unwrap(), None);
        let failed =
            json!([{"type": "Progressing", "status": "False", "reason": "InvalidConfiguration", "message": "no URL"}]);
        let problem = available_image(&image(json!(null), failed)).unwrap_err();
        assert_eq!((problem.fault, problem.reason.as_str()), (Fault::Terminal, "DependencyFailed"));
        assert!(problem.message.contains("no URL"));
    }

    #[test]
    fn lists_are_joined_with_each_item_once_and_in_order() {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        assert_eq!(merged(&list(&["b", "a"]), &list(&["a", "c", "c"])), list(&["b", "a", "c"]));
    }
}
