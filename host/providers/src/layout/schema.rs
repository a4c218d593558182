//! Fields that a CRD's schema declares: the host writes no others, which would be pruned and written again for ever.

use capwasm_object::json;
use serde_json::Value;

/// The schema of one version of a CRD; a missing one declares nothing.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a>(Option<&'a Value>);

impl<'a> Schema<'a> {
    /// `version` is a version's name, such as `v1beta2`.
    pub fn of(crd: &'a Value, version: &str) -> Self {
        let versions = json::items(crd, "/spec/versions");
        let found = versions.iter().find(|entry| json::text(entry, "/name") == Some(version));
        Self(found.and_then(|entry| entry.pointer("/schema/openAPIV3Schema")))
    }

    /// Whether a path such as `status.initialization.provisioned` survives pruning.
    pub fn declares(&self, path: &str) -> bool {
        let Some(mut schema) = self.0 else { return false };
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

    /// Whether a path is declared by name; an open schema names nothing. `[]` steps into the items of a list:
    /// `status.conditions[].severity`.
    pub fn names(&self, path: &str) -> bool {
        let step = |schema: &'a Value, part: &str| {
            let next = schema.get("properties")?.get(part.strip_suffix("[]").unwrap_or(part))?;
            if part.ends_with("[]") { next.get("items") } else { Some(next) }
        };
        self.0.is_some_and(|root| path.split('.').try_fold(root, step).is_some())
    }

    /// Boolean fields that `status` requires: without `ready`, for example, no status can be written at all.
    pub fn required_flags(&self) -> Vec<String> {
        let Some(status) = self.0.and_then(|schema| schema.pointer("/properties/status")) else { return Vec::new() };
        let is_flag = |name: &&str| json::text(&status["properties"][*name], "/type") == Some("boolean");
        let required = json::items(status, "/required").iter().filter_map(Value::as_str);
        required.filter(is_flag).map(str::to_owned).collect()
    }
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
            assert_eq!(Schema::of(&crd, "v1").declares(path), expected, "{path}");
        }
        assert!(!Schema::of(&crd, "v2").declares("spec.providerID"));
    }

    #[test]
    fn what_is_named_and_what_is_required_is_found() {
        let status = json!({"required": ["ready", "network"], "properties": {
            "ready": {"type": "boolean"}, "network": {"type": "object"},
            "conditions": {"type": "array", "items": {"properties": {"severity": {}}}}}});
        let crd = json!({"spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"status": status}}}},
            {"name": "v2", "schema": {"openAPIV3Schema": {"x-kubernetes-preserve-unknown-fields": true}}}]}});
        let [first, open, none] = ["v1", "v2", "v3"].map(|version| Schema::of(&crd, version));
        assert!(first.names("status.conditions[].severity") && first.names("status.ready"));
        for path in ["status.conditions.severity", "status.conditions[].reason", "status.other"] {
            assert!(!first.names(path), "{path}");
        }
        assert!(!open.names("status.ready") && open.declares("status.ready"));
        assert_eq!(first.required_flags(), ["ready"]);
        assert!(open.required_flags().is_empty() && none.required_flags().is_empty());
    }
}
