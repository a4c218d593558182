//! Thread that writes recordings. Its queue is bounded in number and bytes, so that no call waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use capwasm_runtime::record::Recording;
use parking_lot::Mutex;

use super::{Became, FileOptions, RecordingFolder, RecordingMetrics};
use crate::reads::chain;

/// Recordings queued at most.
const QUEUE: usize = 256;
/// Bytes queued at most.
const QUEUE_BYTES: usize = 32 << 20;

pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Queued>>>,
    bytes: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Queued {
    recording: Arc<Recording>,
    bytes: usize,
}

impl Writer {
    pub(super) fn start(options: FileOptions, count: RecordingMetrics) -> std::io::Result<Self> {
        let (queue, queued) = sync_channel(QUEUE);
        let bytes = Arc::new(AtomicUsize::new(0));
        let waiting = bytes.clone();
        let thread = std::thread::Builder::new()
            .name("recordings".to_owned())
            .spawn(move || write(&options, &count, &queued, &waiting))?;
        Ok(Writer { queue: Mutex::new(Some(queue)), bytes, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a recording. Returns `false` when the queue is full.
    pub(super) fn offer(&self, recording: Arc<Recording>, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let queued = before + bytes <= QUEUE_BYTES
            && self.queue.lock().as_ref().is_some_and(|queue| queue.try_send(Queued { recording, bytes }).is_ok());
        if !queued {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        queued
    }

    pub(super) async fn close(&self) {
        // The thread ends with its queue.
        self.queue.lock().take();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // A panic of the thread was printed when it happened.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

fn write(options: &FileOptions, count: &RecordingMetrics, queued: &Receiver<Queued>, waiting: &AtomicUsize) {
    let mut folder = None;
    let mut told = false;
    while let Ok(Queued { recording, bytes }) = queued.recv() {
        let opened = match folder.take() {
            Some(folder) => Ok(folder),
            None => RecordingFolder::create(&options.folder).map_err(|error| chain(&error)),
        };
        let written = opened.and_then(|mut open| {
            let added = open.add(&recording, options.limit);
            // One that cannot be written may have been removed: it is made again for the next.
            folder = added.is_ok().then_some(open);
            added.map_err(|error| format!("unable to write into {}: {error}", options.folder.display()))
        });
        waiting.fetch_sub(bytes, Ordering::Relaxed);
        match written {
            Ok(()) => {
                told = false;
                count.count(&recording.provider, Became::Written);
            }
            Err(error) => {
                // Once, not for each call: the next ones fail for the same reason.
                if !std::mem::replace(&mut told, true) {
                    tracing::warn!(%error, "recordings are lost");
                }
                count.count(&recording.provider, Became::Failed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::super::Recordings;
    use super::*;
    use crate::rehearse::testing::recording;

    fn recordings(folder: &std::path::Path, all: bool) -> Recordings {
        let options = FileOptions { folder: folder.to_owned(), limit: u64::MAX, all };
        Recordings::new(Some(options), RecordingMetrics::default()).unwrap()
    }

    fn counted(recordings: &Recordings, result: Became) -> u64 {
        let labels = super::super::Labels { provider: "p".into(), result };
        recordings.0.count.files.get_or_create(&labels).get()
    }

    #[tokio::test]
    async fn what_is_queued_is_written_before_the_end() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("recordings");
        let recordings = recordings(&folder, false);
        let recorder = recordings.recorder("p", true, false).unwrap();
        let quiet = recordings.recorder("q", false, true).unwrap();
        assert!(recordings.recorder("r", false, false).is_none(), "nobody has a use for its calls");
        for id in ["a", "b"] {
            recorder.take(recording(id));
            quiet.take(recording(id));
        }
        recordings.close().await;
        assert_eq!(RecordingFolder::open(&folder).unwrap().last("p", 0).unwrap().len(), 2);
        assert_eq!(counted(&recordings, Became::Written), 2);
        assert_eq!((recordings.recent("p").len(), recordings.recent("q").len()), (2, 2));
        recorder.take(recording("late"));
        assert_eq!(counted(&recordings, Became::Dropped), 1, "nobody writes any more");
    }

    #[tokio::test]
    async fn a_full_queue_drops_and_counts() {
        let root = tempfile::tempdir().unwrap();
        let recordings = recordings(&root.path().join("recordings"), true);
        let recorder = recordings.recorder("p", false, false).unwrap();
        let mut large = recording("large");
        large.facts.configuration = "x".repeat(QUEUE_BYTES);
        recorder.take(large);
        recorder.lost();
        recordings.close().await;
        assert_eq!(counted(&recordings, Became::Dropped), 1);
        assert_eq!(counted(&recordings, Became::TooLong), 1);
        assert_eq!(counted(&recordings, Became::Written), 0);
    }

    #[tokio::test]
    async fn a_folder_that_somebody_removed_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("recordings");
        let recordings = recordings(&folder, true);
        let recorder = recordings.recorder("p", false, false).unwrap();
        let written = async |count: u64, result: Became| {
            while counted(&recordings, result) < count {
                tokio::task::yield_now().await;
            }
        };
        recorder.take(recording("a"));
        written(1, Became::Written).await;
        std::fs::remove_dir_all(&folder).unwrap();
        recorder.take(recording("b"));
        written(1, Became::Failed).await;
        recorder.take(recording("c"));
        recordings.close().await;
        assert_eq!(RecordingFolder::open(&folder).unwrap().last("p", 0).unwrap()[0].facts.id, "c");
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_written_is_counted_and_stops_nothing() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a-file");
        std::fs::write(&file, "").unwrap();
        let recordings = recordings(&file, true);
        recordings.recorder("p", false, false).unwrap().take(recording("a"));
        recordings.close().await;
        assert_eq!(counted(&recordings, Became::Failed), 1);
        assert_eq!(recordings.recent("p").len(), 1);
    }
}
