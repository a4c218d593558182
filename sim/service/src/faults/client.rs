//! Faults of an engine in another process.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use super::{Fault, Injected};
use crate::docker::{Docker, DockerError};

const PATH: &str = "/capwasm/faults";

/// Injects and lifts faults over an engine's socket.
#[derive(Debug, Clone)]
pub struct Client {
    docker: Docker,
}

impl Client {
    /// Of the engine on a socket; nothing is connected yet.
    pub fn unix(socket: impl AsRef<Path>) -> Client {
        Client { docker: Docker::unix(socket) }
    }

    /// Puts a fault into force and returns its id.
    ///
    /// # Errors
    /// When the engine does not answer or refuses; a real one does.
    pub async fn inject(&self, fault: &Fault) -> Result<String, DockerError> {
        let answer = self.docker.json(Method::POST, PATH, &json!(fault)).await?;
        let id = answer["id"].as_str().ok_or_else(|| DockerError::Exchange("the answer has no id".to_owned()))?;
        Ok(id.to_owned())
    }

    /// All faults in force.
    ///
    /// # Errors
    /// When the engine does not answer or refuses.
    pub async fn list(&self) -> Result<Vec<Injected>, DockerError> {
        let answer = self.docker.json(Method::GET, PATH, &Value::Null).await?;
        serde_json::from_value(answer).map_err(|error| DockerError::Exchange(error.to_string()))
    }

    /// Ends a fault.
    ///
    /// # Errors
    /// When the engine does not answer, or there is no fault of that id.
    pub async fn lift(&self, id: &str) -> Result<(), DockerError> {
        self.docker.json(Method::DELETE, &format!("{PATH}/{id}"), &Value::Null).await.map(drop)
    }

    /// Ends all faults.
    ///
    /// # Errors
    /// When the engine does not answer or refuses.
    pub async fn lift_all(&self) -> Result<(), DockerError> {
        self.docker.json(Method::DELETE, PATH, &Value::Null).await.map(drop)
    }
}
