//! One generation of a provider: the component with everything that its WasmProvider says about it. Immutable; a swap
//! replaces the whole, and the last call in flight drops it.

mod health;

use std::sync::Arc;
use std::time::Instant;

use capwasm_reconcile::{Interests, Key, Token};
use capwasm_runtime::record::Recorder;
use capwasm_runtime::{CallError, Grants, HttpClient, Provider, Reply};

pub use self::health::{Figures, Health};
use crate::metrics::CallMetrics;

/// A loaded component, what it may do, and its configuration.
pub struct Generation {
    /// The component.
    pub provider: Arc<Provider>,
    /// What it may do.
    pub grants: Arc<Grants>,
    /// Its connections.
    pub http: Arc<HttpClient>,
    /// What its calls cost.
    pub metrics: CallMetrics,
    /// Who gets recordings of its calls.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// `spec.configuration` as JSON text.
    pub configuration: String,
    /// How its calls end.
    pub health: Arc<Health>,
    /// Told of calls that are news.
    pub interests: Arc<Interests>,
}

impl Generation {
    /// Counts a call of a function for an object.
    pub fn ended(&self, key: &Key, function: &'static str, call: &Result<Reply, CallError>) {
        let name = &self.provider.descriptor().name;
        self.metrics.count(name, function, call.as_ref());
        let call = call.as_ref().map(|reply| reply.stats).map_err(|error| &error.failure);
        if self.health.ended(key, call, Instant::now()) {
            self.interests.fire(&calls_token(name));
        }
    }
}

/// What a WasmProvider notes to be woken by calls of its component that are news to it.
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
