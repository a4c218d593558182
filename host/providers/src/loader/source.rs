//! Reads a WasmProvider's source: a file of the provider folder, or an artifact of a registry. Signatures are verified
//! here, before anything is parsed.

use std::time::{Duration, Instant};

use capwasm_object::json;
use capwasm_reconcile::{Pass, ReconcileError};
use serde_json::Value;

use super::files::{LARGEST, file_token};
use super::vouching::{self, Vouched};
use super::{Loader, Refusal};
use crate::artifacts::{ArtifactRequest, FetchError};
use crate::reads::{chain, decode};
use crate::wasm_provider::{OciSource, SecretName, Source, Spec};

/// How often a tag is resolved.
pub(super) const LOOK_UP: Duration = Duration::from_secs(300);

/// The component of the source.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// `sha256:<hex>`
    pub(super) digest: String,
    /// Reference with the digest of the manifest, for artifacts.
    pub(super) artifact: Option<String>,
    /// `None` when the component is at hand by its digest.
    pub(super) bytes: Option<Vec<u8>>,
    /// Who signed it, where that was looked at.
    pub(super) vouched: Option<Vouched>,
    /// When to look again.
    pub(super) again: Option<Duration>,
}

impl Wanted {
    /// A component that is at hand by its digest.
    pub(super) fn kept(digest: &str) -> Self {
        Wanted { digest: digest.to_owned(), artifact: None, bytes: None, vouched: None, again: None }
    }
}

/// The last pull; avoids requests to the registry.
#[derive(Clone, Debug)]
pub(super) struct Pulled {
    request: ArtifactRequest,
    manifest: String,
    digest: String,
    at: Instant,
}

impl Pulled {
    /// Digest of the component.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }
}

type Looked<T> = Result<Result<T, Refusal>, ReconcileError>;

impl Loader {
    /// Reads the source. An inner error refuses it.
    pub(super) async fn look(&self, pass: &Pass<'_>, spec: &Spec) -> Looked<Wanted> {
        match &spec.source {
            Source::File(file) => {
                // Noted before reading, so that no change after it goes unseen.
                pass.view.note(file_token(file));
                Ok(self.file(file, &spec.verification.public_keys).await)
            }
            Source::Oci(oci) => {
                let keys = &spec.verification.public_keys;
                if self.dependencies.require_signatures && keys.is_empty() {
                    return Ok(Err(vouching::required()));
                }
                let request = match self.request(pass, oci, keys).await? {
                    Ok(request) => request,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                Ok(self.artifact(&pass.key.name, request).await)
            }
        }
    }

    async fn file(&self, file: &str, keys: &[String]) -> Result<Wanted, Refusal> {
        let unreadable = |error: super::files::FileError| Refusal::passing("SourceUnreadable", chain(&error));
        let bytes = self.dependencies.files.read(file).await.map_err(unreadable)?;
        let mut signers = Vec::new();
        if !keys.is_empty() {
            let artifacts = self.artifacts()?;
            let name = format!("{file}.sig");
            let signature = self.dependencies.files.read(&name).await.map_err(|error| {
                Refusal::passing("SignatureInvalid", format!("{file} has no signature beside it: {}", chain(&error)))
            })?;
            signers = artifacts.verify_blob(&bytes, &signature, keys).map_err(|error| refused(&error))?;
        }
        let digest = capwasm_runtime::digest(&bytes);
        let vouched = Some(Vouched::new(false, signers));
        Ok(Wanted { digest, artifact: None, bytes: Some(bytes), vouched, again: None })
    }

    async fn artifact(&self, name: &str, request: ArtifactRequest) -> Result<Wanted, Refusal> {
        let artifacts = self.artifacts()?;
        let fixed = request.reference.contains('@');
        let again = (!fixed).then_some(LOOK_UP);
        let known = self.providers.lock().get(name).and_then(|loaded| loaded.pulled.clone());
        let known = known.filter(|known| known.request == request && self.has(name, &known.digest));
        let of = |pulled: &Pulled, bytes| Wanted {
            digest: pulled.digest.clone(),
            artifact: Some(artifact(&request.reference, &pulled.manifest)),
            bytes,
            vouched: None,
            again,
        };
        if let Some(known) = known.as_ref().filter(|known| fixed || known.at.elapsed() < LOOK_UP) {
            return Ok(Wanted {
                again: again.map(|again| again.saturating_sub(known.at.elapsed())),
                ..of(known, None)
            });
        }
        let manifest = artifacts.resolve(&request).await.map_err(|error| refused(&error))?;
        let at = Instant::now();
        let (pulled, bytes, vouched) = match known.filter(|known| known.manifest == manifest) {
            Some(known) => (Pulled { at, ..known }, None, None),
            None => {
                let fetched = artifacts.fetch(&request, &manifest).await.map_err(|error| refused(&error))?;
                if capwasm_runtime::digest(&fetched.bytes) != fetched.digest {
                    return Err(Refusal::passing(
                        "ArtifactBroken",
                        "the registry handed over other bytes than it named",
                    ));
                }
                let vouched = Vouched::new(true, fetched.signers);
                let pulled = Pulled { request: request.clone(), manifest, digest: fetched.digest, at };
                (pulled, Some(fetched.bytes), Some(vouched))
            }
        };
        let wanted = Wanted { vouched, ..of(&pulled, bytes) };
        self.providers.lock().entry(name.to_owned()).or_default().pulled = Some(pulled);
        Ok(wanted)
    }

    pub(super) fn artifacts(&self) -> Result<&dyn crate::Artifacts, Refusal> {
        self.dependencies.artifacts.as_deref().ok_or_else(|| {
            Refusal::lasting("SourceUnsupported", "this host has no client for registries and signatures")
        })
    }

    /// Whether the component is stored or compiled already.
    fn has(&self, name: &str, digest: &str) -> bool {
        self.dependencies.components.as_ref().is_some_and(|components| components.has(digest))
            || self.providers.lock().get(name).is_some_and(|loaded| loaded.component(digest).is_some())
    }

    /// The request with credentials and authorities from Secrets, changes of which wake the WasmProvider.
    async fn request(&self, pass: &Pass<'_>, oci: &OciSource, keys: &[String]) -> Looked<ArtifactRequest> {
        let mut request = ArtifactRequest {
            reference: oci.reference.clone(),
            docker_config: None,
            ca: None,
            plain_http: oci.plain_http,
            public_keys: keys.to_vec(),
            max_bytes: LARGEST,
        };
        if let Some(secret) = &oci.pull_secret {
            match value(pass, secret, ".dockerconfigjson").await? {
                Ok(bytes) => request.docker_config = Some(bytes),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        if let Some(secret) = &oci.ca_secret {
            match text(pass, secret, "ca.crt").await? {
                Ok(text) => request.ca = Some(text),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(request))
    }

    /// `spec.configuration` with values of Secrets, as JSON text.
    pub(super) async fn configuration(&self, pass: &Pass<'_>, spec: &Spec) -> Looked<String> {
        let mut configuration = spec.configuration.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        for from in &spec.configuration_from {
            let value = match text(pass, &from.secret, &from.key).await? {
                Ok(value) => value,
                Err(refusal) => return Ok(Err(refusal)),
            };
            if !put(&mut configuration, &from.pointer, value) {
                let message = format!("spec.configurationFrom: {} leads through what is no object", from.pointer);
                return Ok(Err(Refusal::lasting("InvalidSpec", message)));
            }
        }
        Ok(Ok(configuration.to_string()))
    }
}

/// `registry/repository:tag@sha256:…`.
fn artifact(reference: &str, manifest: &str) -> String {
    format!("{}@{manifest}", reference.split('@').next().unwrap_or(reference))
}

pub(super) fn refused(error: &FetchError) -> Refusal {
    Refusal::passing(error.reason(), chain(error))
}

async fn text(pass: &Pass<'_>, secret: &SecretName, key: &str) -> Looked<String> {
    Ok(value(pass, secret, key).await?.and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|_| Refusal::passing("SecretInvalid", format!("Secret {secret}: {key:?} is no text")))
    }))
}

async fn value(pass: &Pass<'_>, secret: &SecretName, key: &str) -> Looked<Vec<u8>> {
    let kind = pass.view.kind_at("v1", "Secret").await?;
    let Some(found) = pass.view.get_live(&kind, &secret.namespace, &secret.name).await? else {
        return Ok(Err(Refusal::passing("SecretMissing", format!("there is no Secret {secret}"))));
    };
    let broken = |key: String| Refusal::passing("SecretInvalid", format!("Secret {secret}: {key:?} is not base64"));
    Ok(decode(&found).map_err(broken).and_then(|mut data| {
        data.remove(key).ok_or_else(|| {
            Refusal::passing(
                "SecretInvalid",
                format!("Secret {secret} (type {:?}) has no {key:?}", json::text(&found, "/type").unwrap_or_default()),
            )
        })
    }))
}

/// Sets a text at a JSON pointer and creates missing objects. Returns whether that was possible.
fn put(configuration: &mut Value, pointer: &str, text: String) -> bool {
    let Some(path) = pointer.strip_prefix('/') else { return false };
    let mut at = configuration;
    for part in path.split('/') {
        let part = part.replace("~1", "/").replace("~0", "~");
        let Some(object) = at.as_object_mut() else { return false };
        at = object.entry(part).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    *at = Value::String(text);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_put_where_pointers_lead() {
        let mut configuration = json!({"auth": {"user": "u"}, "list": []});
        assert!(put(&mut configuration, "/auth/password", "p".into()));
        assert!(put(&mut configuration, "/a~1b/c", "x".into()));
        assert!(put(&mut configuration, "/auth/user", "v".into()));
        assert_eq!(configuration, json!({"auth": {"user": "v", "password": "p"}, "list": [], "a/b": {"c": "x"}}));
        assert!(!put(&mut configuration, "/list/0", "x".into()), "lists are left alone");
        assert!(!put(&mut configuration, "auth", "x".into()));
    }

    #[test]
    fn an_artifact_is_named_by_its_manifest() {
        assert_eq!(artifact("r.example/p:1", "sha256:ab"), "r.example/p:1@sha256:ab");
        assert_eq!(artifact("r.example/p@sha256:ab", "sha256:ab"), "r.example/p@sha256:ab");
    }
}
