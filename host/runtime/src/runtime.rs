//! The runtime: one per process.

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
use crate::precompiled::Precompiled;
use crate::provider::Provider;
use crate::state::{self, State};

/// Conversions at a time, and as many admissions, of all providers together, besides [`RuntimeOptions::max_in_flight`].
const PURE: u32 = 4;

/// How the runtime is made.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Calls at a time, of all providers together: by default four times what one may have. Pure functions (conversion,
    /// admission) have places of their own.
    pub max_in_flight: u32,
    /// Most memory that a provider's limits may grant to one call, bytes.
    pub max_memory_bytes: u64,
    /// Largest component, bytes.
    pub max_component_bytes: usize,
    /// Folder of compiled components; none compiles at every load. Made with mode 0700 if it is not there.
    pub aot_dir: Option<PathBuf>,
    /// What is compiled already. It is kept in the folder, and mapped from there.
    pub precompiled: Option<Arc<Precompiled>>,
    /// Who compiles.
    pub compiler: Arc<dyn Compiler>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        RuntimeOptions {
            max_in_flight: 256,
            max_memory_bytes: 512 << 20,
            max_component_bytes: 64 << 20,
            aot_dir: None,
            precompiled: None,
            compiler: Arc::new(InProcess),
        }
    }
}

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The engine cannot be made.
    #[error("unable to make the WebAssembly engine: {0}")]
    Engine(String),
    /// The thread that ticks cannot be started.
    #[error("unable to start the epoch thread")]
    Ticker(#[source] std::io::Error),
    /// The folder of compiled components cannot be used.
    #[error(transparent)]
    Aot(#[from] AotError),
}

/// The engine and what all calls share.
pub struct Runtime {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    pub(crate) ticker: Ticker,
    pub(crate) slots: Arc<Semaphore>,
    /// Places of conversions. Their own: a call may wait for a read that has to be converted.
    pub(crate) conversions: Arc<Semaphore>,
    /// Places of admissions. Their own: slow ones hold up writers, and no readers.
    pub(crate) admissions: Arc<Semaphore>,
    pub(crate) aot: Option<AotCache>,
    pub(crate) options: RuntimeOptions,
}

impl Runtime {
    /// Makes the engine, its pool and the epoch thread.
    pub fn new(options: RuntimeOptions) -> Result<Arc<Self>, RuntimeError> {
        let broken = |error: wasmtime::Error| RuntimeError::Engine(format!("{error:#}"));
        let memory = usize::try_from(options.max_memory_bytes).unwrap_or(usize::MAX);
        let engine = engine::pooled(options.max_in_flight.saturating_add(2 * PURE), memory).map_err(broken)?;
        let shared = Shared {
            linker: state::linker(&engine).map_err(broken)?,
            ticker: Ticker::start(&engine).map_err(RuntimeError::Ticker)?,
            slots: Arc::new(Semaphore::new(options.max_in_flight as usize)),
            conversions: Arc::new(Semaphore::new(PURE as usize)),
            admissions: Arc::new(Semaphore::new(PURE as usize)),
            aot: options.aot_dir.as_deref().map(|path| AotCache::open(path, &engine)).transpose()?,
            engine,
            options,
        };
        Ok(Arc::new(Runtime { shared: Arc::new(shared) }))
    }

    /// Makes a provider of a component's bytes: checks them, compiles them or takes the compiled form from the cache, and
    /// asks the component twice what it is. Nothing of it is kept when this fails.
    pub async fn load(&self, bytes: &[u8], limits: Limits) -> Result<Arc<Provider>, LoadError> {
        load::load(&self.shared, bytes, limits).await.map(Arc::new)
    }
}
