//! Events about objects. A repeated event is counted on one Event object, whose name derives from what it says, so a
//! restart or another replica goes on counting on the same one.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use capwasm_contract::Event;
use capwasm_object::meta;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot};

use crate::{
    cache::{Requests, event_kind},
    metrics::{Metrics, WriteLabels},
};

/// Events waiting to be written at most; further ones are dropped, since events must not delay passes.
const BACKLOG: usize = 4096;
/// Series remembered at most; the oldest are forgotten.
const SERIES: usize = 8192;

/// Queues events, and writes them in a task.
pub(super) struct Recorder {
    sender: mpsc::Sender<Message>,
}

enum Message {
    Event(Box<Note>),
    Flush(oneshot::Sender<()>),
}

struct Note {
    controller: String,
    namespace: String,
    name: String,
    involved: Value,
    event: Event,
    at: Timestamp,
}

impl Recorder {
    pub(super) fn start(requests: Requests, metrics: Arc<Metrics>) -> Self {
        let (sender, mut receiver) = mpsc::channel(BACKLOG);
        tokio::spawn(async move {
            let mut book = Book { requests, metrics, series: HashMap::new() };
            while let Some(message) = receiver.recv().await {
                match message {
                    Message::Event(note) => book.write(&note).await,
                    // Whoever flushes may have stopped waiting.
                    Message::Flush(done) => drop(done.send(())),
                }
            }
        });
        Self { sender }
    }

    pub(super) fn record(&self, controller: &str, about: &Value, event: Event) {
        let note = Note::new(controller, about, event, Timestamp::now());
        if self.sender.try_send(Message::Event(Box::new(note))).is_err() {
            tracing::debug!(controller, "too many events, dropped one");
        }
    }

    pub(super) async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.sender.send(Message::Flush(sender)).await.is_ok() {
            // An error means that the task has ended with the runtime.
            let _ = receiver.await;
        }
    }
}

impl Note {
    fn new(controller: &str, about: &Value, event: Event, at: Timestamp) -> Self {
        let field = |name: &str| about[name].as_str().unwrap_or_default();
        let namespace = meta::namespace(about);
        let mut hash = Sha256::new();
        for part in [meta::uid(about), controller, &event.reason, &event.message] {
            hash.update(part.as_bytes());
            hash.update([u8::from(event.warning)]);
        }
        let digest = hex::encode(&hash.finalize()[..8]);
        let about_name = meta::name(about);
        // 253 characters are what the server takes for a name.
        let stem = about_name.get(..about_name.len().min(230)).unwrap_or_default().trim_end_matches(['.', '-']);
        Self {
            controller: controller.to_owned(),
            namespace: if namespace.is_empty() { "default".to_owned() } else { namespace.to_owned() },
            name: format!("{stem}.{digest}"),
            involved: json!({
                "apiVersion": field("apiVersion"),
                "kind": field("kind"),
                "namespace": namespace,
                "name": about_name,
                "uid": meta::uid(about),
                "resourceVersion": meta::resource_version(about),
            }),
            event,
            at,
        }
    }

    fn object(&self) -> Value {
        let at = stamp(self.at);
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": self.namespace, "name": self.name},
            "involvedObject": self.involved,
            "type": if self.event.warning { "Warning" } else { "Normal" },
            "reason": self.event.reason,
            "message": shortened(&self.event.message),
            "source": {"component": self.controller},
            "reportingComponent": self.controller,
            "reportingInstance": "",
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
        })
    }
}

/// The server accepts 1,024 bytes of message.
fn shortened(message: &str) -> &str {
    let mut end = message.len().min(1024);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%FT%TZ").to_string()
}

struct Book {
    requests: Requests,
    metrics: Arc<Metrics>,
    series: HashMap<(String, String), Series>,
}

/// Occurrences of one event.
struct Series {
    count: u64,
    unwritten: u64,
    written: Instant,
}

impl Series {
    /// Time until the next update: the more occurrences, the longer.
    fn interval(&self) -> Duration {
        Duration::from_secs(match self.count {
            ..5 => 2,
            5..20 => 30,
            _ => 300,
        })
    }
}

impl Book {
    async fn write(&mut self, note: &Note) {
        let id = (note.namespace.clone(), note.name.clone());
        if let Some(series) = self.series.get_mut(&id) {
            series.unwritten += 1;
            if series.written.elapsed() < series.interval() {
                return;
            }
            let count = series.count + series.unwritten;
            if self.repeat(note, count).await {
                self.series.insert(id, Series { count, unwritten: 0, written: Instant::now() });
                return;
            }
        }
        let kind = event_kind();
        let answer = self.requests.create(&kind, &note.namespace, &note.object()).await;
        self.count("create", answer.is_ok());
        let count = match answer {
            Ok(_) => 1,
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let held = self.requests.get(&kind, &note.namespace, &note.name).await.ok().flatten();
                let count = held.and_then(|held| held["count"].as_u64()).unwrap_or(0) + 1;
                self.repeat(note, count).await;
                count
            }
            Err(error) => {
                // A terminating namespace takes no events; nothing depends on one.
                tracing::debug!(name = note.name, %error, "unable to write an event");
                return;
            }
        };
        if self.series.len() >= SERIES {
            let mut silent: Vec<_> = self.series.values().map(|series| series.written).collect();
            silent.sort_unstable();
            let middle = silent[silent.len() / 2];
            self.series.retain(|_, series| series.written > middle);
        }
        self.series.insert(id, Series { count, unwritten: 0, written: Instant::now() });
    }

    /// Updates the Event object. Returns `false` when it no longer exists.
    async fn repeat(&self, note: &Note, count: u64) -> bool {
        let patch = json!({"count": count, "lastTimestamp": stamp(note.at)});
        let answer = self.requests.merge(&event_kind(), &note.namespace, &note.name, None, &patch).await;
        self.count("patch", answer.is_ok());
        answer.is_ok()
    }

    fn count(&self, verb: &'static str, ok: bool) {
        self.metrics.count_write(&WriteLabels {
            controller: "events".to_owned(),
            verb,
            group: String::new(),
            kind: "Event".to_owned(),
            place: "management",
            outcome: if ok { "ok" } else { "error" },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_share_a_name_and_others_do_not() {
        let about =
            json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"namespace": "ns", "name": "n", "uid": "u"}});
        let name = |controller: &str, event: Event, seconds| {
            Note::new(controller, &about, event, Timestamp::from_second(seconds).unwrap_or_default()).name
        };
        let first = name("c", Event::normal("R", "m"), 1);
        assert!(first.starts_with("n.") && first.len() == 18, "{first}");
        assert_eq!(first, name("c", Event::normal("R", "m"), 2));
        assert_ne!(first, name("c", Event::warning("R", "m"), 1));
        assert_ne!(first, name("c", Event::normal("R", "other"), 1));
        assert_ne!(first, name("d", Event::normal("R", "m"), 1));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(600)).len(), 1024);
        assert!(shortened(&format!("a{}", "ä".repeat(600))).len() <= 1024);
    }
}
