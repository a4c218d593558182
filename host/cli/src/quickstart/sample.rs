//! Applying and deleting the sample.

use std::time::Duration;

use anyhow::{Context, Result};
use capwasm_object::{json, meta};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;

/// Polling interval for deleted objects.
const GLANCE: Duration = Duration::from_millis(100);

/// Command after kubeadm, as kind itself runs it: applies the CNI of the node image with the pod network filled in.
pub const INSTALL_CNI: &str = "sed 's,{{ *\\.PodSubnet *}},192.168.0.0/16,' /kind/manifests/default-cni.yaml | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -";

/// Parses YAML documents.
pub fn documents(manifests: &str) -> Result<Vec<Value>> {
    serde_saphyr::from_multiple(manifests).context("the manifests are not YAML")
}

/// Server-side apply of YAML documents.
pub async fn apply(client: &kube::Client, manifests: &str) -> Result<()> {
    for document in documents(manifests)? {
        let api = api_of(client, &document)?;
        let name = meta::name(&document);
        let applied = api.patch(name, &PatchParams::apply("capwasm-quickstart"), &Patch::Apply(&document)).await;
        applied.with_context(|| format!("unable to apply {} {name}", meta::kind(&document)))?;
    }
    Ok(())
}

/// Deletes the Cluster with everything that it owns, then remaining objects of the manifests; returns when nothing is
/// left.
pub async fn delete(client: &kube::Client, manifests: &str) -> Result<()> {
    let documents = documents(manifests)?;
    let (clusters, rest): (Vec<&Value>, Vec<&Value>) =
        documents.iter().partition(|document| meta::kind(document) == "Cluster");
    // The rest may wait for each other.
    for together in [clusters, rest] {
        for document in &together {
            let name = meta::name(document);
            match api_of(client, document)?.delete(name, &DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("unable to delete {} {name}", meta::kind(document)));
                }
            }
        }
        for document in &together {
            gone(&api_of(client, document)?, document).await?;
        }
    }
    Ok(())
}

async fn gone(api: &Api<DynamicObject>, document: &Value) -> Result<()> {
    let name = meta::name(document);
    let unable = || format!("unable to read {} {name}", meta::kind(document));
    while api.get_opt(name).await.with_context(unable)?.is_some() {
        tokio::time::sleep(GLANCE).await;
    }
    Ok(())
}

/// API for objects like this one.
pub fn api_of(client: &kube::Client, document: &Value) -> Result<Api<DynamicObject>> {
    let version = json::text(document, "/apiVersion").context("a manifest without apiVersion")?;
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, meta::kind(document)));
    let namespace = match meta::namespace(document) {
        "" => super::NAMESPACE,
        namespace => namespace,
    };
    Ok(Api::namespaced_with(client.clone(), namespace, &resource))
}
