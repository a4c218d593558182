//! Texts of cached objects, compressed.
//!
//! Objects of a kind are alike, also those of different clusters: LZ4 with one of them as its dictionary leaves a tenth to a quarter of
//! Cluster API's, where LZ4 alone leaves a third to two thirds. It takes one to two microseconds, and less than one to read it.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Weak},
};

use parking_lot::{Mutex, RwLock};

use crate::kind::Kind;

/// Longest dictionary in bytes: reading it in is a part of each compression.
const LONGEST_SAMPLE: usize = 8 << 10;

/// Samples by kind, shared by the caches of all clusters, as long as there is one.
static SAMPLES: LazyLock<Mutex<HashMap<Kind, Weak<Samples>>>> = LazyLock::new(Mutex::default);

/// What texts of a kind are compressed with.
pub(super) struct Samples(RwLock<Arc<[u8]>>);

/// The text of an object.
pub(super) struct Text {
    sample: Arc<[u8]>,
    length: usize,
    packed: Box<[u8]>,
}

impl Samples {
    /// The ones of this kind.
    pub(super) fn of(kind: &Kind) -> Arc<Self> {
        let mut all = SAMPLES.lock();
        if let Some(samples) = all.get(kind).and_then(Weak::upgrade) {
            return samples;
        }
        all.retain(|_, samples| samples.strong_count() > 0);
        let samples = Arc::new(Self(RwLock::new(Arc::default())));
        all.insert(kind.clone(), Arc::downgrade(&samples));
        samples
    }

    pub(super) fn pack(&self, text: &str) -> Text {
        let sample = self.sample(text.as_bytes());
        let packed = lz4_flex::block::compress_with_dict(text.as_bytes(), &sample);
        Text { sample, length: text.len(), packed: packed.into_boxed_slice() }
    }

    /// The sample for the next text. A text that is longer by half becomes the sample of those after it: a young object lacks what is
    /// alike in grown ones.
    fn sample(&self, text: &[u8]) -> Arc<[u8]> {
        let sample = self.0.read().clone();
        let text = &text[..text.len().min(LONGEST_SAMPLE)];
        if text.len() > sample.len() + sample.len() / 2 {
            *self.0.write() = text.into();
        }
        sample
    }
}

impl Text {
    /// Bytes that are held for it.
    pub(super) fn size(&self) -> usize {
        self.packed.len()
    }

    /// Bytes of the text as it was.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The text as it was.
    ///
    /// # Errors
    /// Never, unless memory is damaged.
    pub(super) fn unpack(&self) -> Result<String, serde_json::Error> {
        let bytes = lz4_flex::block::decompress_with_dict(&self.packed, self.length, &self.sample)
            .map_err(serde::de::Error::custom)?;
        String::from_utf8(bytes).map_err(serde::de::Error::custom)
    }

    /// Whether both are the same text.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.length == other.length && matches!((self.unpack(), other.unpack()), (Ok(one), Ok(other)) if one == other)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn kind(name: &str) -> Kind {
        Kind::new("test", "v1", name, "tests", true)
    }

    #[test]
    fn texts_come_back_as_they_were_whatever_the_sample_became_meanwhile() {
        let samples = Samples::of(&kind("Grows"));
        let texts: Vec<String> = (0..40).map(|i| format!("{i} é {}", "0123456789é".repeat(i * i))).collect();
        let packed: Vec<Text> = texts.iter().map(|text| samples.pack(text)).collect();
        for (text, packed) in texts.iter().zip(&packed) {
            assert_eq!(packed.unpack().unwrap(), *text);
        }
        assert!(packed[7].is(&samples.pack(&texts[7])) && !packed[7].is(&packed[8]));
        assert!(samples.0.read().len() <= LONGEST_SAMPLE);
        assert_eq!(samples.pack("").unpack().unwrap(), "");
    }

    #[test]
    fn what_an_object_shares_with_others_of_its_kind_costs_little() {
        let object = |name: &str| {
            let conditions: Vec<String> =
                (0..20).map(|i| format!("{{\"type\":\"{:x}\"}}", i * 7_919_777_u64)).collect();
            format!("{{\"name\":\"{name}\",\"conditions\":[{}]}}", conditions.join(","))
        };
        let one = Samples::of(&kind("Alike"));
        let first = one.pack(&object("first"));
        let second = Samples::of(&kind("Alike")).pack(&object("second"));
        assert!(second.size() * 4 < first.size(), "{} and {}", first.size(), second.size());
    }

    #[test]
    fn samples_go_with_their_last_cache() {
        let known = |name: &str| SAMPLES.lock().contains_key(&kind(name));
        drop(Samples::of(&kind("Gone")));
        let _other = Samples::of(&kind("Other"));
        assert!(!known("Gone") && known("Other"));
    }
}
