//! What kubeadm keeps in the workload cluster: its configuration and permissions, which joining machines read, and the two
//! addons that it installs.
//!
//! [`prepare`] brings the configuration up to date before machines are replaced, [`addons`] what runs in the cluster after
//! that. Both read the cluster, and ask for nothing where nothing differs.

pub mod coredns;
pub mod document;
pub mod image;
pub mod proxy;
pub mod rbac;

use capwasm_object::version::Version;
use capwasm_sdk::{Context, ObjectRef, Optional, Place, Problem, object};
use serde_json::{Value, json};

use crate::names;
use crate::plane::ControlPlane;

/// Namespace of all of it.
pub const NAMESPACE: &str = "kube-system";

/// Brings kubeadm's configuration and permissions up to what the control plane asks for.
pub fn prepare(cx: &mut Context<'_>, plane: &ControlPlane, version: &Version) -> Result<(), Problem> {
    let target = ObjectRef::new("v1", "ConfigMap", "kubeadm-config").in_namespace(NAMESPACE);
    let Some(map) = cx.host.workload(&target).optional()? else {
        return Err(Problem::transient(
            "KubeadmConfigMissing",
            "ConfigMap kube-system/kubeadm-config is gone; machines cannot join without it, restore it",
        ));
    };
    let text = map.pointer("/data/ClusterConfiguration").and_then(Value::as_str).unwrap_or_default();
    let known = document::read(text)
        .map_err(|error| Problem::transient("KubeadmConfigInvalid", format!("ConfigMap kubeadm-config: {error}")))?;
    let wanted = document::update(&known, plane, version);
    if document::same(&known, &wanted) {
        return Ok(());
    }
    // Before the version, so that a pass that is lost in between asks for them again.
    for object in rbac::wanted()? {
        let (kind, name) = (object::text(&object, "/kind"), object::name(&object));
        let mut target = ObjectRef::new(object::text(&object, "/apiVersion"), kind, name);
        target.namespace = Some(object::namespace(&object).to_owned()).filter(|namespace| !namespace.is_empty());
        if cx.host.workload(&target).optional()?.is_none() {
            cx.out.create(format!("{kind} {name}"), Place::Workload, object);
        }
    }
    let merge = json!({
        "metadata": {"resourceVersion": map.pointer("/metadata/resourceVersion")},
        "data": {"ClusterConfiguration": capwasm_yaml::write::document(&wanted)},
    });
    cx.out.patch("kubeadm-config", Place::Workload, target, merge);
    Ok(())
}

/// Brings kube-proxy and CoreDNS to what the control plane asks for. What cannot be done is told by an event.
pub fn addons(cx: &mut Context<'_>, plane: &ControlPlane) -> Result<(), Problem> {
    if !plane.is_annotated(names::SKIP_KUBE_PROXY) {
        let target = ObjectRef::new("apps/v1", "DaemonSet", "kube-proxy").in_namespace(NAMESPACE);
        if let Some(set) = cx.host.workload(&target).optional()?
            && let Some(merge) = proxy::update(&set, plane)
        {
            cx.out.patch("kube-proxy", Place::Workload, target, merge);
            cx.out.event("KubeProxyUpdated", format!("kube-proxy goes to {}", plane.version));
        }
    }
    if !plane.is_annotated(names::SKIP_COREDNS) && coredns::is_asked_for(plane) {
        coredns::reconcile(cx, plane)?;
    }
    Ok(())
}
