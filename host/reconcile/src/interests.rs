//! Who read what: a change wakes exactly those keys whose last pass saw the old state.
//!
//! A reader (a key of a controller) registers each read *before* it looks, so a change between registering and
//! looking wakes it once too often and never once too seldom. When its next pass ends, the reads that were not repeated
//! are dropped. Finding the readers of a change costs the object's labels and owners, not the number of readers or clusters:
//! a listing hangs on one anchor, its owner or one of its exact labels.
//!
//! Not every change is one to hurry for: see [`News`].

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    kind::{Key, Kind, Source},
    queue::Urgency,
    selector::{Label, Selector},
};

/// Something watchable that is not an object, such as `connection:<namespace>/<cluster>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(Arc<str>);

impl Token {
    /// The token with this name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }
}

/// Receives keys that must run again.
pub trait Wake: Send + Sync {
    /// `key` has to run again. Must not block.
    fn wake(&self, key: &Key, urgency: Urgency);

    /// `key` has to run again because an object that it read, or its own, is at `version` (its resourceVersion) now, or gone. Must not
    /// block.
    fn changed(&self, key: &Key, version: u64, urgency: Urgency) {
        let _ = version;
        self.wake(key, urgency);
    }
}

/// Handle of a registered receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ControllerId(u32);

/// Attributes of an object that select its readers.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    /// Labels of the object.
    pub labels: &'a [Label],
    /// Uids of its owner references.
    pub owners: &'a [Arc<str>],
}

impl Marks<'_> {
    fn match_by(&self, selector: &Selector) -> bool {
        selector.matches(|key| self.labels.iter().find(|label| &*label.0 == key).map(|label| &*label.1), self.owners)
    }
}

/// JSON pointers to the fields of an object that were read.
pub type Fields = &'static [&'static str];

/// Which changes a reader has to know of at once. It learns of any other one a little later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum News {
    /// All but what people alone read: see [`capwasm_object::news`].
    Any,
    /// Those of some fields, as [`capwasm_object::news::field`] names them.
    In(Fields),
}

/// An object that changed: its versions as far as readers are concerned.
pub struct Change<'a> {
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its resourceVersion now, 0 where it is no number.
    pub version: u64,
    /// What it was; `None` when it appeared.
    pub old: Option<Marks<'a>>,
    /// What it is; `None` when it is gone.
    pub new: Option<Marks<'a>>,
}

/// One read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// An object, present or absent.
    Object {
        /// API server that was read.
        source: Source,
        /// Kind of the object.
        kind: Kind,
        /// Empty for cluster-scoped kinds.
        namespace: Arc<str>,
        /// Name of the object.
        name: Arc<str>,
        /// What of it matters at once.
        news: News,
    },
    /// Fields of an object, present or absent.
    Fields {
        /// API server that was read.
        source: Source,
        /// Kind of the object.
        kind: Kind,
        /// Empty for cluster-scoped kinds.
        namespace: Arc<str>,
        /// Name of the object.
        name: Arc<str>,
        /// The fields that were read.
        fields: Fields,
    },
    /// A list.
    Listing {
        /// API server that was read.
        source: Source,
        /// Kind of the objects.
        kind: Kind,
        /// `None` for all namespaces.
        namespace: Option<Arc<str>>,
        /// Selector of the list.
        selector: Selector,
        /// What of them matters at once.
        news: News,
    },
    /// See [`Interests::fire`].
    Token(Token),
}

/// One pass of one reader; see [`Interests::begin`].
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    reader: u32,
    generation: u64,
}

/// Reads of all controllers, over all caches of the process.
#[derive(Default)]
pub struct Interests {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_controller: u32,
    next_generation: u64,
    sinks: HashMap<ControllerId, Arc<dyn Wake>>,
    /// Reads of the keys of each controller.
    held: HashMap<ControllerId, usize>,
    ids: HashMap<(ControllerId, Key), u32>,
    readers: Vec<Option<Reader>>,
    free: Vec<u32>,
    kinds: HashMap<(Source, Kind), Readers>,
    tokens: HashMap<Token, Few<u32>>,
}

struct Reader {
    controller: ControllerId,
    key: Key,
    generation: u64,
    /// Reads with the pass that last made them, and the anchor of a listing.
    reads: HashMap<Interest, (u64, Anchor)>,
}

/// Readers of one kind of one source.
#[derive(Default)]
struct Readers {
    /// Controllers of the kind.
    subscribers: Vec<ControllerId>,
    objects: HashMap<Arc<str>, HashMap<Arc<str>, Few<Reads>>>,
    /// By namespace and name.
    fields: HashMap<Id, HashMap<Fields, Few<u32>>>,
    listings: HashMap<Anchor, HashMap<Listing, Few<Reads>>>,
}

type Id = (Arc<str>, Arc<str>);

/// A reader, and what matters to it at once.
type Reads = (u32, News);

type Listing = (Option<Arc<str>>, Selector);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Anchor {
    Owner(Arc<str>),
    Label(Label),
    Namespace(Arc<str>),
    All,
}

impl Interests {
    /// An empty index.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Registers a receiver.
    pub fn register(&self, sink: Arc<dyn Wake>) -> ControllerId {
        let mut state = self.state.lock();
        let id = ControllerId(state.next_controller);
        state.next_controller += 1;
        state.sinks.insert(id, sink);
        id
    }

    /// Removes a receiver, with the reads of its keys.
    pub fn unregister(&self, controller: ControllerId) {
        let mut state = self.state.lock();
        state.sinks.remove(&controller);
        state.held.remove(&controller);
        state.kinds.values_mut().for_each(|readers| readers.subscribers.retain(|id| *id != controller));
        let keys: Vec<_> = state.ids.keys().filter(|(id, _)| *id == controller).cloned().collect();
        for (_, key) in keys {
            state.forget(controller, &key);
        }
    }

    /// Wakes the controller with the key of every object of this kind that changes.
    pub fn subscribe(&self, controller: ControllerId, source: &Source, kind: &Kind) {
        let mut state = self.state.lock();
        let readers = state.kinds.entry((source.clone(), kind.clone())).or_default();
        if !readers.subscribers.contains(&controller) {
            readers.subscribers.push(controller);
        }
    }

    /// Starts a pass of `key`. Reads of earlier passes stay until [`Interests::finish`].
    pub fn begin(&self, controller: ControllerId, key: &Key) -> Reading {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.next_generation += 1;
        let generation = state.next_generation;
        let id = *state.ids.entry((controller, key.clone())).or_insert_with(|| match state.free.pop() {
            Some(id) => id,
            None => {
                state.readers.push(None);
                u32::try_from(state.readers.len() - 1).unwrap_or(u32::MAX)
            }
        });
        if let Some(slot) = state.readers.get_mut(id as usize) {
            let reader =
                slot.get_or_insert_with(|| Reader { controller, key: key.clone(), generation, reads: HashMap::new() });
            reader.generation = generation;
        }
        Reading { reader: id, generation }
    }

    /// Registers a read of this pass. Must be called before the read.
    pub fn note(&self, reading: Reading, interest: Interest) {
        let mut state = self.state.lock();
        state.note(reading, interest);
    }

    /// Ends a pass: reads that it did not repeat are dropped.
    pub fn finish(&self, reading: Reading) {
        let mut state = self.state.lock();
        let Some(reader) = state.reader(reading) else { return };
        let stale: Vec<_> = reader
            .reads
            .extract_if(|_, (generation, _)| *generation != reading.generation)
            .map(|(interest, (_, anchor))| (interest, anchor))
            .collect();
        let controller = reader.controller;
        state.let_go(controller, stale.len());
        for (interest, anchor) in stale {
            state.drop_read(reading.reader, &interest, &anchor);
        }
    }

    /// Drops a key with its reads.
    pub fn forget(&self, controller: ControllerId, key: &Key) {
        self.state.lock().forget(controller, key);
    }

    /// An object appeared, changed, or went. `differs` says whether it did in what is news to somebody; it is asked once for each, and
    /// not of an object that appeared or went.
    pub fn changed(&self, source: &Source, kind: &Kind, change: &Change<'_>, differs: impl Fn(News) -> bool) {
        let (subscribers, woken) = {
            let state = self.state.lock();
            let Some(readers) = state.kinds.get(&(source.clone(), kind.clone())) else { return };
            let subscribers: Vec<_> =
                readers.subscribers.iter().filter_map(|id| state.sinks.get(id).cloned()).collect();
            (subscribers, state.resolve(&readers.affected(change)))
        };
        // Asked outside of the lock, as it parses. Whoever comes meanwhile sees the new state.
        let stays = change.old.is_some() && change.new.is_some();
        let mut known: Vec<(News, bool)> = Vec::new();
        let mut is_news = |news| {
            if let Some((_, is)) = known.iter().find(|(one, _)| *one == news) {
                return *is;
            }
            let is = !stays || differs(news);
            known.push((news, is));
            is
        };
        if !subscribers.is_empty() {
            let urgency = if is_news(News::Any) { Urgency::Now } else { Urgency::Later };
            let key = Key::new(kind, change.namespace, change.name);
            tracing::trace!(%key, version = change.version, ?urgency, "changed");
            subscribers.iter().for_each(|sink| sink.changed(&key, change.version, urgency));
        }
        for (sink, key, sight) in &woken {
            let urgency = match sight {
                Sight::Whole(news) if is_news(*news) => Urgency::Now,
                Sight::Whole(_) => Urgency::Later,
                Sight::Fields(fields) if is_news(News::In(fields)) => Urgency::Now,
                Sight::Fields(_) => continue,
            };
            tracing::trace!(%kind, change.namespace, change.name, ?urgency, %key, "a change wakes");
            sink.changed(key, change.version, urgency);
        }
    }

    /// Wakes the readers of a token.
    pub fn fire(&self, token: &Token) {
        let woken: Vec<_> = {
            let state = self.state.lock();
            state.tokens.get(token).into_iter().flat_map(Few::iter).filter_map(|id| state.reader_of(*id)).collect()
        };
        for (sink, key) in &woken {
            tracing::trace!(?token, %key, "a token wakes");
            sink.wake(key, Urgency::Now);
        }
    }

    /// Whether a key's last pass noted the token.
    pub fn has_readers(&self, token: &Token) -> bool {
        self.state.lock().tokens.contains_key(token)
    }

    /// Number of reads that are remembered for all keys of this pass's controller.
    pub fn held(&self, reading: Reading) -> usize {
        let mut state = self.state.lock();
        let controller = state.reader(reading).map(|reader| reader.controller);
        controller.and_then(|controller| state.held.get(&controller).copied()).unwrap_or_default()
    }

    /// Number of reads of all readers.
    pub fn len(&self) -> usize {
        self.state.lock().readers.iter().flatten().map(|reader| reader.reads.len()).sum()
    }

    /// Whether there are no reads.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl State {
    /// The reader, unless it was dropped or a later pass has begun.
    fn reader(&mut self, reading: Reading) -> Option<&mut Reader> {
        self.readers.get_mut(reading.reader as usize)?.as_mut().filter(|r| r.generation == reading.generation)
    }

    fn note(&mut self, reading: Reading, interest: Interest) {
        let Some(reader) = self.reader(reading) else { return };
        if let Some((generation, _)) = reader.reads.get_mut(&interest) {
            *generation = reading.generation;
            return;
        }
        let anchor = match &interest {
            Interest::Object { source, kind, namespace, name, news } => {
                let readers = self.kinds.entry((source.clone(), kind.clone())).or_default();
                let names = readers.objects.entry(namespace.clone()).or_default();
                names.entry(name.clone()).or_default().insert((reading.reader, *news));
                Anchor::All
            }
            Interest::Fields { source, kind, namespace, name, fields } => {
                let readers = self.kinds.entry((source.clone(), kind.clone())).or_default();
                let by_fields = readers.fields.entry((namespace.clone(), name.clone())).or_default();
                by_fields.entry(*fields).or_default().insert(reading.reader);
                Anchor::All
            }
            Interest::Listing { source, kind, namespace, selector, news } => {
                let readers = self.kinds.entry((source.clone(), kind.clone())).or_default();
                let anchor = readers.anchor(namespace.as_ref(), selector);
                let listings = readers.listings.entry(anchor.clone()).or_default();
                let readers = listings.entry((namespace.clone(), selector.clone())).or_default();
                readers.insert((reading.reader, *news));
                anchor
            }
            Interest::Token(token) => {
                self.tokens.entry(token.clone()).or_default().insert(reading.reader);
                Anchor::All
            }
        };
        if let Some(reader) = self.reader(reading) {
            reader.reads.insert(interest, (reading.generation, anchor));
            let controller = reader.controller;
            *self.held.entry(controller).or_default() += 1;
        }
    }

    fn forget(&mut self, controller: ControllerId, key: &Key) {
        let Some(id) = self.ids.remove(&(controller, key.clone())) else { return };
        let Some(reader) = self.readers.get_mut(id as usize).and_then(Option::take) else { return };
        self.let_go(controller, reader.reads.len());
        for (interest, (_, anchor)) in reader.reads {
            self.drop_read(id, &interest, &anchor);
        }
        self.free.push(id);
    }

    fn let_go(&mut self, controller: ControllerId, reads: usize) {
        if let Some(held) = self.held.get_mut(&controller) {
            *held = held.saturating_sub(reads);
        }
    }

    /// Removes a read from the index, with maps that become empty.
    fn drop_read(&mut self, id: u32, interest: &Interest, anchor: &Anchor) {
        match interest {
            Interest::Object { source, kind, namespace, name, news } => {
                let Some(readers) = self.kinds.get_mut(&(source.clone(), kind.clone())) else { return };
                let Some(names) = readers.objects.get_mut(namespace) else { return };
                remove_from(names, name, &(id, *news));
                if names.is_empty() {
                    readers.objects.remove(namespace);
                }
                self.drop_kind_if_unread(source, kind);
            }
            Interest::Fields { source, kind, namespace, name, fields } => {
                let Some(readers) = self.kinds.get_mut(&(source.clone(), kind.clone())) else { return };
                let object = (namespace.clone(), name.clone());
                let Some(by_fields) = readers.fields.get_mut(&object) else { return };
                remove_from(by_fields, fields, &id);
                if by_fields.is_empty() {
                    readers.fields.remove(&object);
                }
                self.drop_kind_if_unread(source, kind);
            }
            Interest::Listing { source, kind, namespace, selector, news } => {
                let Some(readers) = self.kinds.get_mut(&(source.clone(), kind.clone())) else { return };
                let Some(listings) = readers.listings.get_mut(anchor) else { return };
                remove_from(listings, &(namespace.clone(), selector.clone()), &(id, *news));
                if listings.is_empty() {
                    readers.listings.remove(anchor);
                }
                self.drop_kind_if_unread(source, kind);
            }
            Interest::Token(token) => remove_from(&mut self.tokens, token, &id),
        }
    }

    fn drop_kind_if_unread(&mut self, source: &Source, kind: &Kind) {
        let scope = (source.clone(), kind.clone());
        if self.kinds.get(&scope).is_some_and(Readers::is_empty) {
            self.kinds.remove(&scope);
        }
    }

    fn reader_of(&self, id: u32) -> Option<(Arc<dyn Wake>, Key)> {
        let reader = self.readers.get(id as usize)?.as_ref()?;
        Some((self.sinks.get(&reader.controller)?.clone(), reader.key.clone()))
    }

    fn resolve(&self, affected: &HashSet<(u32, Sight)>) -> Vec<(Arc<dyn Wake>, Key, Sight)> {
        let with_sight = |(id, sight): &(u32, Sight)| self.reader_of(*id).map(|(sink, key)| (sink, key, *sight));
        affected.iter().filter_map(with_sight).collect()
    }
}

/// What a reader sees of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sight {
    /// All of it.
    Whole(News),
    /// Some fields: it is never told of others.
    Fields(Fields),
}

impl Readers {
    fn is_empty(&self) -> bool {
        self.subscribers.is_empty() && self.objects.is_empty() && self.fields.is_empty() && self.listings.is_empty()
    }

    /// The owner, or the exact label that the fewest other listings share.
    fn anchor(&self, namespace: Option<&Arc<str>>, selector: &Selector) -> Anchor {
        if let Some(owner) = selector.owner() {
            return Anchor::Owner(owner.clone());
        }
        selector
            .exact()
            .map(|(key, value)| Anchor::Label((key.clone(), value.clone())))
            .min_by_key(|anchor| self.listings.get(anchor).map_or(0, HashMap::len))
            .unwrap_or_else(|| namespace.map_or(Anchor::All, |namespace| Anchor::Namespace(namespace.clone())))
    }

    fn affected(&self, change: &Change<'_>) -> HashSet<(u32, Sight)> {
        let Change { namespace, name, .. } = *change;
        let mut affected = HashSet::new();
        let whole = |(id, news): &Reads| (*id, Sight::Whole(*news));
        if let Some(readers) = self.objects.get(namespace).and_then(|names| names.get(name)) {
            affected.extend(readers.iter().map(whole));
        }
        if let Some(by_fields) = self.fields.get(&(Arc::from(namespace), Arc::from(name))) {
            let of = |(fields, readers): (&Fields, &Few<u32>)| {
                let fields = *fields;
                readers.iter().map(move |id| (*id, Sight::Fields(fields))).collect::<Vec<_>>()
            };
            affected.extend(by_fields.iter().flat_map(of));
        }
        let mut visited = HashSet::new();
        for marks in [change.old, change.new].into_iter().flatten() {
            let anchors = [Anchor::All, Anchor::Namespace(namespace.into())]
                .into_iter()
                .chain(marks.owners.iter().cloned().map(Anchor::Owner))
                .chain(marks.labels.iter().cloned().map(Anchor::Label));
            for anchor in anchors {
                let Some((anchor, listings)) = self.listings.get_key_value(&anchor) else { continue };
                for (listing, readers) in listings {
                    let (scope, selector) = listing;
                    if scope.as_ref().is_none_or(|scope| **scope == *namespace)
                        && !visited.contains(&(anchor, listing))
                        && marks.match_by(selector)
                    {
                        visited.insert((anchor, listing));
                        affected.extend(readers.iter().map(whole));
                    }
                }
            }
        }
        affected
    }
}

/// A set, of one member mostly.
struct Few<T>(Vec<T>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord> Few<T> {
    fn insert(&mut self, one: T) {
        if let Err(at) = self.0.binary_search(&one) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, one);
        }
    }

    fn remove(&mut self, one: &T) {
        if let Ok(at) = self.0.binary_search(one) {
            self.0.remove(at);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

fn remove_from<K: Hash + Eq, T: Ord>(map: &mut HashMap<K, Few<T>>, key: &K, one: &T) {
    if let Some(readers) = map.get_mut(key) {
        readers.remove(one);
        if readers.0.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
