//! Discovery: groups, versions and resources, in the legacy and the aggregated form.

use std::sync::Arc;

use bytes::Bytes;
use capwasm_object::group_version;
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::dispatch::{Call, Reply};
use crate::catalog::{Catalog, Resource, Version};
use crate::registry::Registry;
use sha2::{Digest as _, Sha256};

pub(super) fn core_versions(advertised: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": advertised}]})
}

/// What may be asked for besides resources. Clients that only want to know whether a server answers ask for this.
pub(super) fn paths(catalog: &Catalog) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"].map(str::to_owned).to_vec();
    for (name, versions) in catalog.groups() {
        let versions = versions.iter().map(|(version, _)| group_version::join(name, version));
        if name.is_empty() {
            paths.extend(versions.map(|version| format!("/api/{version}")));
        } else {
            paths.push(format!("/apis/{name}"));
            paths.extend(versions.map(|version| format!("/apis/{version}")));
        }
    }
    paths.sort();
    json!({"paths": paths})
}

fn group_json(name: &str, versions: &[Version]) -> Value {
    let entry =
        |(version, _): &Version| json!({"groupVersion": group_version::join(name, version), "version": version});
    let entries: Vec<Value> = versions.iter().map(entry).collect();
    json!({"name": name, "versions": entries, "preferredVersion": entries.first()})
}

pub(super) fn groups(catalog: &Catalog) -> Value {
    let groups: Vec<Value> = catalog
        .groups()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, versions)| group_json(name, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

pub(super) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let (name, versions) = catalog.groups().find(|(known, _)| *known == name && !name.is_empty())?;
    let mut group = group_json(name, versions);
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Some(group)
}

/// Subresources of a resource with kind, group and version of their objects, and verbs.
fn subresources(resource: &Resource) -> Vec<(&'static str, Value, &'static [&'static str])> {
    let own = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut found: Vec<(&'static str, Value, &'static [&'static str])> = Vec::new();
    if resource.status {
        found.push(("status", own.clone(), &["get", "patch", "update"]));
    }
    if resource.scale.is_some() {
        found.push((
            "scale",
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            &["get", "patch", "update"],
        ));
    }
    for subresource in &resource.subresources {
        match *subresource {
            "eviction" => {
                found.push(("eviction", json!({"group": "policy", "version": "v1", "kind": "Eviction"}), &["create"]))
            }
            "portforward" => found.push((
                "portforward",
                json!({"group": "", "version": "v1", "kind": "PodPortForwardOptions"}),
                &["create", "get"],
            )),
            "finalize" => found.push(("finalize", own.clone(), &["update"])),
            other => found.push((other, own.clone(), &["get", "patch", "update"])),
        }
    }
    found
}

pub(super) fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for resource in catalog.version(group, version)?.values() {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind,
            "verbs": resource.verbs(),
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        list.push(entry);
        for (name, kind, verbs) in subresources(resource) {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "", "namespaced": resource.namespaced, "kind": kind["kind"], "verbs": verbs,
            });
            if kind["group"] != json!(resource.group) {
                entry["group"] = kind["group"].clone();
                entry["version"] = kind["version"].clone();
            }
            list.push(entry);
        }
    }
    Some(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version::join(group, version), "resources": list}),
    )
}

/// `APIGroupDiscoveryList` of the core group or of all others.
pub(super) fn aggregated(registry: &Registry, call: &Call, version: &'static str, core: bool) -> Reply {
    let catalog = registry.catalog();
    let key = format!("discovery/{version}/{core}");
    let document = cached(&catalog, &key, || {
        let items: Vec<Value> = catalog
            .groups()
            .filter(|(name, _)| name.is_empty() == core)
            .map(|(name, versions)| aggregated_group(name, versions))
            .collect();
        let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {}, "items": items});
        list.to_string().into()
    });
    let etag = format!("\"{}\"", digest(&document));
    let content_type = match version {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    if call.header(header::IF_NONE_MATCH) == etag {
        return Reply { content_type, etag: Some(etag), ..Reply::json(Bytes::new()).code(StatusCode::NOT_MODIFIED) };
    }
    Reply { content_type, etag: Some(etag), ..Reply::json(document) }
}

fn aggregated_group(name: &str, versions: &[Version]) -> Value {
    let resource = |resource: &Arc<Resource>| {
        let subs: Vec<Value> = subresources(resource)
            .into_iter()
            .map(|(name, kind, verbs)| json!({"subresource": name, "responseKind": kind, "verbs": verbs}))
            .collect();
        let mut entry = json!({
            "resource": resource.plural, "singularResource": resource.singular, "verbs": resource.verbs(),
            "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        });
        for (field, list) in [
            ("shortNames", json!(resource.short_names)),
            ("categories", json!(resource.categories)),
            ("subresources", json!(subs)),
        ] {
            if list.as_array().is_some_and(|list| !list.is_empty()) {
                entry[field] = list;
            }
        }
        entry
    };
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, resources)| json!({"version": version, "resources": resources.values().map(resource).collect::<Vec<_>>(), "freshness": "Current"}))
        .collect();
    json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
}

/// A document of the catalog, made when first asked for.
pub(super) fn cached(catalog: &Catalog, key: &str, make: impl FnOnce() -> Bytes) -> Bytes {
    if let Some(known) = catalog.documents.lock().get(key) {
        return known.clone();
    }
    // Made outside the lock; two askers at once both make it, which is harmless.
    let document = make();
    catalog.documents.lock().insert(key.to_owned(), document.clone());
    document
}

/// Hash of a document, for ETags and OpenAPI addresses.
pub(super) fn digest(document: &[u8]) -> String {
    hex::encode_upper(Sha256::digest(document))
}
