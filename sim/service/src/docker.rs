//! A minimal client of a Docker Engine, real or simulated.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// Nobody listens at the address.
    #[error("unable to connect to {0}")]
    Connect(Address, #[source] std::io::Error),
    /// The connection ended, or what came is no answer.
    #[error("the exchange with the engine broke: {0}")]
    Exchange(String),
    /// The engine answered with an error.
    #[error("the engine answered {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The engine's message.
        message: String,
    },
}

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Path of a unix socket.
    Unix(PathBuf),
    /// `host:port`, without TLS.
    Tcp(String),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp(authority) => write!(f, "tcp://{authority}"),
        }
    }
}

/// A client of a Docker engine.
#[derive(Debug, Clone)]
pub struct Docker {
    address: Address,
}

impl Docker {
    /// The engine on a socket; nothing is connected yet.
    pub fn unix(socket: impl AsRef<Path>) -> Docker {
        Docker::at(Address::Unix(socket.as_ref().to_owned()))
    }

    /// The engine at an address; nothing is connected yet.
    pub fn at(address: Address) -> Docker {
        Docker { address }
    }

    /// Sends one request on a connection of its own; status and body as they come.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(
        &self,
        method: Method,
        path_and_query: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<(u16, Bytes), DockerError> {
        let unconnected = |error| DockerError::Connect(self.address.clone(), error);
        match &self.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(unconnected)?;
                exchange(stream, method, path_and_query, content_type, body.into()).await
            }
            Address::Tcp(authority) => {
                let stream = TcpStream::connect(authority).await.map_err(unconnected)?;
                exchange(stream, method, path_and_query, content_type, body.into()).await
            }
        }
    }

    /// Sends JSON and expects success; an empty body is null.
    ///
    /// # Errors
    /// When there is no answer or it is a refusal.
    pub async fn json(&self, method: Method, path: &str, body: &Value) -> Result<Value, DockerError> {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let (status, answer) = self.send(method, path, "application/json", body).await?;
        accepted(status, &answer)?;
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    /// Sends a tar archive and expects success; the answer as text.
    ///
    /// # Errors
    /// When there is no answer or it is a refusal.
    pub async fn archive(&self, method: Method, path: &str, archive: impl Into<Bytes>) -> Result<String, DockerError> {
        let (status, answer) = self.send(method, path, "application/x-tar", archive).await?;
        accepted(status, &answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    method: Method,
    path_and_query: &str,
    content_type: &str,
    body: Bytes,
) -> Result<(u16, Bytes), DockerError> {
    let broken = |error: &dyn std::fmt::Display| DockerError::Exchange(error.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let driver = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path_and_query)
        .header("host", "docker")
        .header("content-type", content_type)
        .body(Full::new(body))
        .map_err(|error| broken(&error))?;
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|error| broken(&error))?.to_bytes();
    driver.abort();
    Ok((status, body))
}

fn accepted(status: u16, answer: &[u8]) -> Result<(), DockerError> {
    if status < 400 {
        return Ok(());
    }
    let message =
        serde_json::from_slice::<Value>(answer).ok().and_then(|answer| answer["message"].as_str().map(str::to_owned));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(answer).trim().to_owned());
    Err(DockerError::Refused { status, message })
}
