//! Patches of generated manifests, from files `<component>[suffix][+strategic|merge|json].{yaml,json}` in alphabetical order.

use capwasm_apiserver::bounded_patch::BoundedPatch;
use serde_json::Value;

use crate::files::{Files, reason};

/// Lists of objects that a strategic merge patch merges, and the field that tells their elements apart.
const MERGED_BY: [(&str, &str); 7] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("ports", "containerPort"),
    ("imagePullSecrets", "name"),
];

/// Applies all patches of a component.
///
/// # Errors
/// What is wrong with a patch; a directory that cannot be read.
pub(super) fn apply(files: &dyn Files, directory: &str, component: &str, mut object: Value) -> Result<Value, String> {
    let names = files
        .list(directory)
        .map_err(|error| format!("could not list the patches in {directory}: {}", reason(&error)))?;
    for name in names {
        let Some(kind) = kind(&name, component) else { continue };
        let path = format!("{directory}/{name}");
        let broken = |problem: String| format!("could not apply the patch {path}: {problem}");
        let text = files.read_text(&path).map_err(|error| broken(reason(&error)))?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).map_err(|error| broken(error.to_string()))?;
        for patch in documents.into_iter().filter(|patch| !patch.is_null()) {
            match kind {
                "strategic" => merge(&mut object, &patch, true),
                "merge" => merge(&mut object, &patch, false),
                "json" => {
                    let operations: json_patch::Patch =
                        serde_json::from_value(patch).map_err(|error| broken(error.to_string()))?;
                    BoundedPatch::try_from(operations)
                        .and_then(|operations| operations.apply(&mut object))
                        .map_err(|error| broken(error.to_string()))?;
                }
                other => return Err(broken(format!("unknown patch type {other:?}"))),
            }
        }
    }
    Ok(object)
}

/// How a file patches a component; `None` when it is another's or no patch.
fn kind<'a>(name: &'a str, component: &str) -> Option<&'a str> {
    let (stem, extension) = name.rsplit_once('.')?;
    if !matches!(extension, "yaml" | "json") {
        return None;
    }
    let (target, kind) = stem.split_once('+').unwrap_or((stem, "strategic"));
    target.starts_with(component).then_some(kind)
}

fn merge(object: &mut Value, patch: &Value, strategic: bool) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = serde_json::json!({});
    }
    let Value::Object(fields) = object else { return };
    for (name, change) in changes {
        let key = MERGED_BY.iter().find(|(list, _)| strategic && list == name).map(|(_, key)| *key);
        match (change, key) {
            (Value::Null, _) => drop(fields.remove(name)),
            (Value::Array(elements), Some(key)) => {
                let list = fields.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                merge_list(list, elements, key);
            }
            _ => merge(fields.entry(name.clone()).or_insert(Value::Null), change, strategic),
        }
    }
}

fn merge_list(list: &mut Value, changes: &[Value], key: &str) {
    let Value::Array(elements) = list else {
        *list = Value::Array(changes.to_vec());
        return;
    };
    for change in changes {
        let position = elements.iter().position(|element| element[key] == change[key]);
        match (position, change["$patch"] == "delete") {
            (Some(position), true) => drop(elements.remove(position)),
            (Some(position), false) => merge(&mut elements[position], change, true),
            (None, true) => {}
            (None, false) => elements.push(change.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::files::MemoryFiles;

    fn patched(name: &str, patch: &str) -> Result<Value, String> {
        let memory = MemoryFiles::new(Arc::default());
        let files: &dyn Files = &memory;
        files.install(&format!("/p/{name}"), patch.to_owned(), 0o600).unwrap();
        let object =
            json!({ "metadata": { "name": "etcd" }, "spec": { "containers": [{ "name": "etcd", "image": "a" }] } });
        apply(files, "/p", "etcd", object)
    }

    #[test]
    fn each_type_patches_in_its_way() {
        let image = "spec: {containers: [{name: etcd, image: b, env: [{name: A, value: x}]}]}";
        let strategic = patched("etcd0.yaml", image).unwrap();
        assert_eq!(
            strategic["spec"]["containers"],
            json!([{ "name": "etcd", "image": "b", "env": [{ "name": "A", "value": "x" }] }])
        );
        let merged = patched("etcd+merge.yaml", "spec: {containers: [{name: other}]}").unwrap();
        assert_eq!(merged["spec"]["containers"], json!([{ "name": "other" }]));
        let json =
            patched("etcdx+json.json", r#"[{"op": "replace", "path": "/spec/containers/0/image", "value": "c"}]"#)
                .unwrap();
        assert_eq!(json["spec"]["containers"][0]["image"], "c");
        assert_eq!(patched("kube-apiserver.yaml", image).unwrap()["spec"]["containers"][0]["image"], "a");
        assert!(patched("etcd+nonsense.yaml", image).unwrap_err().contains("unknown patch type"));
    }
}
