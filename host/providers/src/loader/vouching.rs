//! Who vouches for a component. The keys that signed it are remembered with it, and held against the trusted ones each time that it is
//! to serve: pinned, rolled back to or after a start of the host. So a key that was taken out vouches for nothing any more.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Loader, Refusal};
use crate::reads::chain;
use crate::wasm_provider::history::History;
use crate::wasm_provider::{Source, Spec};

/// What was seen of a component when it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Vouched {
    /// Whether it came from registries only, and never from the provider folder.
    pub(crate) registry: bool,
    /// Fingerprints of the keys that signed it.
    pub(crate) keys: BTreeSet<String>,
}

impl Vouched {
    pub(super) fn new(registry: bool, keys: impl IntoIterator<Item = String>) -> Self {
        Vouched { registry, keys: keys.into_iter().collect() }
    }

    /// With what was seen before: who signed it once has signed it.
    fn and(mut self, before: Option<Vouched>) -> Self {
        if let Some(before) = before {
            self.registry &= before.registry;
            self.keys.extend(before.keys);
        }
        self
    }
}

/// What a component needs to serve.
struct Asked<'a> {
    digest: &'a str,
    /// Fingerprints of `spec.verification.publicKeys`.
    trusted: &'a [String],
    /// Whether the host takes nothing unsigned from registries.
    required: bool,
    /// Whether the source is a registry: where a component came from of which nothing is remembered.
    registry: bool,
}

fn judge(known: Option<&Vouched>, asked: &Asked<'_>) -> Result<(), Refusal> {
    if asked.trusted.is_empty() {
        if asked.required && known.map_or(asked.registry, |known| known.registry) {
            return Err(required());
        }
        return Ok(());
    }
    if known.is_some_and(|known| asked.trusted.iter().any(|key| known.keys.contains(key))) {
        return Ok(());
    }
    let signed = match known.map(|known| known.keys.iter().map(String::as_str).collect::<Vec<_>>()) {
        Some(keys) if !keys.is_empty() => format!("it was signed by {}", keys.join(", ")),
        _ => "no signature of it is known".to_owned(),
    };
    let message = format!(
        "no key of spec.verification.publicKeys vouches for {}: {signed}; sign it with one of these keys and make it the source, \
         or let another component serve",
        asked.digest
    );
    Err(Refusal::lasting("SignerNotTrusted", message))
}

/// The refusal of what came from a registry, where a host takes nothing unsigned from there.
pub(super) fn required() -> Refusal {
    Refusal::lasting(
        "VerificationRequired",
        "this host takes signed artifacts only: put public keys into spec.verification.publicKeys",
    )
}

impl Loader {
    /// Whether a component may serve by who vouched for it.
    pub(super) async fn trusts(&self, name: &str, spec: &Spec, digest: &str) -> Result<(), Refusal> {
        let keys = &spec.verification.public_keys;
        let trusted = match keys.is_empty() {
            true => Vec::new(),
            false => self.artifacts()?.fingerprints(keys).map_err(|error| super::source::refused(&error))?,
        };
        let registry = matches!(spec.source, Source::Oci(_));
        let asked = Asked { digest, trusted: &trusted, required: self.dependencies.require_signatures, registry };
        judge(self.vouched(name, digest).await.as_ref(), &asked)
    }

    /// The newest component that served before and may serve again.
    pub(super) async fn trusted_previous<'a>(&self, name: &str, spec: &Spec, history: &'a History) -> Option<&'a str> {
        for record in &history.previous {
            match self.trusts(name, spec, &record.digest).await {
                Ok(()) => return Some(&record.digest),
                Err(refusal) => {
                    tracing::warn!(
                        provider = name,
                        digest = record.digest,
                        reason = refusal.message,
                        "no rollback to it"
                    );
                }
            }
        }
        None
    }

    /// Remembers who vouched for a component, with it: a start of the host forgets nothing.
    pub(super) async fn vouch(&self, name: &str, digest: &str, seen: Vouched) {
        let before = self.vouched(name, digest).await;
        let vouched = seen.and(before.clone());
        // Nothing is remembered of what the folder has without a signature.
        if before.unwrap_or_default() == vouched {
            return;
        }
        if let Some(components) = &self.dependencies.components
            && let Err(error) = components.vouch(digest, &vouched).await
        {
            // It serves all the same; after a start of the host its source would have to say it again.
            tracing::warn!(provider = name, digest, error = chain(&error), "unable to keep who signed the component");
        }
        self.providers.lock().entry(name.to_owned()).or_default().vouched.insert(digest.to_owned(), vouched);
    }

    async fn vouched(&self, name: &str, digest: &str) -> Option<Vouched> {
        let known = self.providers.lock().get(name).and_then(|loaded| loaded.vouched.get(digest).cloned());
        match (known, &self.dependencies.components) {
            (None, Some(components)) => components.vouched(digest).await,
            (known, _) => known,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_component_serves_while_a_trusted_key_vouches_for_it() {
        let of = |registry: bool, keys: &[&str]| Some(Vouched::new(registry, keys.iter().map(|key| (*key).to_owned())));
        const REQUIRED: Option<&str> = Some("VerificationRequired");
        const NOT_TRUSTED: Option<&str> = Some("SignerNotTrusted");
        type Row<'a> = (&'a str, Option<Vouched>, &'a [&'a str], bool, Option<&'a str>);
        let rows: [Row<'_>; 11] = [
            ("nobody asks", of(true, &[]), &[], false, None),
            ("nobody asks, and nothing is known", None, &[], false, None),
            ("a trusted key", of(true, &["a"]), &["a"], true, None),
            ("one of two keys was taken out", of(true, &["a", "b"]), &["b"], true, None),
            ("its key was taken out", of(true, &["a"]), &["b"], false, NOT_TRUSTED),
            ("unsigned, of the folder", of(false, &[]), &["b"], false, NOT_TRUSTED),
            ("nothing is known", None, &["b"], false, NOT_TRUSTED),
            ("all keys were taken out", of(true, &["a"]), &[], false, None),
            ("all keys were taken out, and the host asks for one", of(true, &["a"]), &[], true, REQUIRED),
            ("the host asks for none of what is in its folder", of(false, &[]), &[], true, None),
            ("of a registry, as far as is known", None, &[], true, REQUIRED),
        ];
        for (name, known, trusted, required, expected) in rows {
            let trusted: Vec<String> = trusted.iter().map(|key| (*key).to_owned()).collect();
            let asked = Asked { digest: "sha256:ab", trusted: &trusted, required, registry: true };
            let found = judge(known.as_ref(), &asked);
            assert_eq!(found.as_ref().err().map(|refusal| refusal.reason), expected, "{name}");
            assert!(
                found.err().is_none_or(|refusal| refusal.message.contains("publicKeys")),
                "{name}: it says what to do"
            );
        }
    }

    #[test]
    fn what_was_seen_is_remembered_together() {
        let seen = Vouched::new(true, ["b".to_owned()]);
        let all = seen.clone().and(Some(Vouched::new(false, ["a".to_owned()])));
        assert_eq!(all, Vouched::new(false, ["a".to_owned(), "b".to_owned()]));
        assert_eq!(seen.clone().and(None), seen);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Vouched>(&text).unwrap(), all);
    }
}
