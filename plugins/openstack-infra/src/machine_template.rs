//! OpenStackMachineTemplate: what a machine of it would have, so that an autoscaler can scale from zero; and allowed address
//! pairs, which go on to the machines that were made of it.

use capwasm_sdk::{Context, Host, ObjectRef, Optional, Place, Problem, Selection, object};
use serde_json::{Map, Value, json};

use crate::cloud::Cloud;
use crate::compute::{self, Flavor};
use crate::identity::IdentityRef;
use crate::image;
use crate::kinds::{CLUSTER_NAME_LABEL, V1BETA1};
use crate::server::resolve;

/// The annotation with the name of the template that an object was made of.
const CLONED_FROM: &str = "cluster.x-k8s.io/cloned-from-name";

/// Brings the status up to date.
pub fn reconcile(cx: &mut Context<'_>, object: &Value) -> Result<(), Problem> {
    // One that belongs to a ClusterClass has values that are still to be patched.
    let Some(cluster) = owner(object) else { return Ok(()) };
    let spec = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    push_pairs(cx, object, cluster, spec)?;
    let has = |at: &str| object.pointer(at).is_some();
    if has("/status/capacity") && (has("/status/nodeInfo/operatingSystem") || spec.pointer("/image/imageRef").is_none())
    {
        // The spec never changes, and an image without an operating system does not get one.
        return Ok(());
    }
    let cloud = connect(cx, object, cluster, spec)?;
    let text = |at: &str| object::text(spec, at);
    let flavor_id = resolve::flavor_id(&cloud, text("/flavorID"), text("/flavor"))?;
    let flavor = compute::flavor(&cloud, &flavor_id)?;
    let flavor = flavor.ok_or_else(|| {
        Problem::invalid("FilterMatchesNothing", format!("there is no flavor with the id {flavor_id}"))
    })?;
    let root = spec.pointer("/rootVolume/sizeGiB").and_then(Value::as_u64);
    cx.out.status(json!({"capacity": capacity(&flavor, root)}));
    if let Some(id) = resolve::image_id(cx.host, &cloud, spec.get("image").unwrap_or(&Value::Null))?
        && let Some(system) = image::image(&cloud, &id)?.and_then(|image| image.os_type)
    {
        cx.out.status(json!({"nodeInfo": {"operatingSystem": system}}));
    }
    Ok(())
}

/// Name of the Cluster that owns a template.
fn owner(object: &Value) -> Option<&str> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    owners.iter().find(|owner| object::text(owner, "/kind") == "Cluster").map(|owner| object::text(owner, "/name"))
}

fn connect<'a>(cx: &Context<'a>, object: &Value, cluster: &str, spec: &Value) -> Result<Cloud<'a>, Problem> {
    let host: &'a dyn Host = cx.host;
    let identity = if spec.get("identityRef").is_some_and(Value::is_object) {
        IdentityRef::read(spec)?
    } else {
        let waiting = || Problem::waiting("WaitingForClusterInfrastructure", "there is no OpenStackCluster yet");
        let cluster = host.lookup(&ObjectRef::new("cluster.x-k8s.io/", "Cluster", cluster)).optional()?;
        let cluster = cluster.ok_or_else(waiting)?;
        let name = object::text(&cluster, "/spec/infrastructureRef/name");
        let infrastructure = host.lookup(&ObjectRef::new(V1BETA1, "OpenStackCluster", name)).optional()?;
        IdentityRef::read(infrastructure.ok_or_else(waiting)?.get("spec").unwrap_or(&Value::Null))?
    };
    Cloud::connect(host, object::namespace(object), &identity)
}

/// In bytes, apart from the CPUs; what is zero is not said.
fn capacity(flavor: &Flavor, root_volume_gib: Option<u64>) -> Value {
    let gib = |size: u64| format!("{size}Gi");
    let disk = root_volume_gib.filter(|size| *size > 0).unwrap_or(flavor.disk);
    let all = [
        ("cpu", flavor.vcpus, flavor.vcpus.to_string()),
        ("memory", flavor.ram, format!("{}Mi", flavor.ram)),
        ("ephemeral-storage", flavor.ephemeral, gib(flavor.ephemeral)),
        ("storage", disk, gib(disk)),
    ];
    let said = all.into_iter().filter(|(_, size, _)| *size > 0);
    Value::Object(said.map(|(name, _, text)| (name.to_owned(), Value::from(text))).collect::<Map<_, _>>())
}

/// Passes the ports' allowed address pairs on to machines that were made of this template.
fn push_pairs(cx: &mut Context<'_>, object: &Value, cluster: &str, spec: &Value) -> Result<(), Problem> {
    let wanted = list(spec, "/ports");
    if wanted.is_empty() {
        return Ok(());
    }
    let of_cluster = Selection::of(V1BETA1, "OpenStackMachine").labelled(format!("{CLUSTER_NAME_LABEL}={cluster}"));
    for machine in cx.host.lookup_list(&of_cluster)? {
        if object::annotation(&machine, CLONED_FROM) != Some(object::name(object)) || object::is_deleting(&machine) {
            continue;
        }
        if let Some(ports) = with_pairs(&list(&machine, "/spec/ports"), &wanted) {
            let name = object::name(&machine);
            let target = ObjectRef::new(V1BETA1, "OpenStackMachine", name);
            cx.out.patch(format!("pairs-{name}"), Place::Management, target, json!({"spec": {"ports": ports}}));
        }
    }
    Ok(())
}

/// `ports` with the pairs of `wanted`, port by port; none where they have them.
pub fn with_pairs(ports: &[Value], wanted: &[Value]) -> Option<Vec<Value>> {
    const FIELD: &str = "allowedAddressPairs";
    let pairs = |port: &Value| port.get(FIELD).cloned().unwrap_or_else(|| json!([]));
    let mut changed = ports.to_vec();
    for (port, wanted) in changed.iter_mut().zip(wanted) {
        if pairs(port) != pairs(wanted) {
            port[FIELD] = pairs(wanted);
        }
    }
    (changed != ports).then_some(changed)
}

fn list(object: &Value, at: &str) -> Vec<Value> {
    object.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn capacity_is_the_flavors_with_the_root_volume_in_place_of_its_disk() {
        let flavor = Flavor { vcpus: 4, ram: 8192, disk: 20, ephemeral: 0, ..Flavor::default() };
        assert_eq!(capacity(&flavor, None), json!({"cpu": "4", "memory": "8192Mi", "storage": "20Gi"}));
        let other = Flavor { ephemeral: 5, ..flavor };
        assert_eq!(
            capacity(&other, Some(50)),
            json!({"cpu": "4", "memory": "8192Mi", "ephemeral-storage": "5Gi", "storage": "50Gi"})
        );
    }

    #[test]
    fn pairs_replace_each_other_port_by_port() {
        let pair = json!({"allowedAddressPairs": [{"ipAddress": "10.0.0.0/8"}]});
        let with = |name: &str| json!({"nameSuffix": name, "allowedAddressPairs": [{"ipAddress": "10.0.0.0/8"}]});
        let bare = |name: &str| json!({"nameSuffix": name});
        assert_eq!(with_pairs(&[bare("a"), bare("b")], std::slice::from_ref(&pair)), Some(vec![with("a"), bare("b")]));
        assert_eq!(with_pairs(&[with("a")], &[pair]), None);
        assert_eq!(with_pairs(&[bare("a")], &[bare("a")]), None, "none is none, said or not");
        let cleared = json!({"nameSuffix": "a", "allowedAddressPairs": []});
        assert_eq!(with_pairs(&[with("a")], &[bare("a")]), Some(vec![cleared]));
    }
}
