//! Requests of the host itself to a Docker engine; others are those of the provider.

use std::time::Duration;

use anyhow::{Result, bail};
use capwasm_sim_service::docker::{Address, Docker, Limits};
use http::Method;
use serde_json::Value;

/// What an engine knows by heart: it has this time, and no reason for more than a few kilobytes.
pub const LOOK: Limits = Limits { time: Duration::from_secs(30), bytes: 8 << 20 };
/// Timeout of a pull of a node image over a slow line.
const PULL: Duration = Duration::from_secs(900);

/// Checks that the engine answers.
pub async fn ping(address: &Address) -> Result<()> {
    let limits = Limits { time: Duration::from_secs(3), ..LOOK };
    let (status, _) = send(address, limits, Method::GET, "/_ping").await?;
    if status != 200 {
        bail!("/_ping answers {status}");
    }
    Ok(())
}

/// Whether an image is there.
pub async fn has_image(address: &Address, image: &str) -> Result<bool> {
    let (status, _) = send(address, LOOK, Method::GET, &format!("/images/{image}/json")).await?;
    Ok(status == 200)
}

/// Pulls an image.
pub async fn pull(address: &Address, image: &str, tag: &str) -> Result<()> {
    let path = format!("/images/create?fromImage={image}&tag={tag}");
    let limits = Limits { time: PULL, ..Limits::default() };
    let (status, text) = send(address, limits, Method::POST, &path).await?;
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

async fn send(address: &Address, limits: Limits, method: Method, path: &str) -> Result<(u16, String)> {
    let (status, body) = Docker::at(address.clone()).within(limits).send(method, path, "application/json", "").await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
