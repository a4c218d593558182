//! A minimal client of a Docker Engine, real or simulated. Its answers are bounded in [size and time](Limits).

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::task::AbortOnDropHandle;

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// Nobody listens at the address.
    #[error("unable to connect to {0}")]
    Connect(Address, #[source] std::io::Error),
    /// The connection ended, or what came is no answer.
    #[error("the exchange with the engine broke: {0}")]
    Exchange(String),
    /// The answer was not complete in time.
    #[error("the engine at {0} did not answer within {1:?}")]
    Late(Address, Duration),
    /// The answer's body is larger than so many bytes.
    #[error("the engine at {0} answers with more than {1} bytes")]
    TooLarge(Address, usize),
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

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the connection to the end of the answer.
    pub time: Duration,
    /// Bytes of the answer's body.
    pub bytes: usize,
}

impl Default for Limits {
    /// Fifteen minutes, since images are big and registries slow, and 64 MiB.
    fn default() -> Limits {
        Limits { time: Duration::from_secs(900), bytes: 64 << 20 }
    }
}

/// A client of a Docker engine.
#[derive(Debug, Clone)]
pub struct Docker {
    address: Address,
    limits: Limits,
}

impl Docker {
    /// The engine on a socket; nothing is connected yet.
    pub fn unix(socket: impl AsRef<Path>) -> Docker {
        Docker::at(Address::Unix(socket.as_ref().to_owned()))
    }

    /// The engine at an address; nothing is connected yet.
    pub fn at(address: Address) -> Docker {
        Docker { address, limits: Limits::default() }
    }

    /// The same engine, within other limits.
    #[must_use]
    pub fn within(mut self, limits: Limits) -> Docker {
        self.limits = limits;
        self
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
        let answer = self.answer(method, path_and_query, content_type, body.into());
        let late = |_| Err(DockerError::Late(self.address.clone(), self.limits.time));
        tokio::time::timeout(self.limits.time, answer).await.unwrap_or_else(late)
    }

    async fn answer(
        &self,
        method: Method,
        path_and_query: &str,
        content_type: &str,
        body: Bytes,
    ) -> Result<(u16, Bytes), DockerError> {
        let unconnected = |error| DockerError::Connect(self.address.clone(), error);
        let answer = match &self.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(unconnected)?;
                exchange(stream, method, path_and_query, content_type, body, self.limits.bytes).await?
            }
            Address::Tcp(authority) => {
                let stream = TcpStream::connect(authority).await.map_err(unconnected)?;
                exchange(stream, method, path_and_query, content_type, body, self.limits.bytes).await?
            }
        };
        answer.ok_or_else(|| DockerError::TooLarge(self.address.clone(), self.limits.bytes))
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

/// Status and body of an answer; none when the body is larger than the limit.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    method: Method,
    path_and_query: &str,
    content_type: &str,
    body: Bytes,
    limit: usize,
) -> Result<Option<(u16, Bytes)>, DockerError> {
    let broken = |error: &dyn std::fmt::Display| DockerError::Exchange(error.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    // Ends with this exchange, however that ends.
    let _driver = AbortOnDropHandle::new(tokio::spawn(connection));
    let request = Request::builder()
        .method(method)
        .uri(path_and_query)
        .header("host", "docker")
        .header("content-type", content_type)
        .body(Full::new(body))
        .map_err(|error| broken(&error))?;
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    let status = response.status().as_u16();
    match Limited::new(response.into_body(), limit).collect().await {
        Ok(body) => Ok(Some((status, body.to_bytes()))),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(broken(&error)),
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use capwasm_test_support::hostile::{Behaviour, Ending, ON_THE_WAY, Server, behaviours};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_hostile_engine_is_left_at_a_limit_and_named() {
        for Behaviour { name, script, ending } in behaviours() {
            let server = Server::start(script);
            let docker = Docker::at(Address::Tcp(server.address.to_string()));
            let docker = docker.within(Limits { time: Duration::from_millis(500), bytes: 1 << 20 });
            let told = docker.json(Method::GET, "/containers/json", &Value::Null).await.unwrap_err();
            let right = match ending {
                Ending::TooLarge => matches!(told, DockerError::TooLarge(..)),
                Ending::Late => matches!(told, DockerError::Late(..)),
                Ending::Headers | Ending::Broken => matches!(told, DockerError::Exchange(_)),
            };
            assert!(right && told.to_string().contains("the engine"), "{name}: {told}");
            assert!(server.sent() < ON_THE_WAY, "{name}: {} bytes", server.sent());
            assert!(tokio::task::spawn_blocking(move || server.left()).await.unwrap(), "{name}: the connection ends");
        }
    }
}
