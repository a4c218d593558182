//! The first SIGINT or SIGTERM shuts down, a second one ends the process at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancelled by the first SIGINT or SIGTERM.
pub fn shutdown() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let cancelled = token.clone();
    tokio::spawn(async move {
        for code in [None, Some(130)] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            match code {
                None => cancelled.cancel(),
                Some(code) => std::process::exit(code),
            }
        }
    });
    Ok(token)
}
