//! Result of a call: answer, outcome and cost.

use std::time::Duration;

use capwasm_contract::{Answer, Outcome, Problem};

/// Result of a call. The outcome counts also when the answer is a problem.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Answer of the role's function.
    pub answer: Result<Answer, Problem>,
    /// What the guest reported through the capability `outcome`.
    pub outcome: Outcome,
    /// Cost of the call.
    pub stats: CallStats,
}

/// Cost of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// From instantiation to answer, including waits.
    pub duration: Duration,
    /// CPU time of guest and host calls, less `cpu_outside`.
    pub cpu: Duration,
    /// CPU time of capabilities that others serve: HTTP, etcd, workload clusters, Secrets.
    pub cpu_outside: Duration,
    /// Largest linear memory, bytes.
    pub peak_memory: usize,
    /// Bytes of answer and outcome.
    pub result_bytes: usize,
}
