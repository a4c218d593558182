//! Applied intents, so that an unchanged intent on an unchanged object costs no request.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::kind::{Key, Source};

/// Intents remembered at most; beyond that all are forgotten, which costs one request each.
const MOST: usize = 50_000;

/// Digest of the last intent per object and field manager, with the resulting resourceVersion.
#[derive(Default)]
pub(super) struct SentIntents {
    sent: Mutex<HashMap<u64, (u64, u64)>>,
}

impl SentIntents {
    /// Whether this intent resulted in `version` of the object.
    pub(super) fn stands(&self, source: &Source, key: &Key, manager: &str, intent: &Value, version: u64) -> bool {
        self.sent.lock().get(&slot(source, key, manager)) == Some(&(digest(intent), version))
    }

    pub(super) fn remember(&self, source: &Source, key: &Key, manager: &str, intent: &Value, version: u64) {
        let mut sent = self.sent.lock();
        if sent.len() >= MOST {
            sent.clear();
        }
        sent.insert(slot(source, key, manager), (digest(intent), version));
    }
}

fn slot(source: &Source, key: &Key, manager: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (source, key, manager).hash(&mut hasher);
    hasher.finish()
}

fn digest(intent: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    intent.hash(&mut hasher);
    hasher.finish()
}
