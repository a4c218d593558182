//! Namespaces: what a new one gets, and how a deleted one is emptied.

use capwasm_object::{conditions, json, meta};
use serde_json::{Value, json};

use crate::registry::{
    DeleteOptions, Edit, ListRequest, Locator, NAMESPACE_FINALIZER, Part, Propagation, Registry, WriteOptions,
};
use crate::status::ApiResult;

const MANAGER: &str = "namespace-controller";

pub(super) async fn reconcile(registry: &Registry, name: &str) -> ApiResult<()> {
    let at = registry.locate("", "namespaces", "", name)?;
    let Some(namespace) = registry.find(&at)? else {
        // Woken by an object that arrived between the last look and the namespace's end.
        return delete_content(registry, name).await.map(drop);
    };
    if meta::is_deleting(&namespace) { empty(registry, &at, &namespace).await } else { furnish(registry, name).await }
}

/// Creates the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.
async fn furnish(registry: &Registry, name: &str) -> ApiResult<()> {
    let Some(ca) = &registry.config.service_account_root_ca else { return Ok(()) };
    let objects = [
        ("serviceaccounts", json!({"metadata": {"name": "default"}})),
        ("configmaps", json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ca}})),
    ];
    for (plural, object) in objects {
        if registry.find(&registry.locate("", plural, name, meta::name(&object))?)?.is_some() {
            continue;
        }
        let resource = registry.in_store("", plural)?;
        match registry.create(&resource, name, object, &WriteOptions::internal(MANAGER)).await {
            Err(error) if error.reason != "AlreadyExists" => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Deletes what is in the namespace, and removes its finalizer when nothing is left. Each deletion inside runs this
/// again.
async fn empty(registry: &Registry, at: &Locator, namespace: &Value) -> ApiResult<()> {
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    if !finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == NAMESPACE_FINALIZER)) {
        return Ok(());
    }
    let left = delete_content(registry, &at.name).await?;
    let internal = WriteOptions::internal(MANAGER);
    let done = left.is_empty();
    let now = registry.config.clock.stamp();
    let conditions = conditions(namespace, &left, &now);
    let tell = |object: &mut Value| object["status"]["conditions"] = conditions.clone();
    if !done {
        return gone_is_fine(registry.update(at, Part::Status, &internal, &Edit::Own(&tell)).await.map(drop));
    }
    let release = |object: &mut Value| {
        if let Some(finalizers) = object.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|finalizer| finalizer != NAMESPACE_FINALIZER);
        }
    };
    gone_is_fine(registry.update(at, Part::Finalize, &internal, &Edit::Own(&release)).await.map(drop))
}

/// Deletes every object in a namespace. Returns what is left.
async fn delete_content(registry: &Registry, namespace: &str) -> ApiResult<Vec<String>> {
    let catalog = registry.catalog();
    let request = ListRequest { namespace: Some(namespace.to_owned()), ..ListRequest::default() };
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let mut left = Vec::new();
    for resource in catalog.stored().filter(|resource| resource.namespaced) {
        registry.delete_collection(resource, &request, &options).await?;
        let count = registry.list_now(resource, &request)?.items.len();
        if count > 0 {
            left.push(format!("{} has {count} resource instances", resource.store));
        }
    }
    Ok(left)
}

fn gone_is_fine(result: ApiResult<()>) -> ApiResult<()> {
    match result {
        Err(error) if error.code == 404 => Ok(()),
        other => other,
    }
}

/// Conditions that say what keeps a namespace.
fn conditions(namespace: &Value, left: &[String], now: &str) -> Value {
    let known = json::items(namespace, "/status/conditions");
    let condition = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = if holds { "True" } else { "False" };
        let mut condition = json!({"type": kind, "status": status, "reason": reason, "message": message});
        conditions::stamp(&mut condition, known, now);
        condition
    };
    let remaining = !left.is_empty();
    let some = format!("Some resources are remaining: {}", left.join(", "));
    let (reason, message) = if remaining {
        ("SomeResourcesRemain", some.as_str())
    } else {
        ("ContentRemoved", "All content successfully removed")
    };
    json!([
        condition(
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization"
        ),
        condition("NamespaceContentRemaining", remaining, reason, message),
    ])
}
