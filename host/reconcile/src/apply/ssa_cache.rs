//! Which intents server-side apply was asked for already, so that an unchanged intent on an unchanged object costs no request.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::kind::{Key, Source};

/// Beyond this many, all are forgotten: that costs one request each.
const CAPACITY: usize = 50_000;

/// The last intent per object and field manager, and the resourceVersion that it led to.
#[derive(Default)]
pub(super) struct SsaCache {
    applied: Mutex<HashMap<u64, (u64, u64)>>,
}

impl SsaCache {
    /// Whether this intent led to `version` of the object.
    pub(super) fn has(&self, source: &Source, key: &Key, manager: &str, intent: &Value, version: u64) -> bool {
        self.applied.lock().get(&identity(source, key, manager)) == Some(&(digest(intent), version))
    }

    pub(super) fn add(&self, source: &Source, key: &Key, manager: &str, intent: &Value, version: u64) {
        let mut applied = self.applied.lock();
        if applied.len() >= CAPACITY {
            applied.clear();
        }
        applied.insert(identity(source, key, manager), (digest(intent), version));
    }
}

fn identity(source: &Source, key: &Key, manager: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (source, key, manager).hash(&mut hasher);
    hasher.finish()
}

fn digest(intent: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    intent.hash(&mut hasher);
    hasher.finish()
}
