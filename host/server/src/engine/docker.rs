//! Requests of the host itself to a Docker engine; others are those of the provider.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use capwasm_sim_service::docker::{Address, Docker};
use http::Method;
use serde_json::Value;

/// Timeout of a pull of a node image over a slow line.
const PULL: Duration = Duration::from_secs(900);

/// Checks that the engine answers.
pub async fn ping(address: &Address) -> Result<()> {
    let (status, _) = tokio::time::timeout(Duration::from_secs(3), send(address, Method::GET, "/_ping")).await??;
    if status != 200 {
        bail!("/_ping answers {status}");
    }
    Ok(())
}

/// Whether an image is there.
pub async fn has_image(address: &Address, image: &str) -> Result<bool> {
    let (status, _) = send(address, Method::GET, &format!("/images/{image}/json")).await?;
    Ok(status == 200)
}

/// Pulls an image.
pub async fn pull(address: &Address, image: &str, tag: &str) -> Result<()> {
    let path = format!("/images/create?fromImage={image}&tag={tag}");
    let (status, text) =
        tokio::time::timeout(PULL, send(address, Method::POST, &path)).await.context("the pull takes too long")??;
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

async fn send(address: &Address, method: Method, path: &str) -> Result<(u16, String)> {
    let (status, body) = Docker::at(address.clone()).send(method, path, "application/json", "").await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
