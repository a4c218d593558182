//! AddonSet: an Addon for every selected Cluster and every addon.

use capwasm_sdk::{Context, Optional, Place, Problem, Selection, object};
use serde_json::{Value, json};

use crate::kinds::{API_VERSION, CLUSTER_LABEL, SET_LABEL, SetSpec, SetStatus, reference};

/// Makes, adopts and removes Addons. Clusters and Addons that were listed wake the set.
pub fn reconcile(cx: &mut Context<'_>, set: &Value) -> Result<(), Problem> {
    let spec: SetSpec = object::spec(set)?;
    let clusters = clusters(cx, &spec)?;
    let mine = mine(cx, set)?;
    let mut wanted = Vec::new();
    let mut taken = Vec::new();
    for cluster in &clusters {
        for addon in &spec.addons {
            let desired = desired(set, &spec, object::name(cluster), addon);
            let name = object::name(&desired).to_owned();
            let found = cx.host.lookup(&reference("Addon", &name)).optional()?;
            match found.as_ref().map(|found| (controller(found), found)) {
                Some((None, found)) => adopt(cx, set, found),
                Some((Some(owner), _)) if owner != object::uid(set) => taken.push(name.clone()),
                Some(_) | None => {
                    cx.out.apply(format!("addon {name}"), Place::Management, desired);
                }
            }
            wanted.push(name);
        }
    }
    for addon in mine.iter().filter(|addon| !wanted.iter().any(|name| name == object::name(addon))) {
        remove(cx, addon);
    }
    let ready = mine.iter().filter(|addon| object::is_true(addon, "Ready")).count();
    cx.out.status(json!(SetStatus { clusters: clusters.len(), ready }));
    if !taken.is_empty() {
        let message = format!("Addon {} belongs to another AddonSet", taken.join(", "));
        return Err(Problem::invalid("AddonTaken", message));
    }
    if ready < wanted.len() {
        return Err(Problem::waiting("AddonsNotReady", format!("{ready} of {} Addons are ready", wanted.len())));
    }
    Ok(())
}

/// Its Addons go first; they take back what they installed.
pub fn delete(cx: &mut Context<'_>, set: &Value) -> Result<bool, Problem> {
    let mine = mine(cx, set)?;
    for addon in &mine {
        remove(cx, addon);
    }
    Ok(mine.is_empty())
}

/// The selected Clusters that are there to stay.
fn clusters(cx: &Context<'_>, spec: &SetSpec) -> Result<Vec<Value>, Problem> {
    let labels = &spec.cluster_selector.match_labels;
    if labels.is_empty() {
        return Ok(Vec::new());
    }
    let selector: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut clusters =
        cx.host.lookup_list(&Selection::of("cluster.x-k8s.io/", "Cluster").labelled(selector.join(",")))?;
    clusters.retain(|cluster| !object::is_deleting(cluster));
    Ok(clusters)
}

/// The Addons that this set controls.
fn mine(cx: &Context<'_>, set: &Value) -> Result<Vec<Value>, Problem> {
    let labelled = Selection::of(API_VERSION, "Addon").labelled(format!("{SET_LABEL}={}", object::name(set)));
    let mut addons = cx.host.lookup_list(&labelled)?;
    addons.retain(|addon| controller(addon) == Some(object::uid(set)));
    Ok(addons)
}

/// Uid of the owner that controls it.
fn controller(addon: &Value) -> Option<&str> {
    let owners = addon.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

fn desired(set: &Value, spec: &SetSpec, cluster: &str, addon: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Addon",
        "metadata": {
            "name": format!("{cluster}-{addon}"),
            "labels": {SET_LABEL: object::name(set), CLUSTER_LABEL: cluster},
            "ownerReferences": [object::owner_reference(set)],
        },
        "spec": {
            "clusterName": cluster, "catalog": spec.catalog, "addon": addon, "deletionPolicy": spec.deletion_policy,
        },
    })
}

/// An Addon that somebody made by hand becomes the set's; what it says is made the set's afterwards.
fn adopt(cx: &mut Context<'_>, set: &Value, addon: &Value) {
    let mut owners = addon.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    owners.push(object::owner_reference(set));
    let merge = json!({"metadata": {
        // A list that others write too: if it has changed since, this is decided again.
        "resourceVersion": object::text(addon, "/metadata/resourceVersion"),
        "ownerReferences": owners,
        "labels": {SET_LABEL: object::name(set)},
    }});
    let name = object::name(addon);
    cx.out.patch(format!("adopt {name}"), Place::Management, reference("Addon", name), merge);
    cx.out.event("Adopted", format!("Addon {name} is part of this set now"));
}

fn remove(cx: &mut Context<'_>, addon: &Value) {
    if object::is_deleting(addon) {
        return;
    }
    let (name, uid) = (object::name(addon), object::uid(addon).to_owned());
    cx.out.delete(format!("remove {name}"), Place::Management, reference("Addon", name), Some(uid));
}
