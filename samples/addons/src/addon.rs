//! Addon: manifests of a catalog in one workload cluster.

use capwasm_sdk::{Context, ObjectRef, Place, Problem, Selection, object};
use serde_json::{Value, json};

use crate::catalog;
use crate::kinds::{ADDON_LABEL, AddonSpec, AddonStatus, DeletionPolicy, Entry, INSTALLED};

/// Installs what the catalog says, once there are enough Nodes, and takes back what it says no longer.
pub fn reconcile(cx: &mut Context<'_>, addon: &Value) -> Result<(), Problem> {
    let spec: AddonSpec = object::spec(addon)?;
    let entry = catalog::entry(cx, &spec.catalog, &spec.addon)?;
    let manifests = manifests(addon, &entry)?;
    if cx.related_one("cluster").is_none() {
        return Err(Problem::waiting("ClusterNotFound", format!("there is no Cluster {} yet", spec.cluster_name)));
    }
    // Nodes that appear or become Ready call this function again.
    let nodes = cx.host.workload_list(&Selection::of("v1", "Node"))?;
    let ready = nodes.iter().filter(|node| object::is_true(node, "Ready")).count();
    if ready < entry.minimum_nodes {
        let message = format!("{ready} of {} Nodes are Ready", entry.minimum_nodes);
        return Err(Problem::waiting("TooFewNodes", message));
    }
    for stale in installed(cx, addon)?.iter().filter(|found| !manifests.iter().any(|wanted| same(wanted, found))) {
        remove(cx, stale);
    }
    cx.out.status(json!(AddonStatus { installed: manifests.len() }));
    for manifest in manifests {
        cx.out.apply(format!("install {}", object::name(&manifest)), Place::Workload, manifest);
    }
    Ok(())
}

/// Takes back what it installed, unless that should stay, or goes with its cluster.
pub fn delete(cx: &mut Context<'_>, addon: &Value) -> Result<bool, Problem> {
    let spec: AddonSpec = object::spec(addon)?;
    let cluster = cx.related_one("cluster");
    if spec.deletion_policy == DeletionPolicy::Orphan || cluster.is_none_or(|cluster| object::is_deleting(&cluster)) {
        return Ok(true);
    }
    let installed = installed(cx, addon)?;
    for found in &installed {
        remove(cx, found);
    }
    Ok(installed.is_empty())
}

/// What the catalog says, labelled so that it is found again.
fn manifests(addon: &Value, entry: &Entry) -> Result<Vec<Value>, Problem> {
    let label = |manifest: &serde_json::Map<String, Value>| {
        let mut manifest = Value::Object(manifest.clone());
        let (version, kind) = (object::text(&manifest, "/apiVersion"), object::kind(&manifest));
        if !INSTALLED.iter().any(|installed| api_version(installed) == version && installed.2 == kind) {
            let message = format!("addon {} has a {kind} of {version:?}, which is not installed by addons", entry.name);
            return Err(Problem::invalid("KindNotInstalled", message));
        }
        if object::namespace(&manifest).is_empty() {
            manifest["metadata"]["namespace"] = "default".into();
        }
        manifest["metadata"]["labels"][ADDON_LABEL] = object::name(addon).into();
        Ok(manifest)
    };
    entry.manifests.iter().map(label).collect()
}

/// What is there of this Addon, whatever its status says. Somebody who deletes or changes any of it wakes the Addon.
fn installed(cx: &Context<'_>, addon: &Value) -> Result<Vec<Value>, Problem> {
    let labelled = format!("{ADDON_LABEL}={}", object::name(addon));
    let mut found = Vec::new();
    for installed in &INSTALLED {
        let version = api_version(installed);
        let selection = Selection::of(&version, installed.2).labelled(&labelled);
        for mut object in cx.host.workload_list(&selection)? {
            // Items of a list need not say what they are.
            object["apiVersion"] = version.as_str().into();
            object["kind"] = installed.2.into();
            found.push(object);
        }
    }
    Ok(found)
}

fn api_version((group, version, _): &(&str, &str, &str)) -> String {
    if group.is_empty() { (*version).to_owned() } else { format!("{group}/{version}") }
}

fn same(wanted: &Value, found: &Value) -> bool {
    ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"]
        .iter()
        .all(|at| object::text(wanted, at) == object::text(found, at))
}

fn remove(cx: &mut Context<'_>, found: &Value) {
    let target = ObjectRef::new(object::text(found, "/apiVersion"), object::kind(found), object::name(found))
        .in_namespace(object::namespace(found));
    let uid = object::uid(found).to_owned();
    cx.out.delete(format!("remove {}", object::name(found)), Place::Workload, target, Some(uid));
}
