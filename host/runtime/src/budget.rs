//! What one call may make the host hold or do: outcomes, names, handles, operations. Each capability charges it here, before the host
//! holds or does it. Texts of answers that go on to the guest are bounded one by one, and end in its memory.
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
    /// Bytes of the trees that an outcome is parsed into: [`PARSED`] times those of its texts, as usual objects take.
    #[error("what this call wants takes too much memory (limits.resultBytes)")]
    Parsed,
    /// Reads of objects, lists and Secrets.
    #[error("this call has read all that it may read (limits.lookups)")]
    Lookups,
    /// Bytes that it takes to remember what was read until the object's next pass: [`NAMES`] for each read.
    #[error("the names and selectors that this call has read by are too long (limits.lookups)")]
    Names,
    /// Bytes behind handles: data of Secrets, trusted certificates.
    #[error("the Secrets and certificates that this call has open are larger than 16 MiB together")]
    Held,
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

/// Bytes of parsed outcome for each byte of [`Limits::result_bytes`].
const PARSED: u64 = 4;
/// Bytes of names and selectors for each of [`Limits::lookups`]; those of an object are 1,012 at most.
const NAMES: u64 = 1 << 10;
/// Bytes that the host remembers of a read besides its names.
const LOOKUP: u64 = 256;
/// Bytes behind handles; a Secret has 1 MiB at most.
const HELD: u64 = 16 << 20;

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
        most[Limit::Parsed as usize] = limits.result_bytes.saturating_mul(PARSED);
        most[Limit::Lookups as usize] = limits.lookups.into();
        most[Limit::Names as usize] = NAMES * u64::from(limits.lookups);
        most[Limit::Held as usize] = HELD;
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

    /// Gives back what was charged for something that is held no more.
    pub(crate) fn refund(&self, limit: Limit, amount: usize) {
        let less = |used: u64| Some(used.saturating_sub(amount as u64));
        // The closure refuses nothing.
        let _ = self.used[limit as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Charges a read, and the bytes of what it is remembered by.
    pub(crate) fn charge_lookup(&self, named: usize) -> Result<(), Limit> {
        self.charge(Limit::Lookups, 1_u32)?;
        self.charge(Limit::Names, named)
    }

    /// What was charged.
    pub(crate) fn used(&self, limit: Limit) -> u64 {
        self.used[limit as usize].load(Ordering::Relaxed)
    }

    /// Bytes that were charged, of everything that is held; a read takes [`LOOKUP`] besides its names.
    pub(crate) fn held(&self) -> u64 {
        let bytes = [Limit::Result, Limit::Parsed, Limit::Names, Limit::Held].map(|limit| self.used(limit));
        bytes.iter().sum::<u64>() + LOOKUP * self.used(Limit::Lookups)
    }

    /// What may still be charged.
    pub(crate) fn left(&self, limit: Limit) -> u64 {
        self.most[limit as usize].saturating_sub(self.used(limit))
    }
}

impl From<Limit> for Refused {
    fn from(limit: Limit) -> Self {
        let reason = match limit {
            Limit::Result | Limit::Parsed => "ResultTooLarge",
            Limit::Lookups => "TooManyLookups",
            Limit::Names => "NamesTooLong",
            Limit::Held => "HandlesTooLarge",
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
