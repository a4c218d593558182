//! What a candidate would have done: the boundary to whoever has recorded calls.

use std::sync::Arc;

use async_trait::async_trait;
use capwasm_runtime::Provider;

/// What a rehearsal showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsed {
    /// Calls that were rehearsed.
    pub calls: usize,
    /// Calls whose outcome differs.
    pub differences: usize,
    /// The differences, for a person.
    pub summary: String,
}

/// Lets a candidate repeat recorded calls, without any effect.
#[async_trait]
pub trait Rehearsal: Send + Sync {
    /// Repeats the recorded calls of the provider of this name.
    async fn rehearse(&self, name: &str, candidate: &Arc<Provider>) -> Rehearsed;
}
