//! Watch events as newline-delimited JSON.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use serde_json::json;

use super::dispatch::Call;
use super::negotiation::Form;
use super::read;
use crate::catalog::Resource;
use crate::config::Clock;
use crate::registry::{Change, Conversion, Registry, WatchStep, Watching, parse};
use crate::status::{ApiError, ApiResult};
use crate::store::Event;
use crate::table::{self, Column, IncludeObject};
use crate::turn::{self, Turn};

pub(crate) struct Encoder {
    resource: Arc<Resource>,
    conversion: Arc<Conversion>,
    form: Form,
    columns: Vec<Column>,
    include: IncludeObject,
    /// Whether the next Table frame is the first, which defines the columns.
    first: bool,
    clock: Clock,
}

impl Encoder {
    pub fn new(registry: &Registry, call: &Call, resource: &Arc<Resource>, form: Form) -> ApiResult<Self> {
        Ok(Self {
            resource: Arc::clone(resource),
            conversion: Arc::clone(&registry.conversion),
            form,
            columns: if form == Form::Table { read::columns(resource) } else { Vec::new() },
            include: read::include_object(call)?,
            first: true,
            clock: registry.config.clock.clone(),
        })
    }

    async fn frame(&mut self, step: &WatchStep) -> ApiResult<Bytes> {
        match step {
            WatchStep::Initial(data, revision) => self.object(Change::Added, data, *revision).await,
            WatchStep::Event(change, event) => self.event(*change, event).await,
            WatchStep::Bookmark(revision, initial_end) => Ok(self.bookmark(*revision, *initial_end)),
        }
    }

    async fn event(&mut self, change: Change, event: &Event) -> ApiResult<Bytes> {
        let plain = self.form == Form::Json && self.resource.serves_verbatim(&event.data, event.revision);
        let natural = match (event.deleted, event.previous.is_some()) {
            (true, _) => Change::Deleted,
            (false, true) => Change::Modified,
            (false, false) => Change::Added,
        };
        // The common case is written once for all watchers.
        if plain && natural == change {
            return Ok(event.frame.get_or_init(|| wrap(change.as_str(), &event.data)).clone());
        }
        self.object(change, &event.data, event.revision).await
    }

    async fn object(&mut self, change: Change, data: &Bytes, revision: u64) -> ApiResult<Bytes> {
        if self.form != Form::Json || !self.resource.serves_verbatim(data, revision) {
            turn::long(data.len()).await;
        }
        let shown = self.conversion.show(&self.resource, data, revision)?;
        Ok(match self.form {
            Form::Json => wrap(change.as_str(), &shown),
            Form::Metadata => wrap(change.as_str(), read::partial(&shown)?.to_string().as_bytes()),
            Form::Table => {
                let with_columns = std::mem::take(&mut self.first);
                let mut table =
                    table::render(&self.columns, &[parse(&shown)?], &self.clock.stamp(), with_columns, self.include);
                table["metadata"] = json!({"resourceVersion": revision.to_string()});
                wrap(change.as_str(), table.to_string().as_bytes())
            }
        })
    }

    fn bookmark(&self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Json => {
                json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata})
            }
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => {
                json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": [], "rows": []})
            }
        };
        wrap("BOOKMARK", object.to_string().as_bytes())
    }
}

/// `{"type":…,"object":…}` and a newline.
fn wrap(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(object.len() + kind.len() + 24);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(kind.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.freeze()
}

pub(crate) fn error_frame(error: &ApiError) -> Bytes {
    wrap("ERROR", error.to_status().to_string().as_bytes())
}

pub(crate) fn frames(watching: Watching, encoder: Encoder, turn: Arc<Turn>) -> impl Stream<Item = Bytes> + Send {
    futures::stream::unfold(Some((watching, encoder)), move |state| {
        let turn = Arc::clone(&turn);
        async move {
            let (mut watching, mut encoder) = state?;
            let next = turn.run(async move {
                let step = watching.next().await?;
                Some(encoder.frame(&step).await.map(|frame| (frame, Some((watching, encoder)))))
            });
            match next.await {
                Ok(Some(Ok(next))) => Some(next),
                Ok(None) => None,
                Ok(Some(Err(error))) | Err(error) => Some((error_frame(&error), None)),
            }
        }
    })
}
