//! Preflight checks before the creation of Machines.

use capwasm_api::contract::ControlPlane;
use capwasm_api::kinds::MachineSet;
use capwasm_api::names::annotations;
use capwasm_object::version::Version;

/// Reasons against creation. Reads of the control plane wake the set when it changes.
pub(super) fn failures(set: &MachineSet, control_plane: Option<&ControlPlane>) -> Vec<String> {
    let skipped =
        set.metadata.annotations.get(annotations::SKIP_PREFLIGHT_CHECKS).map(String::as_str).unwrap_or_default();
    let runs = |check: &str| !skipped.split(',').any(|name| name.trim() == check || name.trim() == "All");
    let Some((plane, wanted)) = control_plane.and_then(|plane| Some((plane, plane.version.as_deref()?))) else {
        return Vec::new();
    };
    let mut failures = Vec::new();
    if runs("ControlPlaneIsStable") {
        if is_provisioning(plane) {
            failures.push("ControlPlaneIsStable: the control plane is provisioning".to_owned());
        } else if is_upgrading(plane, wanted) {
            failures.push(format!("ControlPlaneIsStable: the control plane is upgrading to {wanted}"));
        }
    }
    let of_set = set.spec.template.spec.version.as_deref();
    let (Some(machine), Some(required)) = (of_set.and_then(Version::parse), Version::parse(wanted)) else {
        return failures;
    };
    let behind = required.minors_ahead_of(&machine);
    if runs("KubernetesVersionSkew") && !matches!(behind, Some(0..=3)) {
        failures.push(format!(
            "KubernetesVersionSkew: version {} does not go with a control plane of {wanted}",
            of_set.unwrap_or_default()
        ));
    }
    let kubeadm = set
        .spec
        .template
        .spec
        .bootstrap
        .config_ref
        .as_ref()
        .is_some_and(|config| config.kind == "KubeadmConfigTemplate");
    if runs("KubeadmVersionSkew") && kubeadm && behind != Some(0) {
        failures.push(format!(
            "KubeadmVersionSkew: kubeadm of version {} cannot join a control plane of {wanted}",
            of_set.unwrap_or_default()
        ));
    }
    failures
}

fn is_provisioning(plane: &ControlPlane) -> bool {
    let running = plane.observed_version.is_some() || !plane.counts.versions.is_empty();
    !running && !plane.initialized
}

fn is_upgrading(plane: &ControlPlane, wanted: &str) -> bool {
    let Some(wanted) = Version::parse(wanted) else { return false };
    let older = |version: &str| Version::parse(version).is_some_and(|version| version.numbers() < wanted.numbers());
    if plane.counts.versions.is_empty() {
        plane.observed_version.as_deref().is_some_and(older)
    } else {
        plane.counts.versions.iter().any(|entry| older(&entry.version))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_api::contract::{Contract, Report};
    use serde_json::json;

    #[test]
    fn creation_waits_for_a_stable_control_plane_of_a_version_that_fits() {
        let stable = |version: &str| json!({"spec": {"version": version}, "status": {"versions": [{"version": version, "replicas": 1}]}});
        let plane = "v1.36.2";
        for (what, object, version, skip, expected) in [
            ("fits", stable(plane), "v1.36.0", "", vec![]),
            ("no version asked for", json!({}), "v1.36.0", "", vec![]),
            ("provisioning", json!({"spec": {"version": plane}}), plane, "", vec!["ControlPlaneIsStable"]),
            (
                "initialized, but silent about versions",
                json!({"spec": {"version": plane}, "status": {"initialization": {"controlPlaneInitialized": true}}}),
                plane,
                "",
                vec![],
            ),
            (
                "upgrading",
                json!({"spec": {"version": plane}, "status": {"versions": [{"version": "v1.36.2"}, {"version": "v1.36.1"}]}}),
                plane,
                "",
                vec!["ControlPlaneIsStable"],
            ),
            (
                "upgrading, told the old way",
                json!({"spec": {"version": plane}, "status": {"version": "v1.35.9"}}),
                plane,
                "",
                vec!["ControlPlaneIsStable"],
            ),
            (
                "newer than the control plane",
                stable(plane),
                "v1.37.0",
                "",
                vec!["KubernetesVersionSkew", "KubeadmVersionSkew"],
            ),
            ("three behind, with kubeadm", stable(plane), "v1.33.0", "", vec!["KubeadmVersionSkew"]),
            ("four behind", stable(plane), "v1.32.0", "KubeadmVersionSkew", vec!["KubernetesVersionSkew"]),
            ("all skipped", json!({"spec": {"version": plane}}), "v1.20.0", "All", vec![]),
        ] {
            let set: MachineSet = capwasm_api::kinds::view(&json!({"metadata": {"name": "ms", "annotations": {"machineset.cluster.x-k8s.io/skip-preflight-checks": skip}},
                "spec": {"template": {"spec": {"version": version, "bootstrap": {"configRef": {"kind": "KubeadmConfigTemplate"}}}}}})).unwrap();
            let found: Vec<String> = failures(&set, Some(&ControlPlane::read(&object, Contract::V1Beta2)))
                .into_iter()
                .map(|text| text.split(':').next().unwrap().to_owned())
                .collect();
            assert_eq!(found, expected, "{what}");
        }
    }
}
