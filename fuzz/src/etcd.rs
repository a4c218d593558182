//! Answers of an etcd member: a message or an error, whatever the frames say; and no more memory than the frames have.
//!
//! Input: a line of `grpc-status`, one of `grpc-message`, one of `grpc-encoding`, one with the number of a message; the rest is the body.

use std::fmt::Debug;
use std::sync::LazyLock;

use allocation_counter::measure;
use capwasm_etcd::fuzzing::{answer, answered};
use capwasm_etcd::message::{
    AlarmResponse, MemberAddResponse, MemberListResponse, MemberPromoteResponse, MemberRemoveResponse,
    MoveLeaderResponse, StatusResponse,
};
use http::{HeaderMap, HeaderValue};
use prost::Message;
use tokio::runtime::{Builder, Runtime};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Builder::new_current_thread().build().unwrap());

pub fn run(data: &[u8]) {
    let mut parts = data.splitn(5, |byte| *byte == b'\n');
    let [status, message, encoding, number, body] = std::array::from_fn(|_| parts.next().unwrap_or_default());
    let frames = Frames { status, message, encoding, body };
    match number {
        b"1" => frames.check::<MemberListResponse>(),
        b"2" => frames.check::<MemberAddResponse>(),
        b"3" => frames.check::<MemberRemoveResponse>(),
        b"4" => frames.check::<MemberPromoteResponse>(),
        b"5" => frames.check::<AlarmResponse>(),
        b"6" => frames.check::<MoveLeaderResponse>(),
        _ => frames.check::<StatusResponse>(),
    }
}

struct Frames<'a> {
    status: &'a [u8],
    message: &'a [u8],
    encoding: &'a [u8],
    body: &'a [u8],
}

impl Frames<'_> {
    fn check<A: Message + Default + PartialEq + Debug + 'static>(&self) {
        let (mut headers, mut trailers) = (HeaderMap::new(), HeaderMap::new());
        let add = |to: &mut HeaderMap, name: &'static str, value: &[u8]| {
            if let Some(value) = HeaderValue::from_bytes(value).ok().filter(|_| !value.is_empty()) {
                to.insert(name, value);
            }
        };
        add(&mut headers, "grpc-encoding", self.encoding);
        add(&mut trailers, "grpc-status", self.status);
        add(&mut trailers, "grpc-message", self.message);
        let body = bytes::Bytes::copy_from_slice(self.body);
        let mut read = Err(String::new());
        let held = measure(|| read = RUNTIME.block_on(answered::<A>(answer(headers, body, trailers)))).bytes_max;
        // A frame may say that four gigabytes follow; up to four megabytes are believed.
        assert!(held < (5 << 20) + 64 * self.body.len() as u64, "{held} bytes for a body of {}", self.body.len());
        match read {
            Ok(message) => {
                let written = message.encode_to_vec();
                assert_eq!(A::decode(written.as_slice()).as_ref(), Ok(&message), "it is read otherwise than written");
            }
            Err(told) => assert!(!told.is_empty() && told.len() < 4096 + 4 * self.message.len(), "{told}"),
        }
    }
}
