//! What the host keeps of the calls that its providers got: the last of each in memory, for rehearsing a successor, and
//! all of them in files where that is asked for.
//!
//! A call never waits for any of this. It leaves its recording with a ring and, when files are wanted, in a bounded queue
//! whose thread writes them; what finds the queue full is dropped and counted.

mod files;
mod followed;
mod ring;
mod writer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capwasm_runtime::record::{Recorder, Recording};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub use self::files::{FolderError, RecordingFolder};
pub(crate) use self::followed::Followed;
use self::followed::Follower;
use self::ring::Ring;
use self::writer::Writer;

/// The recordings of one host. Clones are the same.
#[derive(Clone)]
pub struct Recordings(Arc<Shared>);

struct Shared {
    kept: Mutex<HashMap<String, Kept>>,
    writer: Option<Writer>,
    folder: Option<PathBuf>,
    all: bool,
    count: RecordingMetrics,
}

/// What is kept of one provider.
#[derive(Default)]
struct Kept {
    last: Ring,
    follower: Option<Follower>,
}

/// Where files go, and whose.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The folder; made with mode 0700 when the first recording is written.
    pub folder: PathBuf,
    /// Bytes of all recordings in it; the oldest go first.
    pub limit: u64,
    /// Whether every provider's calls are written, or only those of providers that ask for it (`spec.record`).
    pub all: bool,
}

/// What became of recordings, for `/metrics`.
#[derive(Clone, Default)]
pub struct RecordingMetrics {
    files: Family<Labels, Counter>,
    rehearsals: Family<RehearsalLabels, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RehearsalLabels {
    provider: String,
    result: Rehearsed,
}

/// What became of a call that a waiting candidate was to make as well.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
pub(crate) enum Rehearsed {
    /// It came to the same.
    Same,
    /// It did not.
    Different,
    /// There was no time for it.
    Dropped,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    provider: String,
    result: Became,
}

/// What became of a recording.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
enum Became {
    /// It is in a file.
    Written,
    /// The queue was full.
    Dropped,
    /// Its tape was too long.
    TooLong,
    /// The file could not be written.
    Failed,
}

impl RecordingMetrics {
    /// Registers `capwasm_recordings_total` and `capwasm_rehearsed_calls_total`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = RecordingMetrics::default();
        registry.register(
            "capwasm_recordings",
            "Recordings of provider calls that were to be files",
            metrics.files.clone(),
        );
        registry.register(
            "capwasm_rehearsed_calls",
            "Calls that components made without effect while they waited to serve",
            metrics.rehearsals.clone(),
        );
        metrics
    }

    fn count(&self, provider: &str, result: Became) {
        self.files.get_or_create(&Labels { provider: provider.to_owned(), result }).inc();
    }

    fn rehearsed(&self, provider: &str, result: Rehearsed, calls: u64) {
        // What never happened is no line.
        if calls > 0 {
            self.rehearsals.get_or_create(&RehearsalLabels { provider: provider.to_owned(), result }).inc_by(calls);
        }
    }
}

impl Recordings {
    /// Keeps the last calls of the providers that are recorded, and writes files as `files` says; without it, none.
    ///
    /// # Errors
    /// When the writing thread cannot be started.
    pub fn new(files: Option<FileOptions>, count: RecordingMetrics) -> std::io::Result<Self> {
        let all = files.as_ref().is_some_and(|files| files.all);
        let folder = files.as_ref().map(|files| std::path::absolute(&files.folder)).transpose()?;
        let writer = files.map(|files| Writer::start(files, count.clone())).transpose()?;
        Ok(Recordings(Arc::new(Shared { kept: Mutex::default(), writer, folder, all, count })))
    }

    /// The recorder of a provider's calls, if there is a use for them: `files` is whether it asks for files, `rehearsals` whether
    /// its next component is rehearsed. Otherwise nothing is kept: a recording has what the provider saw of Secrets.
    pub fn recorder(&self, provider: &str, files: bool, rehearsals: bool) -> Option<Arc<dyn Recorder>> {
        let files = self.0.writer.is_some() && (self.0.all || files);
        let recorder = OfProvider { recordings: self.clone(), provider: provider.to_owned(), files };
        (files || rehearsals).then(|| Arc::new(recorder) as Arc<dyn Recorder>)
    }

    /// The last calls of a provider, the oldest first.
    pub fn recent(&self, provider: &str) -> Vec<Arc<Recording>> {
        self.0.kept.lock().get(provider).map(|kept| kept.last.all()).unwrap_or_default()
    }

    /// The last calls of a provider, the oldest first, and all that end from now on: none is missed in between, none comes twice. Whoever
    /// followed it before gets no more of them.
    pub(crate) fn follow(&self, provider: &str) -> (Vec<Arc<Recording>>, Followed) {
        let mut kept = self.0.kept.lock();
        let kept = kept.entry(provider.to_owned()).or_default();
        let (follower, followed) = followed::queue();
        kept.follower = Some(follower);
        (kept.last.all(), followed)
    }

    /// Counts calls that a waiting candidate was to make.
    pub(crate) fn rehearsed(&self, provider: &str, result: Rehearsed, calls: u64) {
        self.0.count.rehearsed(provider, result, calls);
    }

    /// Where files go; none when none are written.
    pub fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    /// Forgets the calls of a provider that is gone.
    pub fn forget(&self, provider: &str) {
        self.0.kept.lock().remove(provider);
    }

    /// Returns once everything that is queued is in its file; nothing is written any more afterwards.
    pub async fn close(&self) {
        if let Some(writer) = &self.0.writer {
            writer.close().await;
        }
    }
}

struct OfProvider {
    recordings: Recordings,
    provider: String,
    files: bool,
}

impl Recorder for OfProvider {
    fn take(&self, recording: Recording) {
        let (bytes, recording) = (recording.bytes(), Arc::new(recording));
        let shared = &self.recordings.0;
        {
            let mut kept = shared.kept.lock();
            let kept = match kept.get_mut(&self.provider) {
                Some(kept) => kept,
                None => kept.entry(self.provider.clone()).or_default(),
            };
            kept.last.push(recording.clone(), bytes);
            if let Some(follower) = &kept.follower {
                match follower.push(recording.clone(), bytes) {
                    Some(lost) => shared.count.rehearsed(&self.provider, Rehearsed::Dropped, lost),
                    None => kept.follower = None,
                }
            }
        }
        if let Some(writer) = shared.writer.as_ref().filter(|_| self.files)
            && !writer.offer(recording, bytes)
        {
            shared.count.count(&self.provider, Became::Dropped);
        }
    }

    fn lost(&self) {
        self.recordings.0.count.count(&self.provider, Became::TooLong);
    }
}
