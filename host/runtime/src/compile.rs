//! From a component to native code.
//!
//! wasmtime promises nothing about the time and memory that a hostile component makes its compiler take, and keeps the
//! compiler's contexts for as long as an engine lives. So a host compiles in a child process that is thrown away
//! ([`ChildProcess`]); tests compile where they are ([`InProcess`]). Either way the result is native code, which only the engine
//! that it was made for takes.

mod child;

use std::hash::{Hash, Hasher};

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use wasmtime::Engine;

pub use self::child::{ChildProcess, CompileLimits, serve};
use crate::engine;
use crate::untrusted;

/// Bytes of what is wrong with a component.
const MESSAGE_BYTES: usize = 2 << 10;

/// Why a component was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// wasmtime does not take it. The same component fails again.
    #[error("the component is not valid: {0}")]
    Invalid(String),
    /// It takes more than a compilation may: CPU time, wall time, memory or code. The same component fails again.
    #[error("compiling the component took more than {0}")]
    Limit(String),
    /// The compiler could not do its work; another time it may.
    #[error("unable to compile: {0}")]
    Failed(String),
}

/// Compiles components for this process's engine.
#[async_trait]
pub trait Compiler: Send + Sync + std::fmt::Debug {
    /// The serialized native code of a component. Dropping the future gives up.
    async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError>;
}

/// Compiles in this process: for tests, and for components that are trusted not to make it expensive.
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcess;

#[async_trait]
impl Compiler for InProcess {
    async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let component = component.to_vec();
        tokio::task::spawn_blocking(move || compile(&component))
            .await
            .map_err(|error| CompileError::Failed(format!("the compiler panicked: {error}")))?
    }
}

fn compile(component: &[u8]) -> Result<Vec<u8>, CompileError> {
    // An engine of its own, to be dropped: bytecodealliance/wasmtime#14314.
    let engine = engine::compiler().map_err(|error| CompileError::Failed(format!("{error:#}")))?;
    // It may repeat names of the component.
    let invalid = |error| CompileError::Invalid(untrusted::shortened(&format!("{error:#}"), MESSAGE_BYTES));
    engine.precompile_component(component).map_err(invalid)
}

/// Names what an engine's native code fits: wasmtime's version, its settings, the processor. Hex, the same in every process.
pub(crate) fn compatibility(engine: &Engine) -> String {
    // The engine gives something to hash, and hashing needs a function that is the same in the next process.
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex::encode(&hasher.0.finalize()[..8])
}

struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Never asked for: the whole digest is taken.
    fn finish(&self) -> u64 {
        0
    }
}
