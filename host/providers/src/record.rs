//! What the host keeps of the calls that its providers got: the last of each in memory, for rehearsing a successor, and
//! all of them in files where that is asked for.
//!
//! A call never waits for any of this. It leaves its recording with a ring and, when files are wanted, in a bounded queue
//! whose thread writes them; what finds the queue full is dropped and counted.

mod files;
mod ring;
mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use capwasm_runtime::record::{Recorder, Recording};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub use self::files::{FolderError, RecordingFolder};
use self::ring::Ring;
use self::writer::Writer;

/// The recordings of one host. Clones are the same.
#[derive(Clone)]
pub struct Recordings(Arc<Shared>);

struct Shared {
    kept: Mutex<HashMap<String, Ring>>,
    writer: Option<Writer>,
    all: bool,
    count: RecordingMetrics,
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
pub struct RecordingMetrics(Family<Labels, Counter>);

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
    /// Registers `capwasm_recordings_total`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = RecordingMetrics::default();
        registry.register(
            "capwasm_recordings",
            "Recordings of provider calls that were to be files",
            metrics.0.clone(),
        );
        metrics
    }

    fn count(&self, provider: &str, result: Became) {
        self.0.get_or_create(&Labels { provider: provider.to_owned(), result }).inc();
    }
}

impl Recordings {
    /// Keeps the last calls of the providers that are recorded, and writes files as `files` says; without it, none.
    ///
    /// # Errors
    /// When the writing thread cannot be started.
    pub fn new(files: Option<FileOptions>, count: RecordingMetrics) -> std::io::Result<Self> {
        let all = files.as_ref().is_some_and(|files| files.all);
        let writer = files.map(|files| Writer::start(files, count.clone())).transpose()?;
        Ok(Recordings(Arc::new(Shared { kept: Mutex::default(), writer, all, count })))
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
        self.0.kept.lock().get(provider).map(Ring::all).unwrap_or_default()
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
            let ring = match kept.get_mut(&self.provider) {
                Some(ring) => ring,
                None => kept.entry(self.provider.clone()).or_default(),
            };
            ring.push(recording.clone(), bytes);
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
