//! Why a call gave no reply.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a call failed. Its outcome is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// The guest trapped: a panic, an `unreachable`, a stack overflow, a broken call of the host.
    Trap {
        /// What wasmtime or the host says.
        message: String,
        /// The guest's functions, innermost first, with their names.
        backtrace: Vec<String>,
        /// The last of what the guest wrote to stderr: a Rust guest's panic message.
        stderr: String,
    },
    /// The CPU budget is used up.
    Cpu {
        /// The budget.
        limit: Duration,
        /// Where the guest was, innermost first.
        backtrace: Vec<String>,
    },
    /// The wall time is over.
    Wall {
        /// The limit.
        limit: Duration,
    },
    /// More memory than granted.
    Memory {
        /// What the guest would have had, bytes.
        asked: usize,
        /// The limit, bytes.
        limit: usize,
        /// Who asked, innermost first.
        backtrace: Vec<String>,
    },
    /// Answer and outcome are too large.
    Result {
        /// The limit, bytes.
        limit: u64,
    },
    /// Host code panicked. A bug of the host, which this call alone pays for.
    Panic {
        /// The panic's message.
        message: String,
    },
    /// No slot became free in the time of a whole call.
    Busy {
        /// How long the call waited.
        waited: Duration,
    },
    /// The component does not export the role.
    NotExported,
    /// The instance could not be made: a host limit such as the pool's, or memory of the host.
    Instantiate {
        /// What wasmtime says.
        message: String,
    },
}

impl Failure {
    /// Whether the guest is at fault in a way that another version of it may not be. Only these count for an automatic
    /// rollback; limits and a busy host do not.
    pub fn is_trap(&self) -> bool {
        matches!(self, Failure::Trap { .. })
    }

    /// CamelCase, for conditions, events and metrics.
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
                write!(f, "handed over more than {limit} bytes of answer and outcome (limits.resultBytes)")
            }
            Failure::Panic { message } => write!(f, "the host panicked: {message}"),
            Failure::Busy { waited } => write!(f, "no free slot within {waited:?}"),
            Failure::NotExported => write!(f, "the component does not export this role"),
            Failure::Instantiate { message } => write!(f, "cannot be instantiated: {message}"),
        }
    }
}
