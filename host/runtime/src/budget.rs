//! What one call may make the host hold or do. Every capability charges it here, before the host holds or does it.
//!
//! Three limits are not asked for but measured as they pass, where wasmtime or the kernel counts them: linear memory
//! ([`crate::limits`]), time ([`crate::meter`]) and the number of handles ([`crate::state`]).

use std::sync::atomic::{AtomicU64, Ordering};

use capwasm_contract::{Refusal, Refused};

use crate::limits::Limits;

/// A limit of a call; as an error, the one that it passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Limit {
    /// Bytes of answer and outcome.
    #[error("the answer and the outcome of this call are too large (limits.resultBytes)")]
    Result,
    /// Requests: HTTP, etcd and serving certificates.
    #[error("this call has made all requests that it may make (limits.requests)")]
    Requests,
    /// Keys and certificates that are made.
    #[error("this call has made all keys that it may make (limits.keys)")]
    Keys,
    /// Lines of the log.
    #[error("this call has logged all lines that it may log (limits.logLines)")]
    LogLines,
}

/// Number of [`Limit`]s.
const LIMITS: usize = Limit::LogLines as usize + 1;

/// What a call has used of its limits. Its capabilities share it.
pub(crate) struct Budget {
    most: [u64; LIMITS],
    used: [AtomicU64; LIMITS],
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut most = [0; LIMITS];
        most[Limit::Result as usize] = limits.result_bytes;
        most[Limit::Requests as usize] = limits.requests.into();
        most[Limit::Keys as usize] = limits.keys.into();
        most[Limit::LogLines as usize] = limits.log_lines.into();
        Budget { most, used: Default::default() }
    }

    /// Charges an amount, or nothing if it would pass the limit.
    pub(crate) fn charge(&self, limit: Limit, amount: impl TryInto<u64>) -> Result<(), Limit> {
        let amount = amount.try_into().unwrap_or(u64::MAX);
        let most = self.most[limit as usize];
        let charged = |used: u64| used.checked_add(amount).filter(|sum| *sum <= most);
        let used = &self.used[limit as usize];
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charged).map(drop).map_err(|_| limit)
    }

    /// What was charged.
    pub(crate) fn used(&self, limit: Limit) -> u64 {
        self.used[limit as usize].load(Ordering::Relaxed)
    }

    /// What may still be charged.
    pub(crate) fn left(&self, limit: Limit) -> u64 {
        self.most[limit as usize].saturating_sub(self.used(limit))
    }
}

impl From<Limit> for Refused {
    fn from(limit: Limit) -> Self {
        let reason = match limit {
            Limit::Result => "ResultTooLarge",
            Limit::Requests => "TooManyRequests",
            Limit::Keys => "TooManyKeys",
            Limit::LogLines => "TooManyLines",
        };
        Refused::new(Refusal::Limit, reason, limit.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_and_not_passed_and_each_stands_alone() {
        let budget = Budget::new(&Limits { requests: 3, keys: 1, ..Limits::default() });
        assert_eq!(budget.charge(Limit::Requests, 2_u32), Ok(()));
        assert_eq!(budget.charge(Limit::Requests, 2_u32), Err(Limit::Requests));
        assert_eq!((budget.used(Limit::Requests), budget.left(Limit::Requests)), (2, 1), "a refused charge is none");
        assert_eq!(budget.charge(Limit::Requests, 1_u32), Ok(()));
        assert_eq!(budget.charge(Limit::Requests, u64::MAX), Err(Limit::Requests));
        assert_eq!(budget.charge(Limit::Keys, 1_u32), Ok(()));
        assert_eq!(budget.charge(Limit::Keys, 1_u32), Err(Limit::Keys));
    }

    #[test]
    fn a_refusal_names_the_limit() {
        let refused = Refused::from(Limit::Requests);
        assert_eq!((refused.refusal, refused.reason.as_str()), (Refusal::Limit, "TooManyRequests"));
        assert!(refused.message.contains("limits.requests"), "{refused}");
    }
}
