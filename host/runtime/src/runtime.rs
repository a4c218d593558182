//! The runtime; one per process.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::aot::{AotCache, AotError};
use crate::compile::{Compiler, InProcess};
use crate::engine::{self, Ticker};
use crate::limits::Limits;
use crate::load::{self, LoadError};
use crate::places::Places;
use crate::precompiled::Precompiled;
use crate::provider::Provider;
use crate::state::{self, State};

/// Concurrent conversions, and as many admissions, of all providers, besides [`RuntimeOptions::max_in_flight`].
const PURE: u32 = 16;
/// Of these, those of one provider.
const SHARE: u32 = 4;

/// Settings of a [`Runtime`].
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Concurrent calls of all providers; the default is four times the limit of one. Pure functions (conversion,
    /// admission) have places of their own.
    pub max_in_flight: u32,
    /// Most memory in bytes that a provider's limits may allow one call.
    pub max_memory_bytes: u64,
    /// Largest component in bytes.
    pub max_component_bytes: usize,
    /// Folder of compiled components, created with mode 0700; `None` compiles at every load.
    pub aot_dir: Option<PathBuf>,
    /// Precompiled components, which are stored in the folder and mapped from there.
    pub precompiled: Option<Arc<Precompiled>>,
    /// Compiles components.
    pub compiler: Arc<dyn Compiler>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        RuntimeOptions {
            max_in_flight: 128,
            max_memory_bytes: 512 << 20,
            max_component_bytes: 64 << 20,
            aot_dir: None,
            precompiled: None,
            compiler: Arc::new(InProcess),
        }
    }
}

/// Why a runtime could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The engine could not be created.
    #[error("unable to make the WebAssembly engine: {0}")]
    Engine(String),
    /// The epoch thread could not be started.
    #[error("unable to start the epoch thread")]
    Ticker(#[source] std::io::Error),
    /// The folder of compiled components is unusable.
    #[error(transparent)]
    Aot(#[from] AotError),
}

/// The engine, and the state that calls share.
pub struct Runtime {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    pub(crate) ticker: Ticker,
    pub(crate) slots: Arc<Semaphore>,
    /// Slots of conversions; separate, since a call may wait for a read that needs a conversion.
    pub(crate) conversions: Places,
    /// Slots of admissions; separate, so that slow ones delay writers but no readers.
    pub(crate) admissions: Places,
    pub(crate) aot: Option<AotCache>,
    pub(crate) options: RuntimeOptions,
}

impl Runtime {
    /// Creates the engine with its pool, and starts the epoch thread.
    pub fn new(options: RuntimeOptions) -> Result<Arc<Self>, RuntimeError> {
        let broken = |error: wasmtime::Error| RuntimeError::Engine(format!("{error:#}"));
        let memory = usize::try_from(options.max_memory_bytes).unwrap_or(usize::MAX);
        let engine = engine::pooled(options.max_in_flight.saturating_add(2 * PURE), memory).map_err(broken)?;
        let shared = Shared {
            linker: state::linker(&engine).map_err(broken)?,
            ticker: Ticker::start(&engine).map_err(RuntimeError::Ticker)?,
            slots: Arc::new(Semaphore::new(options.max_in_flight as usize)),
            conversions: Places::new(PURE, SHARE),
            admissions: Places::new(PURE, SHARE),
            aot: options.aot_dir.as_deref().map(|path| AotCache::open(path, &engine)).transpose()?,
            engine,
            options,
        };
        Ok(Arc::new(Runtime { shared: Arc::new(shared) }))
    }

    /// Loads a component: checks it, compiles it or takes cached code, and calls `describe()` twice.
    pub async fn load(&self, bytes: &[u8], limits: Limits) -> Result<Arc<Provider>, LoadError> {
        load::load(&self.shared, bytes, limits).await.map(Arc::new)
    }
}
