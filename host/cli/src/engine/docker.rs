//! The few requests that the CLI itself sends to a Docker engine; everything else is the provider's.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_sim::docker::Docker;
use http::Method;
use serde_json::Value;

/// A pull of a node image over a slow line.
const PULL: Duration = Duration::from_secs(900);

/// Whether an engine answers.
pub async fn ping(socket: &Path) -> Result<()> {
    let (status, _) = tokio::time::timeout(Duration::from_secs(3), send(socket, Method::GET, "/_ping")).await??;
    if status != 200 {
        bail!("/_ping answers {status}");
    }
    Ok(())
}

/// Whether an image is there.
pub async fn has_image(socket: &Path, image: &str) -> Result<bool> {
    let (status, _) = send(socket, Method::GET, &format!("/images/{image}/json")).await?;
    Ok(status == 200)
}

/// Pulls an image.
pub async fn pull(socket: &Path, image: &str, tag: &str) -> Result<()> {
    let path = format!("/images/create?fromImage={image}&tag={tag}");
    let (status, text) =
        tokio::time::timeout(PULL, send(socket, Method::POST, &path)).await.context("the pull takes too long")??;
    // A pull that fails on the way ends with 200 and an error in its last line.
    let failed = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|line| {
        let message = line.get("error").or_else(|| line.get("message")).and_then(Value::as_str);
        message.map(str::to_owned)
    });
    match failed {
        Some(message) => bail!("{message}"),
        None if status == 200 => Ok(()),
        None => bail!("the engine answers {status}"),
    }
}

async fn send(socket: &Path, method: Method, path: &str) -> Result<(u16, String)> {
    let (status, body) = Docker::unix(socket).send(method, path, "application/json", "").await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
