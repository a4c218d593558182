//! Objects that every server has.

use serde_json::json;

use crate::registry::{Registry, WriteOptions};
use crate::status::ApiResult;

const NAMESPACES: &[&str] = &["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates the system namespaces that are missing.
pub(crate) async fn bootstrap(registry: &Registry) -> ApiResult<()> {
    let namespaces = registry.in_store("", "namespaces")?;
    for name in NAMESPACES {
        if registry.find(&registry.locate("", "namespaces", "", name)?)?.is_some() {
            continue;
        }
        let options = WriteOptions::internal("kube-apiserver");
        match registry.create(&namespaces, "", json!({"metadata": {"name": name}}), &options).await {
            Err(error) if error.reason != "AlreadyExists" => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
