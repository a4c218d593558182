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

/// Longest error text in bytes.
const MESSAGE_BYTES: usize = 2 << 10;

/// Why a component could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Invalid for wasmtime. Final for this component.
    #[error("the component is not valid: {0}")]
    Invalid(String),
    /// A limit of CPU time, wall time, memory or code size was passed. Final for this component.
    #[error("compiling the component took more than {0}")]
    Limit(String),
    /// The compiler failed; a retry may succeed.
    #[error("unable to compile: {0}")]
    Failed(String),
}

/// Compiler for this process's engine.
#[async_trait]
pub trait Compiler: Send + Sync + std::fmt::Debug {
    /// Serialized native code of a component. Dropping the future cancels it.
    async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError>;
}

/// Compiles in this process: for tests and trusted components.
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

/// Identifies the engine that native code fits: wasmtime version, settings and CPU. Hex; equal in all processes.
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

    /// Never called: the whole digest is used.
    fn finish(&self) -> u64 {
        0
    }
}
