//! Resources of the built-in kinds.

use capwasm_object::group_version;
use std::sync::Arc;

use super::{Origin, Resource, Scale, SchemaRef};
use crate::builtin::BuiltinKind;
use crate::schema;

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(super) fn resource(kind: &BuiltinKind) -> Arc<Resource> {
    let schema = schema::of_kind(kind.group, kind.version, kind.kind).map(SchemaRef::Native);
    let scales = kind.group == "apps" && matches!(kind.plural, "deployments" | "replicasets" | "statefulsets");
    let scale = Scale {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        selector: Some(".spec.selector".into()),
    };
    let subresources = match (kind.group, kind.plural) {
        ("", "namespaces") => vec!["finalize"],
        ("", "pods") => vec!["eviction", "portforward"],
        ("certificates.k8s.io", "certificatesigningrequests") => vec!["approval"],
        _ => Vec::new(),
    };
    // Both groups show the same Events.
    let alias = kind.group == "events.k8s.io";
    let (storage_group, storage_version) = if alias { ("", "v1") } else { (kind.group, kind.version) };
    let storage = group_version::join(storage_group, storage_version);
    Resource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        kind: kind.kind.to_owned(),
        list_kind: format!("{}List", kind.kind),
        plural: kind.plural.to_owned(),
        singular: kind.singular.clone(),
        short_names: owned(&kind.short_names),
        categories: owned(&kind.categories),
        namespaced: kind.namespaced,
        origin: if kind.stored { Origin::Native } else { Origin::Virtual },
        status: kind.has_status,
        scale: scales.then_some(scale),
        subresources,
        generation: kind.has_generation,
        store: if kind.group.is_empty() || alias {
            kind.plural.to_owned()
        } else {
            format!("{}.{}", kind.plural, kind.group)
        },
        storage_schema: schema::of_kind(storage_group, storage_version, kind.kind).map(SchemaRef::Native),
        storage,
        schema,
        columns: None,
        selectable: None,
        deprecation: None,
        converted: None,
        defaulted_since: 0,
        terminating: false,
        head: String::new(),
    }
    .finish()
}
