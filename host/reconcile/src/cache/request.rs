//! Requests on JSON objects by kind. kube's own APIs take objects apart first.

use std::time::Duration;

use kube::{
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams},
    core::Request,
};
use serde_json::Value;

use super::lean::Lean;
use crate::kind::Kind;

/// Timeout of reads.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of writes: longer, since an abandoned write may have happened.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct Requests {
    client: kube::Client,
}

impl Requests {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    pub(crate) async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Value>, kube::Error> {
        // References in objects hold what their writers like; no object can have such a name.
        if !is_segment(name) || !(namespace.is_empty() || is_segment(namespace)) {
            return Ok(None);
        }
        let request =
            collection(kind, namespace)?.get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
        match self.send(request).await {
            Ok(mut object) => {
                complete(kind, &mut object);
                Ok(Some(object))
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All selected objects, page by page.
    pub(crate) async fn list(&self, kind: &Kind, namespace: &str, labels: &str) -> Result<Vec<Value>, kube::Error> {
        let mut parameters = ListParams::default().limit(500);
        if !labels.is_empty() {
            parameters = parameters.labels(labels);
        }
        let mut objects = Vec::new();
        loop {
            let request = collection(kind, namespace)?.list(&parameters).map_err(kube::Error::BuildRequest)?;
            let mut page = self.send(request).await?;
            let token = page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                objects.extend(items.into_iter().map(|mut object| {
                    complete(kind, &mut object);
                    object
                }));
            }
            if token.is_empty() {
                return Ok(objects);
            }
            parameters = parameters.continue_token(&token);
        }
    }

    pub(crate) async fn create(&self, kind: &Kind, namespace: &str, object: &Value) -> Result<Value, kube::Error> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let request =
            collection(kind, namespace)?.create(&PostParams::default(), body).map_err(kube::Error::BuildRequest)?;
        self.send(request).await
    }

    pub(crate) async fn create_subresource(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
        object: &Value,
    ) -> Result<Value, kube::Error> {
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let request = collection(kind, namespace)?
            .create_subresource(subresource, segment(name)?, &PostParams::default(), body)
            .map_err(kube::Error::BuildRequest)?;
        self.send(request).await
    }

    pub(crate) async fn merge(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &Value,
    ) -> Result<Value, kube::Error> {
        let (collection, parameters, patch) =
            (collection(kind, namespace)?, PatchParams::default(), Patch::Merge(patch));
        let name = segment(name)?;
        let request = match subresource {
            Some(subresource) => collection.patch_subresource(subresource, name, &parameters, &patch),
            None => collection.patch(name, &parameters, &patch),
        };
        self.send(request.map_err(kube::Error::BuildRequest)?).await
    }

    pub(crate) async fn apply(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        manager: &str,
        force: bool,
        object: &Value,
    ) -> Result<Value, kube::Error> {
        let mut parameters = PatchParams::apply(manager);
        parameters.force = force;
        let request = collection(kind, namespace)?
            .patch(segment(name)?, &parameters, &Patch::Apply(object))
            .map_err(kube::Error::BuildRequest)?;
        self.send(request).await
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Value, kube::Error> {
        let timeout = if request.method() == http::Method::GET { READ_TIMEOUT } else { WRITE_TIMEOUT };
        match tokio::time::timeout(timeout, self.client.request::<Lean>(request)).await {
            Ok(answer) => answer.map(|Lean(object)| object),
            Err(elapsed) => Err(kube::Error::Service(Box::new(elapsed))),
        }
    }

    /// The deleted object, or a `Status`.
    pub(crate) async fn delete(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        parameters: &DeleteParams,
    ) -> Result<Value, kube::Error> {
        let request =
            collection(kind, namespace)?.delete(segment(name)?, parameters).map_err(kube::Error::BuildRequest)?;
        self.send(request).await
    }
}

fn collection(kind: &Kind, namespace: &str) -> Result<Request, kube::Error> {
    if !namespace.is_empty() {
        segment(namespace)?;
    }
    Ok(Request::new(kind.path(namespace, None)))
}

/// Checks a name that becomes part of a path.
fn segment(name: &str) -> Result<&str, kube::Error> {
    if is_segment(name) {
        return Ok(name);
    }
    let problem = format!("{name:?} cannot be the name of an object");
    Err(kube::Error::BuildRequest(kube::core::request::Error::Validation(problem)))
}

/// Whether a name is exactly one segment of a path.
fn is_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.chars().any(|c| matches!(c, '/' | '?' | '#' | '%' | '\\') || c.is_whitespace() || c.is_control())
}

/// Adds apiVersion and kind, which lists of built-in kinds omit in items, and removes managedFields.
pub(super) fn complete(kind: &Kind, object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::String(kind.api_version()));
        fields.insert("kind".to_owned(), Value::String(kind.kind.to_string()));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_one_object_and_nowhere_else() {
        for name in ["a", "system:node:n", "x.y-z", "n@1"] {
            assert!(is_segment(name), "{name:?}");
        }
        for name in ["", ".", "..", "a/b", "a?watch=true", "a#b", "%2e%2e", "a\\b", "a b", "a\nb"] {
            assert!(!is_segment(name) && segment(name).is_err(), "{name:?}");
        }
    }
}
