//! Rules of single kinds: Namespace, Secret, ConfigMap, CustomResourceDefinition, CertificateSigningRequest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capwasm_object::meta;
use serde_json::{Value, json};

use super::{Locator, Registry, WriteOptions, pipeline};
use crate::crd;
use crate::status::{ApiError, ApiResult};

/// In a namespace's `spec.finalizers` until the namespace is empty.
pub(crate) const NAMESPACE_FINALIZER: &str = "kubernetes";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    Namespace,
    Secret,
    ConfigMap,
    Crd,
    Csr,
    None,
}

fn special(at: &Locator) -> Special {
    match (at.resource.group.as_str(), at.resource.plural.as_str()) {
        ("", "namespaces") => Special::Namespace,
        ("", "secrets") => Special::Secret,
        ("", "configmaps") => Special::ConfigMap,
        ("apiextensions.k8s.io", "customresourcedefinitions") => Special::Crd,
        ("certificates.k8s.io", "certificatesigningrequests") => Special::Csr,
        _ => Special::None,
    }
}

/// Fields that only creation sets.
pub(super) fn prepare_create(at: &Locator, object: &mut Value, options: &WriteOptions) {
    match special(at) {
        Special::Namespace => {
            set_in_spec(object, "finalizers", json!([NAMESPACE_FINALIZER]));
            object["status"] = json!({"phase": "Active"});
        }
        Special::Csr => {
            // Who asks is what authentication found, never what the object claims.
            set_in_spec(object, "username", json!(options.user.user));
            set_in_spec(object, "groups", json!(options.user.groups));
        }
        Special::Crd => {
            meta::add_finalizer(object, crd::CLEANUP_FINALIZER);
        }
        Special::Secret | Special::ConfigMap | Special::None => {}
    }
}

/// Sets `spec.<field>`. A `spec` that is no object is left to validation.
fn set_in_spec(object: &mut Value, field: &str, value: Value) {
    let Some(root) = object.as_object_mut() else { return };
    let spec = root.entry("spec").or_insert(Value::Null);
    if spec.is_null() {
        *spec = json!({});
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.insert(field.to_owned(), value);
    }
}

/// Fields that every write sets.
pub(super) fn prepare(registry: &Registry, at: &Locator, object: &mut Value, old: Option<&Value>) {
    match special(at) {
        Special::Namespace => {
            let name = json!(at.name);
            let labels = meta::map(object).entry("labels").or_insert_with(|| json!({}));
            if let Some(labels) = labels.as_object_mut() {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name);
            }
            if let Some(old) = old {
                set_in_spec(
                    object,
                    "finalizers",
                    old.pointer("/spec/finalizers").cloned().unwrap_or_else(|| json!([])),
                );
            }
        }
        Special::Secret => prepare_secret(object),
        Special::Crd => crd::prepare(object, old, &registry.catalog(), &registry.stamp()),
        Special::Csr => {
            if let Some(old) = old {
                object["spec"] = old["spec"].clone();
            }
        }
        Special::ConfigMap | Special::None => {}
    }
}

/// Moves `stringData`, base64-encoded, into `data`.
fn prepare_secret(object: &mut Value) {
    let Some(root) = object.as_object_mut() else { return };
    if let Some(Value::Object(plain)) = root.remove("stringData") {
        let data = root.entry("data").or_insert_with(|| json!({}));
        if !data.is_object() {
            *data = json!({});
        }
        for (key, value) in plain {
            data[key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    }
    if root.get("type").and_then(Value::as_str).unwrap_or_default().is_empty() {
        root.insert("type".to_owned(), json!("Opaque"));
    }
}

pub(super) fn validate(at: &Locator, object: &Value, old: Option<&Value>) -> ApiResult<()> {
    match special(at) {
        Special::Secret | Special::ConfigMap => validate_data(at, object, old),
        Special::Crd => {
            let causes = crd::validate(object, old);
            if causes.is_empty() { Ok(()) } else { Err(pipeline::invalid(at, causes)) }
        }
        Special::Namespace | Special::Csr | Special::None => Ok(()),
    }
}

fn validate_data(at: &Locator, object: &Value, old: Option<&Value>) -> ApiResult<()> {
    for (key, value) in object.get("data").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("data[{key}]");
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if key.is_empty() || key.len() > 253 || !key.chars().all(legal) {
            let message = format!(
                "Invalid value: \"{key}\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  \
                 or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
            );
            return Err(pipeline::invalid_field(at, "FieldValueInvalid", &path, message));
        }
        if special(at) == Special::Secret && value.as_str().is_none_or(|text| STANDARD.decode(text).is_err()) {
            return Err(ApiError::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at {path}"
            )));
        }
    }
    let Some(old) = old else { return Ok(()) };
    if old["immutable"] == true {
        for field in ["data", "binaryData", "immutable"] {
            if object.get(field) != old.get(field) {
                let message = "Forbidden: field is immutable when `immutable` is set";
                return Err(pipeline::invalid_field(at, "FieldValueForbidden", field, message));
            }
        }
    }
    if special(at) == Special::Secret && object.get("type") != old.get("type") {
        let message = format!("Invalid value: {}: field is immutable", object["type"]);
        return Err(pipeline::invalid_field(at, "FieldValueInvalid", "type", message));
    }
    Ok(())
}

/// Whether `spec.finalizers` keep a deleted namespace.
pub(super) fn holds(at: &Locator, object: &Value) -> bool {
    special(at) == Special::Namespace
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|finalizers| !finalizers.is_empty())
}

/// Refuses deletion of the system namespaces.
pub(super) fn check_delete(at: &Locator) -> ApiResult<()> {
    if special(at) == Special::Namespace && matches!(at.name.as_str(), "default" | "kube-system" | "kube-public") {
        let message = format!("namespaces \"{}\" is forbidden: this namespace may not be deleted", at.name);
        return Err(ApiError::forbidden(message).about("", "namespaces", &at.name));
    }
    Ok(())
}

pub(super) fn mark_deleted(at: &Locator, object: &mut Value) {
    if special(at) == Special::Namespace {
        object["status"]["phase"] = json!("Terminating");
    }
}
