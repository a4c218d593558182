//! What a CRD's schema has room for: the host writes only fields that the kind declares, so that nothing is pruned and
//! written again for ever.

use serde_json::Value;

/// Whether a path (`status.initialization.provisioned`) is in the schema of a version of a CRD.
pub fn declares(crd: &Value, version: &str, path: &str) -> bool {
    let Some(versions) = crd.pointer("/spec/versions").and_then(Value::as_array) else { return false };
    let Some(found) = versions.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(version)) else {
        return false;
    };
    let Some(mut schema) = found.pointer("/schema/openAPIV3Schema") else { return false };
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

#[cfg(test)]
mod tests {
    use super::declares;
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
}
