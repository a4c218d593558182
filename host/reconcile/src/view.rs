//! Reads of one pass. Every read is remembered, of absent objects too, and wakes the key when its result may change.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    cache::{Cache, CacheError},
    interests::{Fields, Interest, Interests, News, Reading, Token},
    kind::{Kind, split_api_version},
    selector::Selector,
};

/// Reads of one pass of one key. Cheap to clone; clones belong to the same pass.
#[derive(Clone)]
pub struct View {
    cache: Cache,
    pass: Option<(Arc<Interests>, Reading)>,
    news: News,
    /// When to run again because of what cannot be watched.
    look_again: Arc<Mutex<Option<Duration>>>,
}

impl View {
    /// Reads of the pass `reading`.
    pub fn new(cache: &Cache, interests: &Arc<Interests>, reading: Reading) -> Self {
        Self {
            cache: cache.clone(),
            pass: Some((interests.clone(), reading)),
            news: News::Any,
            look_again: Arc::default(),
        }
    }

    /// Reads that are not remembered: for tools and tests.
    pub fn unremembered(cache: &Cache) -> Self {
        Self { cache: cache.clone(), pass: None, news: News::Any, look_again: Arc::default() }
    }

    /// The same pass, reading from another cluster's cache.
    #[must_use]
    pub fn in_source(&self, cache: &Cache) -> Self {
        Self { cache: cache.clone(), ..self.clone() }
    }

    /// The same pass, whose key is woken at once by changes in `news` alone, and by others a little later.
    #[must_use]
    pub fn with_news(&self, news: News) -> Self {
        Self { news, ..self.clone() }
    }

    /// The cache behind this view.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The kind at the server's preferred version. An unknown kind wakes the key when a CRD changes.
    ///
    /// # Errors
    /// When the server does not know the kind, or cannot be asked.
    pub async fn kind(&self, group: &str, kind: &str) -> Result<Kind, CacheError> {
        self.or_wait_for_crd(group, kind, self.cache.kind(group, kind).await)
    }

    /// The kind at this version.
    ///
    /// # Errors
    /// When the server does not know the kind at this version, or cannot be asked.
    pub async fn kind_at(&self, api_version: &str, kind: &str) -> Result<Kind, CacheError> {
        let group = split_api_version(api_version).0;
        self.or_wait_for_crd(group, kind, self.cache.kind_at(api_version, kind).await)
    }

    /// An object from the cache. Kinds that are cached as metadata only (Secrets, CRDs) have nothing else.
    ///
    /// # Errors
    /// When the cache cannot be filled in time.
    pub async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Arc<Value>>, CacheError> {
        self.remember_object(kind, namespace, name);
        self.cache.get(kind, namespace, name).await
    }

    /// As [`View::get`], as JSON text.
    ///
    /// # Errors
    /// When the cache cannot be filled in time.
    pub async fn get_text(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<String>, CacheError> {
        self.remember_object(kind, namespace, name);
        self.cache.get_text(kind, namespace, name).await
    }

    /// As [`View::get`], but only changes of these fields (JSON pointers), creation and deletion wake the key; other
    /// fields of the result may be outdated.
    ///
    /// # Errors
    /// When the cache cannot be filled in time.
    pub async fn get_for_fields(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        fields: Fields,
    ) -> Result<Option<Arc<Value>>, CacheError> {
        if self.cache.may_hold(kind, namespace) {
            self.remember(Interest::Fields {
                source: self.cache.source().clone(),
                kind: kind.clone(),
                namespace: if kind.namespaced { namespace.into() } else { "".into() },
                name: name.into(),
                fields,
            });
        }
        self.cache.get(kind, namespace, name).await
    }

    /// Objects from the cache, by namespace and name.
    ///
    /// # Errors
    /// When the cache cannot be filled in time.
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<Arc<Value>>, CacheError> {
        self.remember_listing(kind, namespace, selector);
        self.cache.list(kind, namespace, selector).await
    }

    /// As [`View::list`], as JSON texts.
    ///
    /// # Errors
    /// When the cache cannot be filled in time.
    pub async fn list_texts(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<String>, CacheError> {
        self.list_texts_within(kind, namespace, selector, usize::MAX).await
    }

    /// As [`View::list_texts`], of at most so many bytes together: cached texts are compressed, and a list may be a hundred times what
    /// the cache holds.
    ///
    /// # Errors
    /// When the texts are longer, or the cache cannot be filled in time.
    pub async fn list_texts_within(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        selector: &Selector,
        most: usize,
    ) -> Result<Vec<String>, CacheError> {
        self.remember_listing(kind, namespace, selector);
        self.cache.list_texts(kind, namespace, selector, most).await
    }

    /// An object read from the server: for data of Secrets, and where the cache's delay matters. Changes of the object
    /// wake the key if its kind is cached.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn get_live(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Option<Value>, CacheError> {
        self.remember_object(kind, namespace, name);
        if self.cache.watches(kind) {
            // Started first, so that no change after the read goes unseen.
            self.cache.synced(kind).await?;
        }
        self.cache.get_live(kind, namespace, name).await
    }

    /// Number of reads that are remembered for all keys of the pass's controller.
    pub fn held(&self) -> usize {
        self.pass.as_ref().map_or(0, |(interests, reading)| interests.held(*reading))
    }

    /// Registers a token; [`Interests::fire`] wakes the key.
    pub fn note(&self, token: Token) {
        self.remember(Interest::Token(token));
    }

    /// When to run again at the latest because of this pass's reads.
    pub(crate) fn look_again(&self) -> Option<Duration> {
        *self.look_again.lock()
    }

    fn remember_object(&self, kind: &Kind, namespace: &str, name: &str) {
        if self.cache.may_hold(kind, namespace) {
            self.remember(Interest::Object {
                source: self.cache.source().clone(),
                kind: kind.clone(),
                namespace: if kind.namespaced { namespace.into() } else { "".into() },
                name: name.into(),
                news: self.news,
            });
        }
    }

    fn remember_listing(&self, kind: &Kind, namespace: Option<&str>, selector: &Selector) {
        // As the cache takes it: a namespace means nothing to cluster-scoped kinds, and an empty one means all.
        let namespace = namespace.filter(|namespace| kind.namespaced && !namespace.is_empty());
        if self.cache.answers(kind, namespace, selector) {
            self.remember(Interest::Listing {
                source: self.cache.source().clone(),
                kind: kind.clone(),
                namespace: namespace.map(Arc::from),
                selector: selector.clone(),
                news: self.news,
            });
        }
    }

    fn or_wait_for_crd(&self, group: &str, kind: &str, found: Result<Kind, CacheError>) -> Result<Kind, CacheError> {
        if let Err(CacheError::UnknownKind { .. }) = &found {
            let crds = crate::cache::crd_kind();
            if self.cache.watches(&crds) {
                self.remember(Interest::Listing {
                    source: self.cache.source().clone(),
                    kind: crds.clone(),
                    namespace: None,
                    selector: Selector::everything(),
                    news: News::Any,
                });
                self.cache.start(&crds);
            }
            let after = self.cache.look_again_after(group, kind);
            let mut look_again = self.look_again.lock();
            *look_again = Some(look_again.map_or(after, |earlier| earlier.min(after)));
        }
        found
    }

    fn remember(&self, interest: Interest) {
        if let Some((interests, reading)) = &self.pass {
            interests.note(*reading, interest);
        }
    }
}
