//! Conversion between answers of imports and values on a tape.

use bytes::Bytes;

use super::{Answered, Given};
use crate::etcd::EtcdMember;
use crate::http::HttpResponse;
use crate::pki::Pair;
use crate::refused::{Refusal, Refused};

/// A value that an import returns.
pub trait OnTape: Sized {
    /// The value as it is recorded.
    fn given(&self) -> Given;
    /// The value of a recording; `None` if it is of another form.
    fn taken(given: Given) -> Option<Self>;
}

impl Answered {
    /// The answer as the value of its request.
    ///
    /// # Errors
    /// The recorded refusal. A tape that a person changed may also have what the request cannot be answered with.
    pub fn take<T: OnTape>(self) -> Result<T, Refused> {
        let message = "the recorded answer is none to this request";
        match self {
            Answered::Given(given) => {
                T::taken(given).ok_or_else(|| Refused::new(Refusal::Invalid, "BrokenRecording", message))
            }
            Answered::Refused(refused) => Err(refused),
        }
    }
}

macro_rules! on_tape {
    ($type:ty, $value:ident => $given:expr, $pattern:pat => $taken:expr) => {
        impl OnTape for $type {
            fn given(&self) -> Given {
                let $value = self;
                $given
            }

            fn taken(given: Given) -> Option<Self> {
                match given {
                    $pattern => Some($taken),
                    _ => None,
                }
            }
        }
    };
}

on_tape!((), _value => Given::Done, Given::Done => ());
on_tape!(String, value => Given::Text(value.clone()), Given::Text(text) => text);
on_tape!(Vec<String>, value => Given::Texts(value.clone()), Given::Texts(texts) => texts);
on_tape!(Vec<u8>, value => Given::Bytes(value.clone()), Given::Bytes(bytes) => bytes);
on_tape!(u64, value => Given::Number(*value), Given::Number(number) => number);
on_tape!(HttpResponse<Bytes>, value => Given::Response(value.clone()), Given::Response(response) => response);
on_tape!(Vec<EtcdMember>, value => Given::Members(value.clone()), Given::Members(members) => members);
on_tape!(Pair, value => Given::Pair(value.clone()), Given::Pair(pair) => pair);
on_tape!((String, String), value => Given::Keys(value.0.clone(), value.1.clone()),
    Given::Keys(public, private) => (public, private));
