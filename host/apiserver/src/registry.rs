//! The generic REST store: every kind goes through the same create, read, update and delete, steered by its
//! [`Resource`] and by the few rules in [`strategy`](self) that are a kind's own.
//!
//! Writes are decided on a stored version and committed only if that is still the newest; otherwise they are decided
//! again. All rules work on the storage version; other served versions are converted at the door.

mod admission;
mod conversion;
mod create;
mod delete;
mod edit;
mod events;
mod fields;
mod list;
mod naming;
mod options;
mod pipeline;
mod scale;
mod strategy;
mod update;
mod watch;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};

use crate::catalog::{Catalog, Definition, Resource};
use crate::config::ServerConfig;
use crate::status::{ApiError, ApiResult};
use crate::store::{Key, Keyspace, Record, Store};
use crate::turn::{self, Turns};

pub(crate) use conversion::Conversion;
pub(crate) use delete::{DeleteOptions, Deleted, FOREGROUND, ORPHAN, Propagation};
pub(crate) use edit::Edit;
pub(crate) use fields::Filter;
pub(crate) use list::{ListRequest, Page};
pub(crate) use options::{FieldValidation, WriteOptions};
pub(crate) use pipeline::{NESTING, invalid_field, nests_beyond, too_deep};
pub(crate) use strategy::NAMESPACE_FINALIZER;
pub(crate) use update::Part;
pub(crate) use watch::{Change, WatchRequest, WatchStep, Watching};

#[derive(Clone)]
pub(crate) struct Locator {
    pub resource: Arc<Resource>,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

impl Locator {
    pub fn new(resource: &Arc<Resource>, namespace: &str, name: &str) -> Self {
        Self { resource: Arc::clone(resource), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub fn key(&self) -> Key {
        Key::new(&self.resource.store, &self.namespace, &self.name)
    }

    pub fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, &self.name)
    }

    fn modified(&self) -> ApiError {
        ApiError::modified(&self.resource.group, &self.resource.plural, &self.name)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// The object in the version of the request.
    pub data: Bytes,
    pub created: bool,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

pub(crate) struct Registry {
    pub store: Arc<Store>,
    pub keyspace: Arc<Keyspace>,
    pub config: ServerConfig,
    pub conversion: Arc<Conversion>,
    pub turns: Turns,
    catalog: RwLock<Arc<Catalog>>,
    /// CRDs in the catalog.
    definitions: Mutex<HashMap<Key, Definition>>,
}

impl Registry {
    pub fn new(store: Arc<Store>, config: ServerConfig) -> ApiResult<Self> {
        let keyspace = store.keyspace(&config.keyspace);
        let conversion = Arc::new(Conversion::new(config.converter.clone()));
        let registry = Self {
            store,
            keyspace,
            config,
            conversion,
            turns: Turns::default(),
            catalog: RwLock::new(Catalog::native()),
            definitions: Mutex::default(),
        };
        registry.reload_catalog()?;
        Ok(registry)
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// Builds the catalog anew from the stored CRDs. Called after every write to one, before the writer is answered, so
    /// that a kind is served from the moment its CRD was accepted.
    pub(crate) fn reload_catalog(&self) -> ApiResult<()> {
        // Under the lock, so that the newest state wins when two CRDs change at once.
        let mut definitions = self.definitions.lock();
        let prefix = Key::prefix("customresourcedefinitions.apiextensions.k8s.io", None);
        let mut records = Vec::new();
        self.store.read(&self.keyspace, |view| {
            view.walk(&prefix, None, None, &mut |record| {
                records.push(record);
                true
            })
        })?;
        definitions.retain(|key, _| records.iter().any(|record| record.key == *key));
        for record in &records {
            if definitions.get(&record.key).is_none_or(|known| known.revision != record.revision) {
                definitions.insert(record.key.clone(), Definition::parse(&parse(&record.data)?, record.revision));
            }
        }
        let stamp = records.iter().map(|record| record.revision).max().unwrap_or(0);
        *self.catalog.write() = Catalog::with(definitions.values(), stamp);
        Ok(())
    }

    /// The stored record of an object, in its storage version.
    pub fn read(&self, key: &Key) -> ApiResult<Option<Record>> {
        Ok(self.store.read(&self.keyspace, |view| view.get(key))?)
    }

    /// An object in the version of the request; `parsed`, whether the caller parses it.
    pub async fn get(&self, at: &Locator, parsed: bool) -> ApiResult<Bytes> {
        let record = self.read(&at.key())?.ok_or_else(|| at.not_found())?;
        turn::charge(record.data.len())?;
        if parsed || !at.resource.serves_verbatim(&record.data, record.revision) {
            turn::long(record.data.len()).await;
        }
        self.show(&at.resource, &record.data, record.revision)
    }

    /// As [`Registry::get`], as JSON.
    pub fn find(&self, at: &Locator) -> ApiResult<Option<Value>> {
        let Some(record) = self.read(&at.key())? else { return Ok(None) };
        Ok(Some(self.decode(&at.resource, &record.data)?))
    }

    fn show(&self, resource: &Resource, data: &Bytes, revision: u64) -> ApiResult<Bytes> {
        self.conversion.show(resource, data, revision)
    }

    fn decode(&self, resource: &Resource, data: &[u8]) -> ApiResult<Value> {
        self.conversion.decode(resource, data)
    }

    pub fn in_store(&self, group: &str, plural: &str) -> ApiResult<Arc<Resource>> {
        self.catalog().in_store(group, plural).cloned().ok_or_else(ApiError::no_such_path)
    }

    /// A locator of the stored version, for the server's own use.
    pub fn locate(&self, group: &str, plural: &str, namespace: &str, name: &str) -> ApiResult<Locator> {
        Ok(Locator::new(&self.in_store(group, plural)?, namespace, name))
    }

    fn stamp(&self) -> String {
        self.config.clock.stamp()
    }
}

/// Stored bytes as JSON. They were written by this server, so a failure means a damaged database.
pub(crate) fn parse(data: &[u8]) -> ApiResult<Value> {
    serde_json::from_slice(data).map_err(|error| ApiError::internal(format!("a stored object is unreadable: {error}")))
}

pub(crate) fn to_bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

/// Whether two objects differ in nothing but `resourceVersion`.
fn same(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let counts = |field: &&String| *field != "resourceVersion";
    let same_metadata = |a: &Map<String, Value>, b: &Map<String, Value>| {
        a.keys().filter(counts).eq(b.keys().filter(counts))
            && a.iter().all(|(field, value)| !counts(&field) || b.get(field) == Some(value))
    };
    a.len() == b.len()
        && a.iter().all(|(field, value)| match (b.get(field), value) {
            (Some(Value::Object(b)), Value::Object(a)) if field == "metadata" => same_metadata(a, b),
            (other, _) => other == Some(value),
        })
}
