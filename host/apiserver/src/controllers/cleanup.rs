//! Deletes the custom resources of a CRD that goes, before it goes.

use crate::crd::CLEANUP_FINALIZER;
use crate::registry::{DeleteOptions, ListRequest, Registry};
use crate::status::ApiResult;
use capwasm_object::meta;

pub(super) async fn reconcile(registry: &Registry, name: &str) -> ApiResult<()> {
    let at = registry.locate("apiextensions.k8s.io", "customresourcedefinitions", "", name)?;
    let Some(crd) = registry.find(&at)? else { return Ok(()) };
    if !meta::is_deleting(&crd) || !meta::has_finalizer(&crd, CLEANUP_FINALIZER) {
        return Ok(());
    }
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let resource = registry.catalog().in_store(group, plural).cloned();
    if let Some(resource) = resource.filter(|resource| resource.custom()) {
        registry.delete_collection(&resource, &ListRequest::default(), &DeleteOptions::default()).await?;
        // Those with finalizers take longer; each that goes wakes this again.
        if !registry.list_now(&resource, &ListRequest::default())?.items.is_empty() {
            return Ok(());
        }
    }
    match registry.remove_finalizer(&at, CLEANUP_FINALIZER).await {
        Err(error) if error.code != 404 => Err(error),
        _ => Ok(()),
    }
}
