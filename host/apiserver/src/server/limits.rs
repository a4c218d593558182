//! How HTTP is served, whoever is at the other end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto;

/// Bytes of the headers of a request.
const HEADERS: u32 = 64 << 10;
/// Requests at a time on one HTTP/2 connection.
const STREAMS: u32 = 1000;
/// Requests that a client took back before they were begun, on one HTTP/2 connection; with more, it ends.
const TAKEN_BACK: usize = 20;
/// Bytes of an answer that wait for a slow reader, for each request of an HTTP/2 connection.
const UNSENT: usize = 64 << 10;

/// Settings for a connection. On HTTP/1, the headers of a request have to arrive within `idle` after the one before.
#[must_use]
pub fn connections(idle: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Some(idle)).max_buf_size(HEADERS as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS)
        .max_pending_accept_reset_streams(TAKEN_BACK)
        .max_send_buf_size(UNSENT)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

/// Whether a connection was used. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FirstRequest(Arc<AtomicBool>);

impl FirstRequest {
    /// A request came.
    pub fn came(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns when none has come after `patience`: neither the settings of HTTP/1 nor those of HTTP/2 hold before one begins.
    pub async fn missed(&self, patience: Duration) {
        tokio::time::sleep(patience).await;
        if self.0.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}
