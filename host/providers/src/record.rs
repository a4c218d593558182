//! Recordings of provider calls: the last ones of each provider in memory, for rehearsals, and on request all of them
//! in files.
//!
//! Calls do not wait for it: recordings go to a ring and, for files, into a bounded queue with a writing thread. A full
//! queue drops and counts them.

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

/// Recordings of one host. Clones share them.
#[derive(Clone)]
pub struct Recordings(Arc<Shared>);

struct Shared {
    kept: Mutex<HashMap<String, Kept>>,
    writer: Option<Writer>,
    folder: Option<PathBuf>,
    all: bool,
    count: RecordingMetrics,
}

/// State of one provider.
#[derive(Default)]
struct Kept {
    last: Ring,
    follower: Option<Follower>,
}

/// Where and for whom files are written.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Folder; created with mode 0700 for the first recording.
    pub folder: PathBuf,
    /// Largest total size in bytes; the oldest files are removed first.
    pub limit: u64,
    /// Whether all calls are written, or only those of providers with `spec.record`.
    pub all: bool,
}

/// Metrics of recordings and rehearsed calls.
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

/// Result of a call that a candidate was to rehearse.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
pub(crate) enum Rehearsed {
    /// Same outcome.
    Same,
    Different,
    /// Not rehearsed for lack of time.
    Dropped,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    provider: String,
    result: Became,
}

/// What became of a recording; a label of `capwasm_recordings_total`.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
enum Became {
    Written,
    /// The queue was full.
    Dropped,
    /// The tape was too long.
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
    /// Keeps the last calls of recorded providers, and writes files if `files` says so.
    ///
    /// # Errors
    /// When the writing thread cannot be started.
    pub fn new(files: Option<FileOptions>, count: RecordingMetrics) -> std::io::Result<Self> {
        let all = files.as_ref().is_some_and(|files| files.all);
        let folder = files.as_ref().map(|files| std::path::absolute(&files.folder)).transpose()?;
        let writer = files.map(|files| Writer::start(files, count.clone())).transpose()?;
        Ok(Recordings(Arc::new(Shared { kept: Mutex::default(), writer, folder, all, count })))
    }

    /// The recorder of a provider's calls; `None` unless it asks for `files` or for `rehearsals` of its next component,
    /// since recordings contain what the provider saw of Secrets.
    pub fn recorder(&self, provider: &str, files: bool, rehearsals: bool) -> Option<Arc<dyn Recorder>> {
        let files = self.0.writer.is_some() && (self.0.all || files);
        let recorder = OfProvider { recordings: self.clone(), provider: provider.to_owned(), files };
        (files || rehearsals).then(|| Arc::new(recorder) as Arc<dyn Recorder>)
    }

    /// The last calls of a provider, oldest first.
    pub fn recent(&self, provider: &str) -> Vec<Arc<Recording>> {
        self.0.kept.lock().get(provider).map(|kept| kept.last.all()).unwrap_or_default()
    }

    /// The last calls of a provider, oldest first, and all later ones, without gap or repetition. Replaces an earlier
    /// follower.
    pub(crate) fn follow(&self, provider: &str) -> (Vec<Arc<Recording>>, Followed) {
        let mut kept = self.0.kept.lock();
        let kept = kept.entry(provider.to_owned()).or_default();
        let (follower, followed) = followed::queue();
        kept.follower = Some(follower);
        (kept.last.all(), followed)
    }

    /// Counts calls that a candidate was to rehearse.
    pub(crate) fn rehearsed(&self, provider: &str, result: Rehearsed, calls: u64) {
        self.0.count.rehearsed(provider, result, calls);
    }

    /// Folder of files; `None` when none are written.
    pub fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    /// Drops the calls of an uninstalled provider.
    pub fn forget(&self, provider: &str) {
        self.0.kept.lock().remove(provider);
    }

    /// Waits until the queue is written; nothing is written afterwards.
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
