//! Static pods: manifests in the kubelet's directory, and the mirror pods by which the API server knows of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{NODES, now};
use crate::files::{Files, reason};
use crate::kubeadm::paths;
use crate::rest::{Rest, RestError};

/// A static pod as its file describes it.
pub struct Manifest {
    /// `metadata.name` of the file.
    pub name: String,
    /// Hash of the file, which changes with its content.
    pub hash: String,
    pod: Value,
}

impl Manifest {
    fn namespace(&self) -> &str {
        self.pod["metadata"]["namespace"].as_str().unwrap_or("default")
    }

    /// Where its mirror pod is.
    fn path(&self, host: &Host<'_>) -> String {
        format!("/api/v1/namespaces/{}/pods/{}-{}", self.namespace(), self.name, host.name)
    }
}

/// The static pods of a node. A file that is no Pod is left out, as a kubelet leaves it out.
///
/// # Errors
/// When the directory cannot be read.
pub fn manifests(files: &dyn Files) -> Result<Vec<Manifest>, String> {
    if !files.exists(paths::MANIFESTS) {
        return Ok(Vec::new());
    }
    let names =
        files.list(paths::MANIFESTS).map_err(|error| format!("open {}: {}", paths::MANIFESTS, reason(&error)))?;
    let read = |name: &String| {
        let content = files.read(&format!("{}/{name}", paths::MANIFESTS)).ok()?;
        let pod: Value = serde_saphyr::from_str(std::str::from_utf8(&content).ok()?).ok()?;
        let given = pod["metadata"]["name"].as_str().filter(|_| pod["kind"] == "Pod")?.to_owned();
        let hash = hex::encode(&Sha256::digest(&content)[..16]);
        Some(Manifest { name: given, hash, pod })
    };
    let visible = |name: &&String| !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".json"));
    Ok(names.iter().filter(visible).filter_map(read).collect())
}

/// A digest of the kubelet's directory; `None` when nothing is in it. Far cheaper than to read the manifests.
pub fn digest(files: &dyn Files) -> Option<[u8; 32]> {
    let names = files.list(paths::MANIFESTS).ok().filter(|names| !names.is_empty())?;
    let mut digest = Sha256::new();
    for name in names {
        digest.update(name.as_bytes());
        if let Ok(content) = files.read(&format!("{}/{name}", paths::MANIFESTS)) {
            digest.update(Sha256::digest(&content));
        }
    }
    Some(digest.finalize().into())
}

/// Whether everything that was told is still there.
///
/// # Errors
/// See [`RestError`].
pub async fn intact(rest: &Rest, known: &Mirrored) -> Result<bool, RestError> {
    for (own, (hash, _)) in known {
        let found = rest.get(own).await?.unwrap_or_default();
        if found["metadata"]["annotations"]["kubernetes.io/config.mirror"] != hash.as_str() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The name of the static pod whose mirror is at this path.
pub fn name_at<'a>(own: &'a str, host: &Host<'_>) -> &'a str {
    let name = own.rsplit('/').next().unwrap_or_default();
    name.strip_suffix(host.name).and_then(|name| name.strip_suffix('-')).unwrap_or(name)
}

/// The node that pods are on.
pub struct Host<'a> {
    /// Name of the Node.
    pub name: &'a str,
    /// The node's IP address.
    pub address: &'a str,
}

/// What the API server was told of each pod: hash of its manifest and whether it is ready.
pub type Mirrored = BTreeMap<String, (String, bool)>;

/// The mirror pod of a manifest.
fn pod(manifest: &Manifest, host: &Host<'_>, owner: &str) -> Value {
    let mut pod = manifest.pod.clone();
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(format!("{}-{}", manifest.name, host.name));
    if metadata["namespace"].is_null() {
        metadata["namespace"] = json!("default");
    }
    for (name, value) in [
        ("kubernetes.io/config.hash", json!(manifest.hash)),
        ("kubernetes.io/config.mirror", json!(manifest.hash)),
        ("kubernetes.io/config.seen", json!(now())),
        ("kubernetes.io/config.source", json!("file")),
    ] {
        metadata["annotations"][name] = value;
    }
    metadata["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "Node", "name": host.name, "uid": owner, "controller": true }]);
    let spec = &mut pod["spec"];
    spec["nodeName"] = json!(host.name);
    spec["tolerations"] = json!([{ "effect": "NoExecute", "operator": "Exists" }]);
    for (name, default) in [
        ("dnsPolicy", json!("ClusterFirst")),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
    ] {
        if spec[name].is_null() {
            spec[name] = default;
        }
    }
    if let Some(fields) = pod.as_object_mut() {
        fields.remove("status");
    }
    pod
}

fn status(manifest: &Manifest, host: &Host<'_>, ready: bool) -> Value {
    let time = now();
    let word = |holds: bool| if holds { "True" } else { "False" };
    let condition = |kind: &str, holds: bool| {
        let mut condition =
            json!({ "type": kind, "status": word(holds), "lastProbeTime": null, "lastTransitionTime": time });
        if !holds {
            condition["reason"] = json!("ContainersNotReady");
            condition["message"] = json!(format!("containers with unready status: [{}]", manifest.name));
        }
        condition
    };
    let containers: Vec<Value> = manifest.pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "imageID": container["image"], "ready": ready, "started": ready,
                "restartCount": 0, "containerID": format!("capwasm-sim://{}", manifest.hash), "state": { "running": { "startedAt": time } },
            })
        })
        .collect();
    json!({
        "phase": "Running",
        "conditions": [
            condition("PodReadyToStartContainers", true), condition("Initialized", true), condition("Ready", ready),
            condition("ContainersReady", ready), condition("PodScheduled", true),
        ],
        "hostIP": host.address, "hostIPs": [{ "ip": host.address }], "podIP": host.address, "podIPs": [{ "ip": host.address }],
        "startTime": time, "containerStatuses": containers, "qosClass": "Burstable",
    })
}

/// Makes the mirror pods what the files and the components' health say. `health` of a pod's name; `known`: what was told
/// before. `check`: also look whether what was told is still there.
///
/// # Errors
/// See [`RestError`]; what was done before the failure stays done and known.
pub async fn sync(
    rest: &Rest,
    host: &Host<'_>,
    manifests: &[Manifest],
    health: &(dyn Fn(&str) -> bool + Sync),
    known: &mut Mirrored,
    check: bool,
) -> Result<(), RestError> {
    let told = &*known;
    // At once, so that what is written is one commit.
    let shown = manifests.iter().map(|manifest| async move {
        let own = manifest.path(host);
        let ready = health(&manifest.name);
        let shown = show(rest, host, manifest, ready, told.get(&own), check).await;
        shown.map(|shown| shown.then(|| (own, (manifest.hash.clone(), ready))))
    });
    let shown = futures::future::join_all(shown).await;
    let mut outcome = Ok(());
    for shown in shown {
        match shown {
            Ok(shown) => known.extend(shown),
            Err(error) => outcome = Err(error),
        }
    }
    outcome?;
    let wanted: Vec<String> = manifests.iter().map(|manifest| manifest.path(host)).collect();
    let gone: Vec<String> = known.keys().filter(|own| !wanted.contains(own)).cloned().collect();
    for own in gone {
        rest.delete(&own).await?;
        known.remove(&own);
    }
    Ok(())
}

/// Makes one mirror pod what it should be; false when it has to wait for its Node.
async fn show(
    rest: &Rest,
    host: &Host<'_>,
    manifest: &Manifest,
    ready: bool,
    told: Option<&(String, bool)>,
    check: bool,
) -> Result<bool, RestError> {
    let own = manifest.path(host);
    let found = if told.is_none() || check { rest.get(&own).await? } else { None };
    let same = match (told, &found) {
        (Some((hash, _)), None) => !check && *hash == manifest.hash,
        (_, Some(found)) => found["metadata"]["annotations"]["kubernetes.io/config.mirror"] == manifest.hash.as_str(),
        (None, None) => false,
    };
    if same && told.is_some_and(|(_, told)| *told == ready) {
        return Ok(true);
    }
    if !same {
        let node = rest.get(&format!("{NODES}/{}", host.name)).await?;
        // Without its Node a mirror pod would have no owner.
        let Some(owner) = node.as_ref().and_then(|node| node["metadata"]["uid"].as_str()) else { return Ok(false) };
        if found.is_some() || told.is_some() {
            rest.delete(&own).await?;
        }
        let object = pod(manifest, host, owner);
        match rest.create(&format!("/api/v1/namespaces/{}/pods", manifest.namespace()), &object).await {
            Err(error) if error.code() == Some(409) => {}
            other => drop(other?),
        }
    }
    rest.merge(&format!("{own}/status"), &json!({ "status": status(manifest, host, ready) })).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use capwasm_apiserver::{Identity, Server, ServerConfig, Store};

    use super::*;
    use crate::files::MemoryFiles;

    const FILE: &str = "/etc/kubernetes/manifests/etcd.yaml";

    fn manifest(image: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: etcd, namespace: kube-system, labels: {{component: etcd, tier: control-plane}}}}\n\
             spec: {{hostNetwork: true, containers: [{{name: etcd, image: '{image}'}}]}}\n"
        )
    }

    fn ready(pod: &Value) -> String {
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|c| c["type"] == "Ready").unwrap()["status"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn mirror_pods_come_with_the_node_and_follow_manifest_and_health() {
        let server = Server::start(Store::memory().unwrap(), ServerConfig::new("c")).await.unwrap();
        let admin = Rest::of(server.client(Identity::admin("a")));
        let kubelet = Rest::of(server.client(Identity::new("system:node:n", &["system:nodes"])));
        let memory = MemoryFiles::new(Arc::default());
        let files: &dyn Files = &memory;
        files.install(FILE, manifest("e:1"), 0o600).unwrap();
        files.install("/etc/kubernetes/manifests/.hidden.yaml", manifest("e:1"), 0o600).unwrap();
        files.install("/etc/kubernetes/manifests/broken.yaml", "a: [".to_owned(), 0o600).unwrap();
        let host = Host { name: "n", address: "127.64.0.2" };
        let mut known = Mirrored::default();
        let path = "/api/v1/namespaces/kube-system/pods/etcd-n";

        // No Node, no mirror.
        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| true, &mut known, false).await.unwrap();
        assert!(admin.get(path).await.unwrap().is_none() && known.is_empty());

        admin.create(NODES, &json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } })).await.unwrap();
        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| true, &mut known, false).await.unwrap();
        let pod = admin.get(path).await.unwrap().unwrap();
        assert_eq!(ready(&pod), "True");
        assert_eq!(pod["status"]["podIP"], "127.64.0.2");
        assert_eq!(pod["spec"]["nodeName"], "n");
        assert_eq!(pod["metadata"]["labels"], json!({ "component": "etcd", "tier": "control-plane" }));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "Node");
        assert_eq!(pod["metadata"]["annotations"]["kubernetes.io/config.source"], "file");

        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| false, &mut known, false).await.unwrap();
        let failing = admin.get(path).await.unwrap().unwrap();
        assert_eq!((ready(&failing).as_str(), &failing["metadata"]["uid"]), ("False", &pod["metadata"]["uid"]));

        // Another manifest is another pod; nothing changed is nothing written.
        files.install(FILE, manifest("e:2"), 0o600).unwrap();
        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| true, &mut known, false).await.unwrap();
        let newer = admin.get(path).await.unwrap().unwrap();
        assert_eq!(newer["spec"]["containers"][0]["image"], "e:2");
        assert_ne!(newer["metadata"]["uid"], pod["metadata"]["uid"]);
        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| true, &mut known, true).await.unwrap();
        let same = admin.get(path).await.unwrap().unwrap();
        assert_eq!(same["metadata"]["resourceVersion"], newer["metadata"]["resourceVersion"]);

        // Deleted by somebody, it comes back at the next check; without its file it goes.
        admin.delete(path).await.unwrap();
        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| true, &mut known, true).await.unwrap();
        assert!(admin.get(path).await.unwrap().is_some());
        files.remove(FILE).unwrap();
        sync(&kubelet, &host, &manifests(files).unwrap(), &|_| true, &mut known, false).await.unwrap();
        assert!(admin.get(path).await.unwrap().is_none());
        server.shutdown().await;
    }
}
