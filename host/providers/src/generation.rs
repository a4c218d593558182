//! A component with everything that its WasmProvider specifies. Immutable: an update replaces the whole generation, and
//! the last call in flight drops it.

mod health;

use std::sync::Arc;
use std::time::Instant;

use capwasm_reconcile::{Interests, Key, Token};
use capwasm_runtime::record::Recorder;
use capwasm_runtime::{CallError, Grants, HttpClient, Provider, Reply};

pub use self::health::{Figures, Health};
use crate::metrics::CallMetrics;

pub struct Generation {
    pub provider: Arc<Provider>,
    /// Capabilities of its calls.
    pub grants: Arc<Grants>,
    /// HTTP connections of its calls, shared.
    pub http: Arc<HttpClient>,
    pub metrics: CallMetrics,
    /// Receives recordings of its calls.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// `spec.configuration` as JSON text.
    pub configuration: String,
    /// Results of its calls.
    pub health: Arc<Health>,
    /// Woken by calls that its WasmProvider waits for.
    pub interests: Arc<Interests>,
}

impl Generation {
    /// Counts a call, and wakes the WasmProvider if it is news.
    pub fn ended(&self, key: &Key, function: &'static str, call: &Result<Reply, CallError>) {
        let name = &self.provider.descriptor().name;
        self.metrics.count(name, function, call.as_ref());
        let call = call.as_ref().map(|reply| reply.stats).map_err(|error| &error.failure);
        if self.health.ended(key, call, Instant::now()) {
            self.interests.fire(&calls_token(name));
        }
    }
}

/// Token that wakes a WasmProvider on news about its calls.
pub fn calls_token(provider: &str) -> Token {
    Token::new(&format!("provider-calls:{provider}"))
}

impl Drop for Generation {
    fn drop(&mut self) {
        tracing::debug!(
            provider = self.provider.descriptor().name,
            digest = self.provider.digest(),
            "no call uses this generation any more"
        );
    }
}

impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generation").field("digest", &self.provider.digest()).finish_non_exhaustive()
    }
}
