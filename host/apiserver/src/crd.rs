//! CustomResourceDefinitions: what a server adds to them, and what it refuses. Pure.

use capwasm_object::meta;
use serde_json::{Value, json};

use crate::catalog::{Catalog, Origin, established};
use crate::schema::Schema;
use crate::status::Cause;

/// Removed when no custom resource of the kind is left.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Defaults names and conversion, and computes the status: accepted names, conditions, stored versions. With one server in
/// one process a CRD is established in the write that brings it.
pub(crate) fn prepare(crd: &mut Value, old: Option<&Value>, catalog: &Catalog, now: &str) {
    default_spec(crd);
    let conflict = conflict(crd, catalog);
    let mut status =
        old.and_then(|old| old.get("status")).filter(|s| s.is_object()).cloned().unwrap_or_else(|| json!({}));
    let was_established = old.is_some_and(established);
    if conflict.is_none() {
        status["acceptedNames"] = crd.pointer("/spec/names").cloned().unwrap_or_else(|| json!({}));
    } else if status.get("acceptedNames").is_none() {
        status["acceptedNames"] = json!({"plural": "", "kind": ""});
    }
    let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    match &conflict {
        None => {
            set(&mut conditions, now, "NamesAccepted", true, "NoConflicts", "no conflicts found");
            set(
                &mut conditions,
                now,
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
            );
        }
        Some((reason, message)) => {
            set(&mut conditions, now, "NamesAccepted", false, reason, message);
            if !was_established {
                set(&mut conditions, now, "Established", false, "NotAccepted", "not all names are accepted");
            }
        }
    }
    if meta::is_deleting(crd) {
        set(
            &mut conditions,
            now,
            "Terminating",
            true,
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        );
    }
    status["conditions"] = Value::Array(conditions);
    let mut stored: Vec<Value> = status.get("storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    for version in versions(crd).iter().filter(|version| version["storage"] == true) {
        if !stored.contains(&version["name"]) {
            stored.push(version["name"].clone());
        }
    }
    status["storedVersions"] = Value::Array(stored);
    crd["status"] = status;
}

fn default_spec(crd: &mut Value) {
    let kind = text(crd, "/spec/names/kind").to_owned();
    if let Some(names) = crd.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        for (field, value) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
            if names.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                names.insert(field.to_owned(), json!(value));
            }
        }
    }
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("conversion").is_none_or(Value::is_null)
    {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// Reason and message of `NamesAccepted` when another kind of the group has one of the names.
fn conflict(crd: &Value, catalog: &Catalog) -> Option<(&'static str, String)> {
    let group = text(crd, "/spec/group");
    let (plural, singular, kind) =
        (text(crd, "/spec/names/plural"), text(crd, "/spec/names/singular"), text(crd, "/spec/names/kind"));
    let others = catalog.stored().filter(|r| r.group == group && r.plural != plural);
    for other in others {
        if other.kind == kind || other.list_kind == text(crd, "/spec/names/listKind") {
            return Some(("KindConflict", format!("\"{kind}\" is already in use")));
        }
        if other.singular == singular {
            return Some(("SingularConflict", format!("\"{singular}\" is already in use")));
        }
    }
    let native = catalog.in_store(group, plural).is_some_and(|known| known.origin != Origin::Custom);
    native.then(|| ("PluralConflict", format!("\"{plural}\" is already in use")))
}

fn set(conditions: &mut Vec<Value>, now: &str, kind: &str, holds: bool, reason: &str, message: &str) {
    let status = if holds { "True" } else { "False" };
    let condition = json!({"type": kind, "status": status, "reason": reason, "message": message});
    capwasm_object::conditions::put(conditions, condition, now);
}

pub(crate) fn validate(crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut wrong = |reason: &str, field: &str, message: String| {
        causes.push(Cause { reason: reason.to_owned(), message, field: field.to_owned() })
    };
    let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
    for (field, value) in
        [("spec.group", group), ("spec.names.plural", plural), ("spec.names.kind", text(crd, "/spec/names/kind"))]
    {
        if value.is_empty() {
            wrong("FieldValueRequired", field, "Required value".to_owned());
        }
    }
    let expected = format!("{plural}.{group}");
    if meta::name(crd) != expected {
        wrong(
            "FieldValueInvalid",
            "metadata.name",
            format!("Invalid value: \"{}\": must be spec.names.plural+\".\"+spec.group", meta::name(crd)),
        );
    }
    if !matches!(text(crd, "/spec/scope"), "Namespaced" | "Cluster") {
        wrong(
            "FieldValueNotSupported",
            "spec.scope",
            format!(
                "Unsupported value: \"{}\": supported values: \"Cluster\", \"Namespaced\"",
                text(crd, "/spec/scope")
            ),
        );
    }
    if versions(crd).is_empty() {
        wrong("FieldValueRequired", "spec.versions", "Required value: must specify at least one version".to_owned());
    }
    if versions(crd).iter().filter(|version| version["storage"] == true).count() != 1 {
        wrong(
            "FieldValueInvalid",
            "spec.versions",
            "Invalid value: must have exactly one version marked as storage version".to_owned(),
        );
    }
    let mut names: Vec<&str> = versions(crd).iter().map(|version| text(version, "/name")).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        wrong("FieldValueInvalid", "spec.versions", "Invalid value: must contain unique version names".to_owned());
    }
    for (index, version) in versions(crd).iter().enumerate() {
        let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
        let before = old.map(versions).into_iter().flatten().find(|other| other["name"] == version["name"]);
        if before.is_some_and(|before| before.get("schema") == version.get("schema")) {
            continue;
        }
        match version.pointer("/schema/openAPIV3Schema") {
            None => wrong("FieldValueRequired", &path, "Required value: schemas are required".to_owned()),
            Some(schema) => {
                if let Err(error) = Schema::shared(schema) {
                    for one in error.errors {
                        wrong(one.reason.as_str(), &join(&path, &one.path), one.message);
                    }
                }
            }
        }
    }
    let Some(old) = old else { return causes };
    for (field, pointer) in [
        ("spec.group", "/spec/group"),
        ("spec.scope", "/spec/scope"),
        ("spec.names.plural", "/spec/names/plural"),
        ("spec.names.kind", "/spec/names/kind"),
    ] {
        if established(old) && crd.pointer(pointer) != old.pointer(pointer) {
            wrong("FieldValueInvalid", field, format!("Invalid value: \"{}\": field is immutable", text(crd, pointer)));
        }
    }
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array);
    for version in stored.into_iter().flatten().filter_map(Value::as_str) {
        if !versions(crd).iter().any(|known| known["name"] == version) {
            let message = format!(
                "Invalid value: \"{version}\": missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            wrong("FieldValueInvalid", "status.storedVersions", message);
        }
    }
    causes
}

fn join(base: &str, path: &str) -> String {
    if path.is_empty() || path == "<nil>" { base.to_owned() } else { format!("{base}.{path}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn crd() -> Value {
        json!({"metadata": {"name": "things.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    }

    #[test]
    fn a_new_crd_is_established_at_once_with_its_names_and_storage_version() {
        let mut crd = crd();
        prepare(&mut crd, None, &Catalog::default(), "2026-01-01T00:00:00Z");
        assert!(established(&crd));
        assert_eq!(crd["status"]["acceptedNames"]["listKind"], "ThingList");
        assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(crd["spec"]["conversion"]["strategy"], "None");
        let again = {
            let mut again = crd.clone();
            prepare(&mut again, Some(&crd), &Catalog::default(), "2027-01-01T00:00:00Z");
            again
        };
        assert_eq!(again, crd, "preparing it again changes nothing");
    }

    #[test]
    fn crds_are_refused_for_what_kubernetes_refuses_them() {
        type Row = (&'static str, fn(&mut Value), &'static str);
        let rows: [Row; 5] = [
            ("wrong name", |crd| crd["metadata"]["name"] = json!("x"), "metadata.name"),
            ("no storage version", |crd| crd["spec"]["versions"][0]["storage"] = json!(false), "spec.versions"),
            (
                "no schema",
                |crd| crd["spec"]["versions"][0]["schema"] = json!({}),
                "spec.versions[0].schema.openAPIV3Schema",
            ),
            ("unknown scope", |crd| crd["spec"]["scope"] = json!("Galaxy"), "spec.scope"),
            ("no kind", |crd| crd["spec"]["names"]["kind"] = json!(""), "spec.names.kind"),
        ];
        assert_eq!(validate(&crd(), None), vec![]);
        for (name, spoil, field) in rows {
            let mut crd = crd();
            spoil(&mut crd);
            assert!(validate(&crd, None).iter().any(|cause| cause.field == field), "{name}");
        }
    }

    #[test]
    fn a_version_that_was_stored_must_stay() {
        let mut old = crd();
        prepare(&mut old, None, &Catalog::default(), "2026-01-01T00:00:00Z");
        let mut new = old.clone();
        new["spec"]["versions"][0]["name"] = json!("v2");
        prepare(&mut new, Some(&old), &Catalog::default(), "2026-01-01T00:00:00Z");
        assert!(validate(&new, Some(&old)).iter().any(|cause| cause.field == "status.storedVersions"));
    }
}
