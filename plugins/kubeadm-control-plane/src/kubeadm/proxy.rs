//! kube-proxy follows the version of the control plane.

use serde_json::{Value, json};

use super::image::{Image, tag_of};
use crate::plane::ControlPlane;

/// The merge patch of the DaemonSet; none when its image is right.
pub fn update(set: &Value, plane: &ControlPlane) -> Option<Value> {
    let mut containers = set.pointer("/spec/template/spec/containers")?.as_array()?.clone();
    let container = containers.iter_mut().find(|container| container["name"] == "kube-proxy")?;
    let known = container["image"].as_str()?;
    let mut image = Image::parse(known);
    image.tag = tag_of(&plane.version);
    if let Some(repository) = plane.cluster_configuration().get("imageRepository").and_then(Value::as_str) {
        image.repository = repository.to_owned();
    }
    if image.write() == known {
        return None;
    }
    container["image"] = json!(image.write());
    // A merge patch replaces the list: refused when somebody else has written meanwhile.
    Some(json!({
        "metadata": {"resourceVersion": set.pointer("/metadata/resourceVersion")},
        "spec": {"template": {"spec": {"containers": containers}}},
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn only_the_image_changes_and_only_when_it_is_another_one() {
        let set = |image: &str| {
            json!({"metadata": {"resourceVersion": "7"}, "spec": {"template": {"spec": {"containers": [
                {"name": "side", "image": "x"}, {"name": "kube-proxy", "image": image, "command": ["a"]}]}}}})
        };
        let plane = |repository: Value| {
            ControlPlane::read(&json!({"spec": {"version": "v1.37.0", "kubeadmConfigSpec": {"clusterConfiguration": {"imageRepository": repository}}}})).unwrap()
        };
        for (what, image, repository, expected) in [
            ("right", "registry.k8s.io/kube-proxy:v1.37.0", Value::Null, None),
            (
                "another version",
                "registry.k8s.io/kube-proxy:v1.36.0",
                Value::Null,
                Some("registry.k8s.io/kube-proxy:v1.37.0"),
            ),
            (
                "another repository",
                "registry.k8s.io/kube-proxy:v1.37.0",
                json!("r:5000/k"),
                Some("r:5000/k/kube-proxy:v1.37.0"),
            ),
        ] {
            let patch = update(&set(image), &plane(repository));
            let containers = patch.as_ref().map(|patch| &patch["spec"]["template"]["spec"]["containers"]);
            assert_eq!(containers.map(|list| list[1]["image"].as_str().unwrap()), expected, "{what}");
            if let Some(list) = containers {
                assert_eq!((&list[0]["image"], &list[1]["command"]), (&json!("x"), &json!(["a"])), "{what}");
            }
        }
        assert_eq!(update(&json!({}), &plane(Value::Null)), None);
    }
}
