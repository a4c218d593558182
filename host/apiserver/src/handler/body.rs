//! Response bodies: whole documents, lists that are put together while they are sent, and watches that go on.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use http_body::{Frame, SizeHint};

use crate::turn::Turn;

/// Bytes that are sent at a time, but for a comma and the end of a list.
const BLOCK: usize = 64 << 10;

/// Body of a response: a whole document, a list, or the frames of a watch.
pub struct Body {
    kind: Kind,
    /// What the request was charged, until the body is sent.
    _turn: Option<Arc<Turn>>,
}

enum Kind {
    Whole(Bytes),
    List(List),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes), _turn: None }
    }

    pub(crate) fn of(self, turn: Arc<Turn>) -> Self {
        Self { _turn: Some(turn), ..self }
    }

    /// `head`, the items with commas between them, and `tail`. Each item is let go when it is sent: a list of thousands is not in memory
    /// twice.
    pub(crate) fn list(head: &str, items: Vec<Bytes>, tail: &'static str) -> Self {
        let commas = items.len().saturating_sub(1);
        let length = head.len() + items.iter().map(Bytes::len).sum::<usize>() + commas + tail.len();
        let items = items.into_iter();
        let list =
            List { block: BytesMut::from(head.as_bytes()), item: Bytes::new(), items, tail, left: length as u64 };
        Self { kind: Kind::List(list), _turn: None }
    }

    pub(crate) fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { kind: Kind::Stream(Box::pin(chunks)), _turn: None }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Whole(_) => "Body::Whole",
            Kind::List(_) => "Body::List",
            Kind::Stream(_) => "Body::Stream",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().kind {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(block(bytes))))),
            Kind::List(list) => Poll::Ready(list.next().map(|block| Ok(Frame::data(block)))),
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::List(list) => list.left == 0,
            Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::List(list) => SizeHint::with_exact(list.left),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

/// Takes the next block: what a connection has is not charged any more. A copy, as a part of the document would keep the whole.
fn block(document: &mut Bytes) -> Bytes {
    let block = document.split_to(document.len().min(BLOCK));
    if document.is_empty() && block.is_unique() { block } else { Bytes::copy_from_slice(&block) }
}

struct List {
    /// The head, until it is sent.
    block: BytesMut,
    /// What is left of the item before `items`.
    item: Bytes,
    items: std::vec::IntoIter<Bytes>,
    tail: &'static str,
    left: u64,
}

impl List {
    fn next(&mut self) -> Option<Bytes> {
        let mut block = std::mem::take(&mut self.block);
        while block.len() < BLOCK {
            if self.item.is_empty() {
                let Some(item) = self.items.next() else {
                    block.extend_from_slice(std::mem::take(&mut self.tail).as_bytes());
                    break;
                };
                self.item = item;
            }
            let part = self.item.split_to(self.item.len().min(BLOCK - block.len()));
            block.extend_from_slice(&part);
            if self.item.is_empty() && self.items.len() > 0 {
                block.extend_from_slice(b",");
            }
        }
        self.left -= block.len() as u64;
        (!block.is_empty()).then(|| block.freeze())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use http_body::Body as _;

    use super::*;

    /// The blocks of a list, checked against what its size hints say before each.
    fn blocks(items: Vec<Bytes>) -> Vec<usize> {
        let mut expected = b"{[".to_vec();
        expected.extend(items.join(&b','));
        expected.extend(b"]}");
        let mut body = Body::list("{[", items, "]}");
        let (mut sent, mut sizes) = (Vec::new(), Vec::new());
        let mut context = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = {
            assert_eq!(body.size_hint().exact(), Some((expected.len() - sent.len()) as u64));
            assert_eq!(body.is_end_stream(), sent.len() == expected.len());
            Pin::new(&mut body).poll_frame(&mut context)
        } {
            let block = frame.into_data().unwrap();
            sizes.push(block.len());
            sent.extend(block);
        }
        assert!(sent == expected, "{}", String::from_utf8_lossy(&sent));
        sizes
    }

    #[test]
    fn a_list_is_sent_in_blocks_and_says_how_long_it_is() {
        assert_eq!(blocks(Vec::new()), [4]);
        assert_eq!(blocks(vec![Bytes::from_static(b"one")]), [7]);
        assert_eq!(blocks(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]), [11]);
        let large = vec![Bytes::from(vec![b'a'; BLOCK]); 3];
        assert_eq!(blocks(large), [BLOCK, BLOCK, BLOCK, 6]);
        let small = vec![Bytes::from(vec![b'a'; 1023]); 200];
        assert_eq!(blocks(small).len(), 4);
    }
}
