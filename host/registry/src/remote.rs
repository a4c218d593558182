//! One repository of a registry, by the OCI distribution protocol.
//!
//! A client of its own, because what answers is not trusted: manifests, tokens and error texts are read up to a cap and not
//! a byte further, redirects never lead out of TLS nor take credentials along, and nothing waits without an end.

mod authorization;
mod connection;
mod redirect;

use async_trait::async_trait;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use hyper::body::Incoming;
use parking_lot::Mutex;

use crate::credentials::Credentials;
use crate::digest::Digest;
use crate::error::Error;
use crate::manifest::{Descriptor, LARGEST_MANIFEST};
use crate::reference::{Reference, Version};
use crate::store::{Store, check_manifest, check_size};
use connection::Connection;

/// Accepted media types of manifests, also unsupported ones: those are refused by name, where a registry would report
/// that nothing exists.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// Credentials and transport for a registry.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// `None`: anonymous.
    pub credentials: Option<Credentials>,
    /// PEM of certificate authorities trusted besides the system's.
    pub ca: Option<String>,
    /// Allows HTTP without TLS. Registries on loopback need not have it, unless `ca` is set.
    pub plain_http: bool,
}

/// Repository of a registry.
pub struct Repository {
    connection: Connection,
    registry: String,
    repository: String,
    /// `https://registry/v2/repository`.
    base: String,
    credentials: Option<Credentials>,
    /// The last accepted `Authorization` header.
    authorization: Mutex<Option<HeaderValue>>,
}

/// Response with the URI that it came from, after redirects.
struct Answer {
    uri: Uri,
    response: Response<Incoming>,
}

impl Repository {
    /// Repository of a reference. Sends nothing yet.
    ///
    /// # Errors
    /// When the own authority cannot be read.
    pub fn new(reference: &Reference, access: &Access) -> Result<Self, Error> {
        let plain = access.plain_http || (reference.is_loopback() && access.ca.is_none());
        // Docker Hub has its protocol on another host than its name.
        let host = if reference.registry() == "docker.io" { "registry-1.docker.io" } else { reference.registry() };
        let scheme = if plain { "http" } else { "https" };
        Ok(Self {
            connection: Connection::new(reference.registry(), access.ca.as_deref(), plain)?,
            registry: reference.registry().to_owned(),
            repository: reference.repository().to_owned(),
            base: format!("{scheme}://{host}/v2/{}", reference.repository()),
            credentials: access.credentials.clone(),
            authorization: Mutex::new(None),
        })
    }

    fn uri(&self, rest: &str) -> Result<Uri, Error> {
        format!("{}/{rest}", self.base).parse().map_err(|error| self.protocol(format!("{error}")))
    }

    fn protocol(&self, why: String) -> Error {
        Error::Protocol { registry: self.registry.clone(), why }
    }

    /// Whether a URI is the registry's, which may get credentials, and not that of a storage that it redirects to.
    fn is_own(&self, uri: &Uri) -> bool {
        let own = self.base.parse::<Uri>();
        own.is_ok_and(|own| own.scheme() == uri.scheme() && own.authority() == uri.authority())
    }

    /// Sends a request, and repeats it with an authorization if the registry asks for one.
    async fn send(
        &self,
        method: &Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let own = self.is_own(uri);
        let mut authorized = self.authorization.lock().clone().filter(|_| own);
        for retry in [false, true] {
            let mut headers = headers.clone();
            if let Some(value) = &authorized {
                headers.insert(http::header::AUTHORIZATION, value.clone());
            }
            let response = self.connection.send(method, uri, headers, body.clone()).await?;
            if response.status() != StatusCode::UNAUTHORIZED || !own || retry {
                return Ok(response);
            }
            let Some(value) = self.authorize(&response).await? else { return Ok(response) };
            *self.authorization.lock() = Some(value.clone());
            authorized = Some(value);
        }
        Err(self.protocol("it asks for another authorization each time".to_owned()))
    }

    /// Sends a GET and follows redirects.
    async fn get(&self, uri: Uri, accept: &'static str) -> Result<Answer, Error> {
        let mut uri = uri;
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        for _ in 0..=redirect::MOST {
            let response = self.send(&Method::GET, &uri, headers.clone(), Bytes::new()).await?;
            if !response.status().is_redirection() {
                return Ok(Answer { uri, response });
            }
            uri = self.location(&uri, response.headers())?;
        }
        Err(self.protocol(format!("it redirects more than {} times", redirect::MOST)))
    }

    fn location(&self, from: &Uri, headers: &HeaderMap) -> Result<Uri, Error> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| self.protocol("it names no location".to_owned()))?;
        let to = redirect::resolve(from, location).map_err(|why| self.protocol(why))?;
        if self.connection.may_reach(&to) { Ok(to) } else { Err(Error::PlainHttp(to.to_string())) }
    }

    /// Turns unsuccessful responses into errors with the registry's message.
    async fn expect(&self, what: &str, response: Response<Incoming>) -> Result<Response<Incoming>, Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let said = self.connection.message(response).await;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let said = match &self.credentials {
                    None => format!("{said}; no credentials were given"),
                    Some(_) => said,
                };
                Err(Error::Denied { registry: self.registry.clone(), repository: self.repository.clone(), said })
            }
            StatusCode::NOT_FOUND => Err(Error::NotFound(format!("{what} of {}/{}", self.registry, self.repository))),
            status => Err(Error::Status {
                registry: self.registry.clone(),
                status: status.as_u16(),
                what: what.to_owned(),
                said,
            }),
        }
    }

    async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        let uri = self.uri(&format!("blobs/{digest}"))?;
        let response = self.send(&Method::HEAD, &uri, HeaderMap::new(), Bytes::new()).await?;
        // Storage that it would send us to has it.
        Ok(response.status().is_success() || response.status().is_redirection())
    }
}

#[async_trait]
impl Store for Repository {
    async fn manifest(&self, version: Version<'_>) -> Result<Option<Bytes>, Error> {
        let uri = self.uri(&format!("manifests/{version}"))?;
        let what = format!("the manifest {version}");
        let answer = match self.get(uri, MANIFESTS).await {
            Ok(answer) if answer.response.status() == StatusCode::NOT_FOUND => return Ok(None),
            answer => answer?,
        };
        let response = self.expect(&what, answer.response).await?;
        let bytes = self.connection.read(response, LARGEST_MANIFEST, &what).await?;
        check_manifest(version, &bytes)?;
        Ok(Some(bytes))
    }

    async fn blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Bytes, Error> {
        check_size(descriptor, limit)?;
        let what = format!("the blob {}", descriptor.digest);
        let answer = self.get(self.uri(&format!("blobs/{}", descriptor.digest))?, "*/*").await?;
        tracing::debug!(uri = %answer.uri, "reading {what}");
        let response = self.expect(&what, answer.response).await?;
        let bytes = self.connection.read(response, descriptor.size, &what).await?;
        descriptor.check(&bytes)?;
        Ok(bytes)
    }

    async fn put_blob(&self, bytes: Bytes) -> Result<(), Error> {
        let digest = Digest::of(&bytes);
        if self.has_blob(&digest).await? {
            return Ok(());
        }
        let start = self.uri("blobs/uploads/")?;
        let none = HeaderMap::from_iter([(CONTENT_LENGTH, HeaderValue::from_static("0"))]);
        let response = self.send(&Method::POST, &start, none, Bytes::new()).await?;
        let response = self.expect("an upload", response).await?;
        let location = self.location(&start, response.headers())?;
        let separator = if location.query().is_some() { '&' } else { '?' };
        let uri = format!("{location}{separator}digest={digest}")
            .parse()
            .map_err(|error| self.protocol(format!("{error}")))?;
        let octets = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))]);
        let response = self.send(&Method::PUT, &uri, octets, bytes).await?;
        self.expect(&format!("the upload of {digest}"), response).await?;
        Ok(())
    }

    async fn put_manifest(&self, tag: Option<&str>, media_type: &str, bytes: Bytes) -> Result<(), Error> {
        let digest = Digest::of(&bytes);
        let uri = self.uri(&format!("manifests/{}", tag.unwrap_or(digest.as_str())))?;
        let media_type = HeaderValue::from_str(media_type).map_err(|error| self.protocol(error.to_string()))?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, media_type)]);
        let response = self.send(&Method::PUT, &uri, headers, bytes).await?;
        self.expect("the manifest", response).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
