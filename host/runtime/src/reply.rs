//! What comes of a call besides its answer.

use std::time::Duration;

use capwasm_contract::{Answer, Outcome, Problem};

/// A finished call. What `outcome` collected counts also when `answer` is a problem.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The role's answer.
    pub answer: Result<Answer, Problem>,
    /// What should be, besides.
    pub outcome: Outcome,
    /// What it cost.
    pub stats: CallStats,
}

/// What a call cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// From instantiation to answer, waits on others included.
    pub duration: Duration,
    /// CPU time of guest and host calls, less `cpu_outside`.
    pub cpu: Duration,
    /// CPU time of what it asked of others: HTTP, etcd, workload clusters, Secrets.
    pub cpu_outside: Duration,
    /// Largest linear memory, bytes.
    pub peak_memory: usize,
    /// Bytes of answer and outcome.
    pub result_bytes: usize,
}
