//! How a version is written: its fields, and a checksum of them and of the place where they are.
//!
//! | bytes | |
//! |---|---|
//! | 8 | revision of the version before, or 0 |
//! | 8 | revision of the creation |
//! | 1 | flags: 1 deleted, 2 with a checksum |
//! | 4 | length of the key |
//! | | key, then JSON |
//! | 4 | CRC-32 of the place and of all before |
//!
//! Integers are big-endian. Versions of stores that were begun without checksums have none until they are written again.

use bytes::Bytes;

use super::backend::Version;

const DELETED: u8 = 1;
const CHECKED: u8 = 2;

/// Where a version is: keyspace and revision.
pub(super) type Place = [u8; 12];

pub(super) fn place(keyspace: u32, revision: u64) -> Place {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&keyspace.to_be_bytes());
    bytes[4..].copy_from_slice(&revision.to_be_bytes());
    bytes
}

pub(super) fn encode(place: &Place, version: &Version) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(25 + version.key.len() + version.data.len());
    bytes.extend_from_slice(&version.previous.to_be_bytes());
    bytes.extend_from_slice(&version.created.to_be_bytes());
    bytes.push(CHECKED | if version.deleted { DELETED } else { 0 });
    bytes.extend_from_slice(&u32::try_from(version.key.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(version.key.as_bytes());
    bytes.extend_from_slice(&version.data);
    let sum = checksum(place, &bytes);
    bytes.extend_from_slice(&sum);
    bytes
}

/// Reads what [`encode`] wrote at this place; `checked` when it must have a checksum.
///
/// # Errors
/// What is wrong with it.
pub(super) fn decode(place: &Place, bytes: &[u8], checked: bool) -> Result<Version, &'static str> {
    let flags = *bytes.get(16).ok_or("it is too short")?;
    let bytes = if flags & CHECKED != 0 {
        let (bytes, sum) = bytes.split_last_chunk::<4>().ok_or("it is too short")?;
        if checksum(place, bytes) != *sum {
            return Err("its checksum is another");
        }
        bytes
    } else if checked {
        return Err("its checksum is gone");
    } else {
        bytes
    };
    fields(bytes).ok_or("it is not a record")
}

fn fields(bytes: &[u8]) -> Option<Version> {
    let (previous, rest) = bytes.split_first_chunk::<8>()?;
    let (created, rest) = rest.split_first_chunk::<8>()?;
    let (flags, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (key, data) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some(Version {
        key: std::str::from_utf8(key).ok()?.into(),
        previous: u64::from_be_bytes(*previous),
        created: u64::from_be_bytes(*created),
        deleted: flags & DELETED != 0,
        data: Bytes::copy_from_slice(data),
    })
}

fn checksum(place: &Place, bytes: &[u8]) -> [u8; 4] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(place);
    sum.update(bytes);
    sum.finalize().to_be_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_record_is_what_was_written_there_or_none() {
        let version = Version {
            key: "things\0a\0b".into(),
            previous: 3,
            created: 1,
            deleted: false,
            data: Bytes::from_static(br#"{"a":1}"#),
        };
        let here = place(1, 7);
        let written = encode(&here, &version);
        assert_eq!(decode(&here, &written, true).unwrap(), version);
        assert!(decode(&place(1, 8), &written, true).is_err(), "at another place");
        for length in 0..written.len() {
            assert!(decode(&here, &written[..length], true).is_err(), "cut to {length}");
        }
        for bit in 0..written.len() * 8 {
            let mut flipped = written.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&here, &flipped, true).is_err(), "bit {bit}");
        }
        // As before there were checksums.
        let mut unchecked = written[..written.len() - 4].to_vec();
        unchecked[16] = 0;
        assert_eq!(decode(&here, &unchecked, false).unwrap(), version);
        assert_eq!(decode(&here, &unchecked, true), Err("its checksum is gone"));
    }
}
