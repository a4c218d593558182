//! Limits of what an API server answers: headers, one body, one line of a watch, and time.
//!
//! Who controls a workload cluster's API server sends what he likes for as long as he likes. [`Bounded`] reads up to a limit
//! and then fails, by which the stream or connection ends; nothing is unpacked on the way.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// Limits of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Time of a connection, and from a request to the head of its answer.
    pub(crate) head: Duration,
    /// Time of a body, unless it is a watch's, which takes as long as it takes.
    pub(crate) body: Duration,
    /// Bytes of headers.
    pub(crate) header_bytes: usize,
    /// Bytes of a body, unless it is a watch's.
    pub(crate) body_bytes: usize,
    /// Bytes of a line of a watch: one event.
    pub(crate) line_bytes: usize,
    /// Bytes of a whole watch, which is then begun anew. Servers end one after five minutes.
    pub(crate) watch_bytes: usize,
    /// Bytes of memory that a body takes when it is parsed.
    pub(crate) body_memory: usize,
    /// The same of a line of a watch.
    pub(crate) line_memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            header_bytes: 64 << 10,
            // A page of a list; etcd takes objects of up to 1.5 MiB.
            body_bytes: 64 << 20,
            line_bytes: 8 << 20,
            watch_bytes: 256 << 20,
            // A page of 500 objects of 45 KiB, and three times the largest object that etcd takes.
            body_memory: 256 << 20,
            line_memory: 64 << 20,
        }
    }
}

/// What the values of a JSON text take in memory once they are parsed, counted before that: `{"":0},` takes a hundred times its text. An
/// estimate from above, of one byte after the other.
#[derive(Debug, Default)]
struct Memory {
    bytes: usize,
    in_text: bool,
    escaped: bool,
}

impl Memory {
    /// The first node of an object, with room for eleven fields.
    const OBJECT: usize = 640;
    /// The place of a value in a list that grows, or of a field in further nodes.
    const VALUE: usize = 128;

    fn add(&mut self, data: &[u8]) -> usize {
        for byte in data {
            self.bytes += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                b'{' => self.bytes += Self::OBJECT,
                b'[' | b',' => self.bytes += Self::VALUE,
                _ => {}
            }
        }
        self.bytes
    }
}

/// An answer that is not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BoundsError {
    #[error("the API server's answer is larger than {0} bytes")]
    Body(usize),
    #[error("an event of the API server's watch is larger than {0} bytes")]
    Line(usize),
    #[error("a watch of the API server brought more than {0} bytes")]
    Watch(usize),
    #[error("the API server's answer takes more than {0} bytes of memory")]
    BodyMemory(usize),
    #[error("an event of the API server's watch takes more than {0} bytes of memory")]
    LineMemory(usize),
    #[error("the API server's answer was not complete after {0:?}")]
    Time(Duration),
    #[error("the API server did not answer within {0:?}")]
    Head(Duration),
    #[error("the API server's answer broke off")]
    Broken(#[source] hyper::Error),
}

/// Counts what was read of one body.
#[derive(Debug)]
struct Count {
    limits: Limits,
    is_watch: bool,
    read: usize,
    line: usize,
    memory: Memory,
}

impl Count {
    fn new(limits: Limits, is_watch: bool) -> Self {
        Self { limits, is_watch, read: 0, line: 0, memory: Memory::default() }
    }

    /// Takes what came next.
    fn add(&mut self, data: &[u8]) -> Result<(), BoundsError> {
        self.read += data.len();
        if !self.is_watch {
            let Limits { body_bytes, body_memory, .. } = self.limits;
            if self.read > body_bytes {
                return Err(BoundsError::Body(body_bytes));
            }
            return if self.memory.add(data) > body_memory {
                Err(BoundsError::BodyMemory(body_memory))
            } else {
                Ok(())
            };
        }
        if self.read > self.limits.watch_bytes {
            return Err(BoundsError::Watch(self.limits.watch_bytes));
        }
        for (at, part) in data.split(|byte| *byte == b'\n').enumerate() {
            self.line = part.len() + if at == 0 { self.line } else { 0 };
            if self.line > self.limits.line_bytes {
                return Err(BoundsError::Line(self.limits.line_bytes));
            }
            if at > 0 {
                self.memory = Memory::default();
            }
            if self.memory.add(part) > self.limits.line_memory {
                return Err(BoundsError::LineMemory(self.limits.line_memory));
            }
        }
        Ok(())
    }
}

/// A body that is read within limits.
pub(crate) struct Bounded<B> {
    body: B,
    count: Count,
    /// None for watches.
    time: Option<Pin<Box<Sleep>>>,
}

impl<B> Bounded<B> {
    pub(crate) fn new(body: B, limits: Limits, is_watch: bool) -> Self {
        let time = (!is_watch).then(|| Box::pin(tokio::time::sleep(limits.body)));
        Self { body, count: Count::new(limits, is_watch), time }
    }
}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin> Body for Bounded<B> {
    type Data = Bytes;
    type Error = BoundsError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoundsError>>> {
        if let Some(time) = &mut self.time
            && time.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(BoundsError::Time(self.count.limits.body))));
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(frame) => frame.map_err(BoundsError::Broken)?,
            None => return Poll::Ready(None),
        };
        if let Some(data) = frame.data_ref() {
            self.count.add(data)?;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // What a server says of the length of its body makes nobody set memory aside.
        SizeHint::default()
    }
}

/// Whether a request begins a watch.
pub(crate) fn is_watch(uri: &http::Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits {
        head: Duration::ZERO,
        body: Duration::ZERO,
        header_bytes: 0,
        body_bytes: 10,
        line_bytes: 4,
        watch_bytes: 20,
        body_memory: usize::MAX,
        line_memory: usize::MAX,
    };

    #[test]
    fn bodies_are_counted_whole_and_watches_by_the_line() {
        let rows: [(&str, bool, &[&str], &str); 9] = [
            ("a body as large as may be", false, &["01234", "56789"], "taken"),
            ("a larger one", false, &["01234", "567890"], "Body(10)"),
            ("lines of a body do not matter", false, &["0\n2345\n789"], "taken"),
            ("many short events", true, &["0123\n0123\n", "0123\n"], "taken"),
            ("an event in parts", true, &["01", "23", "\n01", "23\n"], "taken"),
            ("a long event", true, &["01234\n"], "Line(4)"),
            ("a long event in parts", true, &["0\n012", "34"], "Line(4)"),
            ("a long event between others", true, &["0\n01234\n0\n"], "Line(4)"),
            ("events without end", true, &["012\n012\n", "012\n012\n", "012\n012\n"], "Watch(20)"),
        ];
        for (name, is_watch, parts, expected) in rows {
            let mut count = Count::new(SMALL, is_watch);
            let told = parts.iter().try_for_each(|part| count.add(part.as_bytes()));
            let told = told.map_or_else(|error| format!("{error:?}"), |()| "taken".to_owned());
            assert_eq!(told, expected, "{name}");
        }
    }

    #[test]
    fn what_takes_much_memory_is_left_before_it_is_parsed() {
        let limits = Limits { body_memory: 10_000, line_memory: 5_000, ..Limits::default() };
        let dense = |times: usize| format!("[{}]", vec![r#"{"":0}"#; times].join(","));
        let text = format!("\"{}\"", r#"{\"\":0},[\\"#.repeat(300));
        let rows: [(&str, bool, &[String], &str); 7] = [
            ("few objects", false, &[dense(10)], "taken"),
            ("many objects", false, &[dense(20)], "BodyMemory(10000)"),
            ("many in parts", false, &[dense(10), dense(10)], "BodyMemory(10000)"),
            ("many fields and values", false, &[",".repeat(100)], "BodyMemory(10000)"),
            ("what stands in a text", false, &[text], "taken"),
            ("an event of many objects", true, &[dense(10)], "LineMemory(5000)"),
            ("events of few objects", true, &[dense(5) + "\n", dense(5) + "\n" + &dense(5)], "taken"),
        ];
        for (name, is_watch, parts, expected) in rows {
            let mut count = Count::new(limits, is_watch);
            let told = parts.iter().try_for_each(|part| count.add(part.as_bytes()));
            let told = told.map_or_else(|error| format!("{error:?}"), |()| "taken".to_owned());
            assert_eq!(told, expected, "{name}");
        }
        let honest = serde_json::json!({"metadata": {"name": "n", "labels": {"a": "b"}}, "list": [1, 2, {"c": []}]});
        let counted = Memory::default().add(honest.to_string().as_bytes());
        assert!(counted >= capwasm_object::bounded::cost(&honest), "an estimate from above: {counted}");
    }

    #[test]
    fn a_watch_is_known_by_its_query() {
        for (uri, expected) in [
            ("/api/v1/nodes", false),
            ("/api/v1/nodes?limit=500", false),
            ("/api/v1/nodes?&watch=true&timeoutSeconds=290", true),
            ("/api/v1/nodes?watch=1", true),
            ("/api/v1/nodes?watch=false", false),
            ("/api/v1/namespaces/watch=true", false),
        ] {
            assert_eq!(is_watch(&http::Uri::from_static(uri)), expected, "{uri}");
        }
    }
}
