//! Whether manifests of everything that comes with the host can be applied: what `/readyz` says.
//!
//! `kubectl apply` needs more than a server that answers: CRDs have to be established, and the components that convert
//! and admit a provider's kinds have to be loaded. Once ready it stays ready, even if a CRD is deleted later.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// What `/readyz` waits for. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<String>>>);

impl Readiness {
    /// Waits for these names (of CRDs, or `provider NAME`).
    pub fn awaits(&self, names: impl IntoIterator<Item = String>) {
        self.0.lock().extend(names);
    }

    /// Ends the wait for a name.
    pub fn served(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Message with the awaited names; `None` when ready.
    pub fn missing(&self) -> Option<String> {
        let missing: Vec<String> = self.0.lock().iter().cloned().collect();
        (!missing.is_empty()).then(|| format!("not served yet: {}", missing.join(", ")))
    }
}

/// Name of a bundled provider in [`Readiness`].
pub fn provider(name: &str) -> String {
    format!("provider {name}")
}

/// Whether a path is `/readyz` or below it.
pub fn is_asked(path: &str) -> bool {
    path.strip_prefix("/readyz").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn it_is_ready_when_the_last_one_is_served() {
        let readiness = Readiness::default();
        assert_eq!(readiness.missing(), None, "where nothing is expected");
        readiness.awaits(["b.example".to_owned(), provider("p")]);
        readiness.awaits(["a.example".to_owned()]);
        assert_eq!(readiness.missing().unwrap(), "not served yet: a.example, b.example, provider p");
        readiness.served("a.example");
        readiness.served("provider p");
        assert_eq!(readiness.missing().unwrap(), "not served yet: b.example");
        readiness.served("b.example");
        assert_eq!(readiness.missing(), None);
    }

    #[test]
    fn single_checks_are_asked_below_its_path() {
        assert!(is_asked("/readyz") && is_asked("/readyz/ping"));
        assert!(!is_asked("/readyzed") && !is_asked("/livez"));
    }
}
