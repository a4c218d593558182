//! One generation of a provider: the component with everything that its WasmProvider says about it. Immutable; a swap
//! replaces the whole.

use std::sync::Arc;

use capwasm_runtime::record::Recorder;
use capwasm_runtime::{Grants, HttpClient, Provider};

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
}

impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generation").field("digest", &self.provider.digest()).finish_non_exhaustive()
    }
}
