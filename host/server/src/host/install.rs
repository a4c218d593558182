//! Objects that the host installs before its controllers start. Afterwards only plans are written, and CRDs that are gone.

use anyhow::{Context, Result, bail};
use capwasm_object::{json, meta};
use capwasm_providers::widened;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Label of installed objects.
pub(super) const INSTALLED_BY: &str = "capwasm.dev/installed-by";
const DIGEST: &str = "capwasm.dev/installed-digest";

/// Installs or updates a CRD and waits until it is established. One of somebody else (such as Cluster API) is not
/// changed. Returns whether it is the host's.
pub async fn crd(client: &kube::Client, crd: &Value) -> Result<bool> {
    let api: Api<DynamicObject> = Api::all_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition")),
    );
    let ours = put(&api, crd).await?;
    let established = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| {
            capwasm_api::conditions::is_true(&json!({"status": object.data.get("status")}), "Established")
        })
    };
    let name = meta::name(crd);
    let waited =
        tokio::time::timeout(std::time::Duration::from_secs(30), await_condition(api, name, established)).await;
    waited
        .with_context(|| format!("CRD {name} is not served"))?
        .with_context(|| format!("unable to wait for CRD {name}"))?;
    Ok(ours)
}

/// Installs or updates the WasmProvider of a bundled provider. One that a user wrote keeps its spec.
pub async fn wasm_provider(client: &kube::Client, object: &Value) -> Result<()> {
    let gvk = GroupVersionKind::gvk(
        capwasm_providers::wasm_provider::GROUP,
        "v1alpha1",
        capwasm_providers::wasm_provider::KIND,
    );
    put(&Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk)), object).await.map(drop)
}

/// Returns whether the object is the host's.
async fn put(api: &Api<DynamicObject>, object: &Value) -> Result<bool> {
    let name = meta::name(object);
    let wanted = marked(object);
    let unable = || format!("unable to install {} {name}", meta::kind(object));
    for _ in 0..3 {
        match api.get_opt(name).await.with_context(unable)? {
            None => match api.create(&PostParams::default(), &serde_json::from_value(wanted.clone())?).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                created => return created.map(|_| true).with_context(unable),
            },
            Some(live) => {
                let ours = live.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(INSTALLED_BY));
                let installed = live.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DIGEST));
                if !ours || installed.map(String::as_str) == meta::annotation(&wanted, DIGEST) {
                    return Ok(ours);
                }
                let spec = match meta::kind(object) {
                    "CustomResourceDefinition" => widened(&wanted, &live.data),
                    _ => json!(wanted.get("spec")),
                };
                let metadata = json!({
                    "labels": wanted.pointer("/metadata/labels"), "annotations": wanted.pointer("/metadata/annotations")});
                let patch = json!({"metadata": metadata, "spec": spec});
                return api
                    .patch(name, &PatchParams::default(), &Patch::Merge(patch))
                    .await
                    .map(|_| true)
                    .with_context(unable);
            }
        }
    }
    bail!("unable to install {} {name}: it comes and goes", meta::kind(object))
}

fn marked(object: &Value) -> Value {
    let mut object = object.clone();
    json::map(&mut object, &["metadata", "labels"]).insert(INSTALLED_BY.into(), "capwasm".into());
    let digest = Sha256::digest(json!([object["metadata"]["labels"], object.get("spec")]).to_string());
    let digest = hex::encode(&digest[..8]);
    json::map(&mut object, &["metadata", "annotations"]).insert(DIGEST.into(), digest.into());
    object
}
