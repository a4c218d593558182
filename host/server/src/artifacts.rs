//! Implements the loader's [`Artifacts`] over `capwasm_registry`.

use std::sync::Arc;

use async_trait::async_trait;
use capwasm_providers::{ArtifactRequest, Artifacts, FetchError, Fetched};
use capwasm_registry::{
    Access, DockerConfig, Error, PublicKey, Reference, Repository, Verification, pull, resolve, verify, verify_blob,
};

/// Pulls from registries, and verifies cosign signatures by keys.
pub fn registry() -> Arc<dyn Artifacts> {
    Arc::new(Registries)
}

struct Registries;

/// A parsed request.
struct Wanted {
    reference: Reference,
    repository: Repository,
}

impl Wanted {
    fn new(request: &ArtifactRequest) -> Result<Self, Error> {
        let reference: Reference = request.reference.parse()?;
        let credentials = match &request.docker_config {
            Some(config) => DockerConfig::parse(config)?.find(&reference)?,
            None => None,
        };
        let access = Access { credentials, ca: request.ca.clone(), plain_http: request.plain_http };
        let repository = Repository::new(&reference, &access)?;
        Ok(Wanted { reference, repository })
    }
}

#[async_trait]
impl Artifacts for Registries {
    async fn resolve(&self, request: &ArtifactRequest) -> Result<String, FetchError> {
        let wanted = Wanted::new(request).map_err(failed)?;
        if let Some(digest) = wanted.reference.digest() {
            return Ok(digest.to_string());
        }
        let (digest, _) = resolve(&wanted.repository, &wanted.reference).await.map_err(failed)?;
        Ok(digest.to_string())
    }

    async fn fetch(&self, request: &ArtifactRequest, manifest: &str) -> Result<Fetched, FetchError> {
        let wanted = Wanted::new(request).map_err(failed)?;
        let digest = manifest.parse().map_err(|error| FetchError::Refused(format!("{error}")))?;
        let keys = keys(&request.public_keys)?;
        let reference = wanted.reference.pinned(&digest);
        let verification = Verification::of(keys.clone());
        let pulled = pull(&wanted.repository, &reference, &verification, request.max_bytes).await.map_err(failed)?;
        let signers = match keys.as_slice() {
            [only] => vec![only.fingerprint().to_string()],
            several => signers(&wanted.repository, &reference, several).await?,
        };
        Ok(Fetched { bytes: pulled.component.to_vec(), digest: pulled.digest.to_string(), signers })
    }

    fn verify_blob(&self, bytes: &[u8], signature: &[u8], public_keys: &[String]) -> Result<Vec<String>, FetchError> {
        let keys = keys(public_keys)?;
        verify_blob(bytes, signature, &keys).map_err(failed)?;
        let signed = |key: &&PublicKey| verify_blob(bytes, signature, std::slice::from_ref(*key)).is_ok();
        Ok(keys.iter().filter(signed).map(|key| key.fingerprint().to_string()).collect())
    }

    fn fingerprints(&self, public_keys: &[String]) -> Result<Vec<String>, FetchError> {
        Ok(keys(public_keys)?.iter().map(|key| key.fingerprint().to_string()).collect())
    }
}

/// Which of the keys signed a manifest: each may be taken out later.
async fn signers(
    repository: &Repository,
    reference: &Reference,
    keys: &[PublicKey],
) -> Result<Vec<String>, FetchError> {
    let mut signers = Vec::new();
    for key in keys {
        match verify(repository, reference, std::slice::from_ref(key)).await {
            Ok(key) => signers.push(key.fingerprint().to_string()),
            Err(Error::Unsigned(_) | Error::BadSignature { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(signers)
}

fn keys(pem: &[String]) -> Result<Vec<PublicKey>, FetchError> {
    // A key that cannot be read is no reason to do without it.
    pem.iter().map(|pem| PublicKey::from_pem(pem).map_err(|error| FetchError::Unsigned(error.to_string()))).collect()
}

fn failed(error: Error) -> FetchError {
    let kind = match &error {
        Error::Unsigned(_) | Error::BadSignature { .. } | Error::Key(_) => FetchError::Unsigned,
        Error::NotAProvider { .. } | Error::TooLarge { .. } => FetchError::Broken,
        Error::WrongDigest { .. } | Error::WrongSize { .. } => FetchError::Broken,
        error if error.is_transient() => FetchError::Unavailable,
        _ => FetchError::Refused,
    };
    // With its causes: that a connection was refused is in one of them.
    kind(format!("{:#}", anyhow::Error::new(error)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;
    use capwasm_registry::Digest;

    fn request(reference: &str) -> ArtifactRequest {
        ArtifactRequest {
            reference: reference.to_owned(),
            docker_config: None,
            ca: None,
            plain_http: false,
            public_keys: Vec::new(),
            max_bytes: 1 << 20,
        }
    }

    #[tokio::test]
    async fn what_names_nothing_is_refused_and_what_does_not_answer_is_unavailable() {
        let artifacts = registry();
        let error = artifacts.resolve(&request("provider")).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused(_)), "{error}");
        let error = artifacts.resolve(&request("127.0.0.1:1/a/b:1")).await.unwrap_err();
        assert!(matches!(&error, FetchError::Unavailable(text) if text.contains("refused")), "{error}");
        let digest = Digest::of(b"").to_string();
        let pinned = artifacts.resolve(&request(&format!("127.0.0.1:1/a/b@{digest}"))).await.unwrap();
        assert_eq!(pinned, digest, "a digest is not asked for");
        let config = ArtifactRequest { docker_config: Some(b"{".to_vec()), ..request("127.0.0.1:1/a/b:1") };
        assert!(matches!(artifacts.resolve(&config).await, Err(FetchError::Refused(_))));
    }

    #[tokio::test]
    async fn a_key_that_cannot_be_read_verifies_nothing() {
        let artifacts = registry();
        let keyed = ArtifactRequest { public_keys: vec!["no key".to_owned()], ..request("127.0.0.1:1/a/b:1") };
        let error = artifacts.fetch(&keyed, &Digest::of(b"").to_string()).await.unwrap_err();
        assert_eq!(error.reason(), "SignatureInvalid", "{error}");
        let key = capwasm_registry::PrivateKey::generate().unwrap();
        let pem = key.public().unwrap().to_pem();
        let signature = capwasm_registry::sign_blob(b"bytes", &key).unwrap();
        let other = capwasm_registry::PrivateKey::generate().unwrap().public().unwrap().to_pem();
        let signers = artifacts.verify_blob(b"bytes", signature.as_bytes(), &[other.clone(), pem.clone()]).unwrap();
        assert_eq!(signers, artifacts.fingerprints(std::slice::from_ref(&pem)).unwrap());
        assert_eq!(artifacts.fingerprints(&[other, pem.clone()]).unwrap()[1..], signers);
        assert!(artifacts.fingerprints(&["no key".to_owned()]).is_err());
        assert!(artifacts.verify_blob(b"other", signature.as_bytes(), &[pem]).is_err());
        assert!(artifacts.verify_blob(b"bytes", signature.as_bytes(), &[]).is_err());
    }
}
