//! CoreDNS, where the control plane names its image.
//!
//! From 1.8.0 on, CoreDNS reads every Corefile that an earlier of these versions read, so the Corefile stays as it is. What
//! would need a Corefile to be rewritten (older versions, plugins that are gone, a step back) is refused, and said.

use capwasm_object::version::Version;
use capwasm_sdk::{Context, ObjectRef, Optional, Place, Problem};
use serde_json::{Value, json};

use super::image::Image;
use crate::plane::ControlPlane;

/// The first version whose Corefiles later ones read.
const FIRST: (u64, u64) = (1, 8);
/// First words of lines, plugins and options, that later versions do not know.
const GONE: [&str; 3] = ["federation", "upstream", "resyncperiod"];

/// Whether the control plane says anything about CoreDNS's image.
pub fn is_asked_for(plane: &ControlPlane) -> bool {
    let configuration = plane.cluster_configuration();
    let dns = |field: &str| configuration.get("dns").and_then(|dns| dns.get(field)).is_some();
    dns("imageTag") || dns("imageRepository") || configuration.contains_key("imageRepository")
}

/// Why CoreDNS stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

/// Brings CoreDNS to the image that is asked for.
pub fn reconcile(cx: &mut Context<'_>, plane: &ControlPlane) -> Result<(), Problem> {
    let target = ObjectRef::new("apps/v1", "Deployment", "coredns").in_namespace(super::NAMESPACE);
    let Some(deployment) = cx.host.workload(&target).optional()? else { return Ok(()) };
    let Some(wanted) = change(&deployment, plane) else { return Ok(()) };
    let map = ObjectRef::new("v1", "ConfigMap", "coredns").in_namespace(super::NAMESPACE);
    let corefile = cx.host.workload(&map).optional()?;
    let corefile = corefile.as_ref().and_then(|map| map.pointer("/data/Corefile")?.as_str()).unwrap_or_default();
    match check(&wanted, corefile) {
        Err(Refusal(why)) => {
            cx.out.warning("CoreDNSNotUpdated", why);
        }
        Ok(()) => {
            cx.out.event("CoreDNSUpdated", format!("CoreDNS goes to {}", wanted.to.write()));
            cx.out.patch("coredns", Place::Workload, target, wanted.merge);
        }
    }
    Ok(())
}

/// A change of the image.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    from: Image,
    to: Image,
    merge: Value,
}

/// What has to change; none when nothing has to.
pub fn change(deployment: &Value, plane: &ControlPlane) -> Option<Change> {
    let mut containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?.clone();
    let container = containers.iter_mut().find(|container| container["name"] == "coredns")?;
    let from = Image::parse(container["image"].as_str()?);
    let configuration = plane.cluster_configuration();
    let dns = |field: &str| configuration.get("dns").and_then(|dns| dns.get(field)).and_then(Value::as_str);
    let mut to = from.clone();
    if let Some(repository) = dns("imageRepository") {
        to.repository = repository.to_owned();
    } else if let Some(repository) = configuration.get("imageRepository").and_then(Value::as_str) {
        // The public registry keeps it one folder deeper.
        to.repository =
            if repository == "registry.k8s.io" { format!("{repository}/coredns") } else { repository.to_owned() };
    }
    if let Some(tag) = dns("imageTag") {
        to.tag = tag.to_owned();
    }
    if from == to {
        return None;
    }
    container["image"] = json!(to.write());
    let merge = json!({
        "metadata": {"resourceVersion": deployment.pointer("/metadata/resourceVersion")},
        "spec": {"template": {"spec": {"containers": containers}}},
    });
    Some(Change { from, to, merge })
}

/// Whether the Corefile can stay as it is.
pub fn check(change: &Change, corefile: &str) -> Result<(), Refusal> {
    if change.from.tag == change.to.tag {
        return Ok(());
    }
    let version = |image: &Image| {
        Version::parse(&image.tag)
            .ok_or_else(|| Refusal(format!("the tag {} of CoreDNS's image is not a version", image.tag)))
    };
    let (from, to) = (version(&change.from)?, version(&change.to)?);
    if to < from {
        return Err(Refusal(format!("CoreDNS does not go back from {} to {}", change.from.tag, change.to.tag)));
    }
    if (from.major, from.minor) < FIRST {
        return Err(Refusal(format!(
            "a Corefile of CoreDNS {} has to be migrated by hand before {} can be used: this provider migrates from 1.8.0 on only",
            change.from.tag, change.to.tag
        )));
    }
    let words = corefile.lines().filter_map(|line| line.split_whitespace().next());
    if let Some(word) = words.into_iter().find(|word| GONE.contains(word)) {
        return Err(Refusal(format!(
            "the Corefile uses {word}, which CoreDNS {} does not know; take it out",
            change.to.tag
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    const COREFILE: &str = ".:53 {\n    errors\n    kubernetes cluster.local {\n       pods insecure\n    }\n    forward . /etc/resolv.conf\n}\n";

    #[test]
    fn core_dns_goes_forward_from_1_8_and_the_rest_is_refused() {
        let deployment = |image: &str| json!({"metadata": {"resourceVersion": "3"}, "spec": {"template": {"spec": {"containers": [{"name": "coredns", "image": image}]}}}});
        let public = |tag: &str| format!("registry.k8s.io/coredns/coredns:{tag}");
        let old = format!("{COREFILE}\n federation x {{\n }}");
        for (what, from, configuration, corefile, expected) in [
            (
                "another version",
                public("v1.11.3"),
                json!({"dns": {"imageTag": "v1.12.0"}}),
                COREFILE,
                Ok(Some(public("v1.12.0"))),
            ),
            ("the same version", public("v1.11.3"), json!({"dns": {"imageTag": "v1.11.3"}}), COREFILE, Ok(None)),
            (
                "the public registry by name",
                public("v1.11.3"),
                json!({"imageRepository": "registry.k8s.io"}),
                COREFILE,
                Ok(None),
            ),
            (
                "a mirror",
                public("v1.11.3"),
                json!({"imageRepository": "m.example.org/k8s"}),
                COREFILE,
                Ok(Some("m.example.org/k8s/coredns:v1.11.3".into())),
            ),
            (
                "a mirror for CoreDNS",
                public("v1.11.3"),
                json!({"imageRepository": "m", "dns": {"imageRepository": "d"}}),
                "",
                Ok(Some("d/coredns:v1.11.3".into())),
            ),
            (
                "a step back",
                public("v1.12.0"),
                json!({"dns": {"imageTag": "v1.11.3"}}),
                COREFILE,
                Err("does not go back"),
            ),
            ("from an old version", public("1.7.0"), json!({"dns": {"imageTag": "v1.11.3"}}), COREFILE, Err("by hand")),
            (
                "a plugin that is gone",
                public("v1.8.0"),
                json!({"dns": {"imageTag": "v1.11.3"}}),
                old.as_str(),
                Err("federation"),
            ),
            ("no version", public("latest"), json!({"dns": {"imageTag": "v1.11.3"}}), COREFILE, Err("not a version")),
        ] {
            let plane =
                ControlPlane::read(&json!({"spec": {"kubeadmConfigSpec": {"clusterConfiguration": configuration}}}))
                    .unwrap();
            assert!(is_asked_for(&plane), "{what}");
            let change = change(&deployment(&from), &plane);
            let result = match &change {
                None => Ok(None),
                Some(change) => check(change, corefile).map(|()| Some(change.to.write())),
            };
            match (result, expected) {
                (Ok(image), Ok(expected)) => assert_eq!(image, expected, "{what}"),
                (Err(Refusal(why)), Err(expected)) => assert!(why.contains(expected), "{what}: {why}"),
                (result, expected) => panic!("{what}: {result:?}, not {expected:?}"),
            }
        }
        assert!(!is_asked_for(&ControlPlane::default()));
    }
}
