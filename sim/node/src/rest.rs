//! A thin JSON client of a workload API server, over TLS or in process.

use base64::Engine as _;
use http::{Method, Request};
use serde_json::{Value, json};

/// How a server's certificate is judged.
pub enum Trust<'a> {
    /// It must chain to this CA (DER).
    Authority(&'a [u8]),
    /// Not at all: only for fetching what is then checked otherwise (discovery by CA hash).
    Nobody,
}

/// How the client authenticates.
pub enum Credentials<'a> {
    /// Not at all.
    Anonymous,
    /// A bearer token.
    Token(&'a str),
    /// A client certificate and its key, PEM.
    Certificate(&'a str, &'a str),
}

/// Why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum RestError {
    /// The server answered with a Status.
    #[error("{message}")]
    Status {
        /// HTTP status.
        code: u16,
        /// The server's message, or its reason when there is none.
        message: String,
    },
    /// No answer came; says why.
    #[error("{0}")]
    Unreachable(String),
    /// The client could not be made from what it was given.
    #[error("unable to make a client: {0}")]
    Client(String),
}

impl RestError {
    /// HTTP status code of an answer.
    pub fn code(&self) -> Option<u16> {
        if let RestError::Status { code, .. } = self { Some(*code) } else { None }
    }
}

/// A client. Cheap to clone.
#[derive(Clone)]
pub struct Rest(kube::Client);

impl Rest {
    /// A client on an existing connection, for instance in process.
    pub fn of(client: kube::Client) -> Rest {
        Rest(client)
    }

    /// A client of `server` (`https://host:port`); connects on the first request.
    ///
    /// # Errors
    /// When the address, the CA or the credentials cannot be parsed.
    pub fn connect(server: &str, trust: &Trust<'_>, credentials: &Credentials<'_>) -> Result<Rest, RestError> {
        let broken = |error: &dyn std::fmt::Display| RestError::Client(error.to_string());
        let mut config = kube::Config::new(server.parse().map_err(|error: http::uri::InvalidUri| broken(&error))?);
        config.connect_timeout = Some(std::time::Duration::from_secs(10));
        config.read_timeout = Some(std::time::Duration::from_secs(30));
        match trust {
            Trust::Authority(der) => config.root_cert = Some(vec![der.to_vec()]),
            Trust::Nobody => {
                config.root_cert = Some(Vec::new());
                config.accept_invalid_certs = true;
            }
        }
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let user = match credentials {
            Credentials::Anonymous => json!({}),
            Credentials::Token(token) => json!({ "token": token }),
            Credentials::Certificate(certificate, key) => {
                json!({ "client-certificate-data": encode(certificate), "client-key-data": encode(key) })
            }
        };
        config.auth_info = serde_json::from_value(user).map_err(|error| broken(&error))?;
        kube::Client::try_from(config).map(Rest).map_err(|error| broken(&error))
    }

    /// Sends one request; a body is sent as `content_type`.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn send(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Value, RestError> {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        let mut bytes = Vec::new();
        if let Some((content_type, body)) = body {
            request = request.header("content-type", content_type);
            bytes = body.to_string().into_bytes();
        }
        let request = request.body(bytes).map_err(|error| RestError::Client(error.to_string()))?;
        self.0.request::<Value>(request).await.map_err(|error| match error {
            kube::Error::Api(status) => {
                let message = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
                RestError::Status { code: status.code, message }
            }
            other => RestError::Unreachable(innermost(&other)),
        })
    }

    /// Reads one object; `None` when it does not exist.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn get(&self, path: &str) -> Result<Option<Value>, RestError> {
        match self.send(Method::GET, path, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates `object` in `collection`.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn create(&self, collection: &str, object: &Value) -> Result<Value, RestError> {
        self.send(Method::POST, collection, Some(("application/json", object))).await
    }

    /// Merge-patches the object at `path`.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value, RestError> {
        self.send(Method::PATCH, path, Some(("application/merge-patch+json", patch))).await
    }

    /// Deletes the object at `path`; gone already is fine.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn delete(&self, path: &str) -> Result<(), RestError> {
        match self.send(Method::DELETE, path, None).await {
            Err(error) if error.code() == Some(404) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Creates `object`, or merges it over the one that is there.
    ///
    /// # Errors
    /// See [`RestError`].
    pub async fn ensure(&self, collection: &str, object: &Value) -> Result<Value, RestError> {
        match self.create(collection, object).await {
            Err(error) if error.code() == Some(409) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                self.merge(&format!("{collection}/{name}"), object).await
            }
            other => other,
        }
    }
}

/// The cause at the end of an error's chain, which names the socket's or TLS's own problem.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
