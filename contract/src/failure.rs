//! Failed calls.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a call failed. Its outcome is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// The guest trapped: a panic, an `unreachable`, a stack overflow, an invalid host call.
    Trap {
        /// Message of wasmtime or the host.
        message: String,
        /// Names of the guest's functions, innermost first.
        backtrace: Vec<String>,
        /// End of the guest's stderr: a Rust guest's panic message.
        stderr: String,
    },
    /// The CPU time limit was passed.
    Cpu {
        /// The limit.
        limit: Duration,
        /// Names of the guest's functions, innermost first.
        backtrace: Vec<String>,
    },
    /// The wall time limit was passed.
    Wall {
        /// The limit.
        limit: Duration,
    },
    /// The memory limit was passed.
    Memory {
        /// Requested size in bytes.
        asked: usize,
        /// The limit in bytes.
        limit: usize,
        /// Names of the guest's functions, innermost first.
        backtrace: Vec<String>,
    },
    /// Answer and outcome exceed their limit.
    Result {
        /// The limit in bytes.
        limit: u64,
    },
    /// Host code panicked: a bug of the host. Other calls are not affected.
    Panic {
        /// Message of the panic.
        message: String,
    },
    /// No slot became free within the time of a call.
    Busy {
        /// Waiting time.
        waited: Duration,
    },
    /// The component does not export the role.
    NotExported,
    /// Instantiation failed: a limit of the host, such as that of the pool, or its memory.
    Instantiate {
        /// Message of wasmtime.
        message: String,
    },
}

impl Failure {
    /// Whether another version of the guest may not fail so. Only these failures count for an automatic rollback;
    /// limits and a busy host do not.
    pub fn is_trap(&self) -> bool {
        matches!(self, Failure::Trap { .. })
    }

    /// CamelCase reason for conditions, events and metrics, such as `ProviderTrapped`.
    pub fn reason(&self) -> &'static str {
        match self {
            Failure::Trap { .. } => "ProviderTrapped",
            Failure::Cpu { .. } => "ProviderCpuLimit",
            Failure::Wall { .. } => "ProviderTimeout",
            Failure::Memory { .. } => "ProviderMemoryLimit",
            Failure::Result { .. } => "ProviderResultLimit",
            Failure::Panic { .. } => "HostPanicked",
            Failure::Busy { .. } => "ProviderBusy",
            Failure::NotExported => "ProviderRoleMissing",
            Failure::Instantiate { .. } => "ProviderNotStarted",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |f: &mut fmt::Formatter<'_>, backtrace: &[String]| match backtrace {
            [] => Ok(()),
            frames => write!(f, "; at {}", frames.join(" < ")),
        };
        match self {
            Failure::Trap { message, backtrace, stderr } => {
                write!(f, "trapped: {message}")?;
                if !stderr.is_empty() {
                    write!(f, "; stderr: {stderr}")?;
                }
                at(f, backtrace)
            }
            Failure::Cpu { limit, backtrace } => {
                write!(f, "used more than {limit:?} of CPU time (limits.cpuTimeMs)")?;
                at(f, backtrace)
            }
            Failure::Wall { limit } => write!(f, "took longer than {limit:?} (limits.wallTimeMs)"),
            Failure::Memory { asked, limit, backtrace } => {
                write!(f, "asked for {asked} bytes of memory, more than {limit} (limits.memoryBytes)")?;
                at(f, backtrace)
            }
            Failure::Result { limit } => {
                write!(
                    f,
                    "handed over more than {limit} bytes of answer and outcome, or what takes four times that in memory (limits.resultBytes)"
                )
            }
            Failure::Panic { message } => write!(f, "the host panicked: {message}"),
            Failure::Busy { waited } => write!(f, "no free slot within {waited:?}"),
            Failure::NotExported => write!(f, "the component does not export this role"),
            Failure::Instantiate { message } => write!(f, "cannot be instantiated: {message}"),
        }
    }
}
