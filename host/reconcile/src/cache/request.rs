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
/// Timeout of a list, all of its pages together.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest list in bytes of JSON, all of its pages together.
const LIST_BYTES: usize = 64 << 20;
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

    /// All selected objects, page by page. A server that has ever more pages is left after a while, and so is one whose pages are large.
    pub(crate) async fn list(&self, kind: &Kind, namespace: &str, labels: &str) -> Result<Vec<Value>, kube::Error> {
        let pages = self.pages(kind, namespace, labels);
        tokio::time::timeout(LIST_TIMEOUT, pages).await.unwrap_or_else(|_| {
            Err(refused(format!("the list of {kind} was not complete after {} s", LIST_TIMEOUT.as_secs())))
        })
    }

    async fn pages(&self, kind: &Kind, namespace: &str, labels: &str) -> Result<Vec<Value>, kube::Error> {
        let mut parameters = ListParams::default().limit(500);
        if !labels.is_empty() {
            parameters = parameters.labels(labels);
        }
        let (mut objects, mut bytes) = (Vec::new(), 0);
        loop {
            let request = collection(kind, namespace)?.list(&parameters).map_err(kube::Error::BuildRequest)?;
            let (mut page, length) = self.answer(request).await?;
            bytes += length;
            if bytes > LIST_BYTES {
                return Err(refused(format!("the list of {kind} is larger than {} MiB", LIST_BYTES >> 20)));
            }
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
        Ok(self.answer(request).await?.0)
    }

    /// An answer, and its length in bytes.
    async fn answer(&self, request: http::Request<Vec<u8>>) -> Result<(Value, usize), kube::Error> {
        let timeout = if request.method() == http::Method::GET { READ_TIMEOUT } else { WRITE_TIMEOUT };
        let text = match tokio::time::timeout(timeout, self.client.request_text(request)).await {
            Ok(text) => text?,
            Err(elapsed) => return Err(kube::Error::Service(Box::new(elapsed))),
        };
        let Lean(object) = serde_json::from_str(&text).map_err(kube::Error::SerdeError)?;
        Ok((object, text.len()))
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

/// An answer that is not taken.
fn refused(why: String) -> kube::Error {
    kube::Error::Service(why.into())
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
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// A server whose every page has `bytes` of one object, and a next one, which it counts.
    fn endless(bytes: usize, pages: Arc<AtomicUsize>) -> Requests {
        let page =
            serde_json::json!({"metadata": {"continue": "more"}, "items": [{"data": "x".repeat(bytes)}]}).to_string();
        let answer = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            pages.fetch_add(1, Ordering::Relaxed);
            let body = kube::client::Body::from(page.clone().into_bytes());
            async { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
        });
        Requests::new(kube::Client::new(answer, "default"))
    }

    #[tokio::test]
    async fn a_list_without_end_is_left_when_it_is_too_large() {
        let pages = Arc::new(AtomicUsize::new(0));
        let kind = Kind::new("", "v1", "ConfigMap", "configmaps", true);
        let error = endless(4 << 20, pages.clone()).list(&kind, "", "").await.unwrap_err();
        assert!(format!("{error:?}").contains("larger than 64 MiB"), "{error:?}");
        assert_eq!(pages.load(Ordering::Relaxed), 16);
    }

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
