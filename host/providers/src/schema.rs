//! What a CRD's schema has room for: the host writes only fields that the kind declares, so that nothing is pruned and
//! written again for ever.

use capwasm_api::json;
use serde_json::Value;

/// Whether a path (`status.initialization.provisioned`) has room in the schema of a version of a CRD.
pub fn declares(crd: &Value, version: &str, path: &str) -> bool {
    let Some(mut schema) = root(crd, version) else { return false };
    for part in path.split('.') {
        if schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(true) {
            return true;
        }
        match schema.get("properties").and_then(|properties| properties.get(part)) {
            Some(next) => schema = next,
            None => return false,
        }
    }
    true
}

/// Whether a path is named in the schema: one that is open has room for everything and names nothing. `[]` steps into the
/// items of a list: `status.conditions[].severity`.
pub fn names(crd: &Value, version: &str, path: &str) -> bool {
    let step = |schema: &'_ Value, part: &str| -> Option<Value> {
        let name = part.strip_suffix("[]").unwrap_or(part);
        let next = schema.get("properties")?.get(name)?;
        if part.ends_with("[]") { next.get("items").cloned() } else { Some(next.clone()) }
    };
    let Some(root) = root(crd, version) else { return false };
    path.split('.').try_fold(root.clone(), |schema, part| step(&schema, part)).is_some()
}

/// Flags that a status has to have, whoever writes it: without `ready`, say, nothing else of it can be written either.
pub fn required_flags<'a>(crd: &'a Value, version: &str) -> Vec<&'a str> {
    let Some(status) = root(crd, version).and_then(|schema| schema.pointer("/properties/status")) else {
        return Vec::new();
    };
    let is_flag = |name: &&str| json::text(&status["properties"][*name], "/type") == Some("boolean");
    json::items(status, "/required").iter().filter_map(Value::as_str).filter(is_flag).collect()
}

fn root<'a>(crd: &'a Value, version: &str) -> Option<&'a Value> {
    let versions = json::items(crd, "/spec/versions");
    let found = versions.iter().find(|entry| json::text(entry, "/name") == Some(version))?;
    found.pointer("/schema/openAPIV3Schema")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_declared_or_open_paths_are_there() {
        let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {
            "spec": {"properties": {"providerID": {}}},
            "status": {"x-kubernetes-preserve-unknown-fields": true}}}}}]}});
        for (path, expected) in
            [("spec.providerID", true), ("spec.other", false), ("status.any.thing", true), ("nothing", false)]
        {
            assert_eq!(declares(&crd, "v1", path), expected, "{path}");
        }
        assert!(!declares(&crd, "v2", "spec.providerID"));
    }

    #[test]
    fn what_is_named_and_what_is_required_is_found() {
        let status = json!({"required": ["ready", "network"], "properties": {
            "ready": {"type": "boolean"}, "network": {"type": "object"},
            "conditions": {"type": "array", "items": {"properties": {"severity": {}}}}}});
        let crd = json!({"spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"status": status}}}},
            {"name": "v2", "schema": {"openAPIV3Schema": {"x-kubernetes-preserve-unknown-fields": true}}}]}});
        assert!(names(&crd, "v1", "status.conditions[].severity") && names(&crd, "v1", "status.ready"));
        for path in ["status.conditions.severity", "status.conditions[].reason", "status.other"] {
            assert!(!names(&crd, "v1", path), "{path}");
        }
        assert!(!names(&crd, "v2", "status.ready") && declares(&crd, "v2", "status.ready"));
        assert_eq!(required_flags(&crd, "v1"), ["ready"]);
        assert!(required_flags(&crd, "v2").is_empty() && required_flags(&crd, "v3").is_empty());
    }
}
