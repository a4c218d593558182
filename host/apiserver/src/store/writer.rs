//! The writer thread: commits all waiting changes in one batch, then notifies watchers and callers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::backend::{Batch, Head, Snapshot, StoredKeyspace, Version};
use super::history::History;
use super::keyspace::{Event, Keyspace};
use super::{Change, Retention, Shared, StoreError};

/// Changes in one commit at most.
const BATCH: usize = 1024;
/// Interval of history expiry when nothing is written.
const IDLE: Duration = Duration::from_secs(30);
/// The same while the disk fails: it may have room again.
const MENDING: Duration = Duration::from_secs(3);
/// Least time between two commits, for each change in the first of them: who writes alone hardly waits, and many share the cost.
const PAUSE: Duration = Duration::from_millis(2);
/// Changes for which [`PAUSE`] counts at most.
const SHARING: u32 = 4;

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Command {
    Write { keyspace: Arc<Keyspace>, change: Change, reply: Reply<Arc<Event>> },
    Remove { keyspace: Arc<Keyspace>, reply: Reply<()> },
}

/// A change in the batch, before the commit.
struct Accepted {
    keyspace: Arc<Keyspace>,
    event: Arc<Event>,
    reply: Reply<Arc<Event>>,
}

struct Old {
    keyspace: Arc<Keyspace>,
    revision: u64,
    by: u64,
    bytes: usize,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    revision: u64,
    retention: Retention,
    histories: HashMap<u32, (String, History)>,
    expired: Instant,
    /// When the last commit ended.
    committed: Instant,
    /// Until the next commit after that.
    pause: Duration,
}

impl Writer {
    /// Takes over a database. Superseded versions found in it count as superseded now: their age did not survive.
    pub fn new(shared: Arc<Shared>, revision: u64, retention: Retention) -> Result<Self, StoreError> {
        let mut histories = HashMap::new();
        let now = Instant::now();
        shared.backend.read(&mut |snapshot| {
            for stored in snapshot.keyspaces()? {
                let mut history = History::default();
                snapshot.log(stored.id, 0, &mut |(revision, version)| {
                    // Who reads it is told; here it is only history.
                    let Ok(version) = version else { return Ok(true) };
                    if version.previous != 0 && stands(snapshot, stored.id, version.previous)? {
                        history.push(version.previous, revision, now, version.data.len());
                    }
                    if version.deleted {
                        history.push(revision, revision, now, version.data.len());
                    }
                    Ok(true)
                })?;
                histories.insert(stored.id, (stored.name, history));
            }
            Ok(())
        })?;
        Ok(Self { shared, revision, retention, histories, expired: now, committed: now, pause: Duration::ZERO })
    }

    /// Runs until all senders are dropped.
    pub fn run(mut self, inbox: &Receiver<Command>) {
        loop {
            let mut commands = Vec::new();
            let idle = if self.shared.backend.trouble().is_some() { MENDING } else { IDLE };
            match inbox.recv_timeout(idle) {
                Ok(first) => {
                    commands.push(first);
                    self.gather(inbox, &mut commands);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.work(commands);
        }
    }

    /// Adds what else is written at the same time. Right after a commit it waits a moment for that: each costs the same, however much
    /// is in it.
    fn gather(&self, inbox: &Receiver<Command>, commands: &mut Vec<Command>) {
        commands.extend(inbox.try_iter().take(BATCH - 1));
        while commands.len() < BATCH {
            let left = self.pause.saturating_sub(self.committed.elapsed());
            match inbox.recv_timeout(left) {
                Ok(command) if !left.is_zero() => commands.push(command),
                Ok(command) => return commands.push(command),
                Err(_) => return,
            }
        }
    }

    fn work(&mut self, commands: Vec<Command>) {
        let mut batch = Batch { revision: self.revision, ..Batch::default() };
        let mut accepted: Vec<Accepted> = Vec::new();
        let mut removed = Vec::new();
        let mut heads: HashMap<(u32, Box<str>), Option<Head>> = HashMap::new();
        let mut superseded = Vec::new();
        for command in commands {
            match command {
                Command::Write { keyspace, change, reply } => {
                    match self.accept(&keyspace, change, &mut batch, &mut heads, &mut superseded) {
                        Ok(event) => accepted.push(Accepted { keyspace, event, reply }),
                        // A caller that went away does not need its answer.
                        Err(error) => drop(reply.send(Err(error))),
                    }
                }
                Command::Remove { keyspace, reply } => removed.push((keyspace, reply)),
            }
        }
        self.expire(&mut batch);
        // Removal is its own commit, after the writes that were queued before it.
        let committed = self.commit(&batch);
        self.committed = Instant::now();
        self.pause = PAUSE * u32::try_from(accepted.len()).unwrap_or(SHARING).min(SHARING);
        if committed.is_ok() {
            let now = Instant::now();
            for Old { keyspace, revision, by, bytes } in superseded {
                let history = self
                    .histories
                    .entry(keyspace.id())
                    .or_insert_with(|| (keyspace.name().to_owned(), History::default()));
                history.1.push(revision, by, now, bytes);
            }
            for one in &accepted {
                one.keyspace.set_persisted();
                one.keyspace.publish(&one.event);
            }
            self.revision = batch.revision;
            self.shared.published.send_replace(batch.revision);
        }
        for Accepted { event, reply, .. } in accepted {
            drop(reply.send(committed.clone().map(|()| event)));
        }
        for (keyspace, reply) in removed {
            drop(reply.send(self.remove(&keyspace)));
        }
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let known = self.shared.backend.trouble();
        if batch.is_empty() && known.is_none() {
            return Ok(());
        }
        self.shared.backend.commit(batch).inspect_err(|error| {
            if known.is_none() {
                tracing::error!(%error, "a commit failed");
            }
        })
    }

    /// Adds a change to the batch if its precondition holds.
    fn accept(
        &self,
        keyspace: &Arc<Keyspace>,
        change: Change,
        batch: &mut Batch,
        heads: &mut HashMap<(u32, Box<str>), Option<Head>>,
        superseded: &mut Vec<Old>,
    ) -> Result<Arc<Event>, StoreError> {
        let id = keyspace.id();
        let slot: (u32, Box<str>) = (id, change.key.as_str().into());
        let head = match heads.get(&slot) {
            Some(head) => *head,
            None => {
                let mut head = None;
                self.shared.backend.read(&mut |snapshot| {
                    head = snapshot.head(id, change.key.as_str())?;
                    Ok(())
                })?;
                if head.is_none() {
                    self.shared.damage.check(id, change.key.as_str())?;
                }
                head
            }
        };
        if head.map(|head| head.modified) != change.expected {
            return Err(StoreError::Conflict { current: head.map(|head| head.modified) });
        }
        if !keyspace.persisted() && !batch.keyspaces.iter().any(|stored| stored.id == id) {
            batch.keyspaces.push(StoredKeyspace { name: keyspace.name().to_owned(), id, compacted: 0 });
        }
        batch.revision += 1;
        let revision = batch.revision;
        let created = head.map_or(revision, |head| head.created);
        let data = change.value.stamp(revision);
        let previous = head.map_or(0, |head| head.modified);
        if previous != 0 {
            let bytes = change.previous.as_ref().map_or(0, bytes::Bytes::len);
            superseded.push(Old { keyspace: Arc::clone(keyspace), revision: previous, by: revision, bytes });
        }
        if change.delete {
            superseded.push(Old { keyspace: Arc::clone(keyspace), revision, by: revision, bytes: data.len() });
        }
        heads.insert(slot, (!change.delete).then_some(Head { created, modified: revision }));
        let version =
            Version { key: change.key.as_str().into(), previous, created, deleted: change.delete, data: data.clone() };
        batch.versions.push((id, revision, version));
        Ok(Arc::new(Event::new(revision, change.key, data, change.previous, change.delete)))
    }

    /// Adds purges of expired history to the batch. Cheap when nothing is due: only the fronts are looked at.
    fn expire(&mut self, batch: &mut Batch) {
        let now = Instant::now();
        if now.saturating_duration_since(self.expired) < Duration::from_secs(1) {
            return;
        }
        self.expired = now;
        for (id, (name, history)) in &mut self.histories {
            if let Some((purged, compacted)) = history.expire(&self.retention, now) {
                batch.purged.extend(purged.into_iter().map(|revision| (*id, revision)));
                batch.keyspaces.retain(|stored| stored.id != *id);
                batch.keyspaces.push(StoredKeyspace { name: name.clone(), id: *id, compacted });
            }
        }
        for keyspace in self.shared.keyspaces.lock().by_name.values() {
            keyspace.sweep();
        }
        self.histories.retain(|_, (_, history)| !history.is_empty());
    }

    fn remove(&mut self, keyspace: &Keyspace) -> Result<(), StoreError> {
        let batch = Batch {
            revision: self.revision + 1,
            keyspaces: vec![StoredKeyspace {
                name: keyspace.name().to_owned(),
                id: keyspace.id(),
                compacted: self.revision + 1,
            }],
            removed: vec![keyspace.id()],
            ..Batch::default()
        };
        self.commit(&batch)?;
        self.revision = batch.revision;
        self.histories.remove(&keyspace.id());
        self.shared.damage.forget(keyspace.id());
        keyspace.set_persisted();
        keyspace.disconnect();
        self.shared.published.send_replace(batch.revision);
        Ok(())
    }
}

/// Whether there is a version, readable or not.
fn stands(snapshot: &dyn Snapshot, keyspace: u32, revision: u64) -> Result<bool, StoreError> {
    match snapshot.version(keyspace, revision) {
        Err(StoreError::Corrupt(_)) => Ok(true),
        found => found.map(|found| found.is_some()),
    }
}
