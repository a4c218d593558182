//! Names of created objects: a readable base and a suffix from the owner's uid and a slot, so that a repeated creation
//! finds the existing object.

use sha2::{Digest, Sha256};

/// Longest name that is also valid as a label value or host name.
const LONGEST: usize = 63;
const SUFFIX: usize = 5;
/// Letters and digits of Kubernetes' generated names: without vowels and look-alikes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Five characters from the owner's uid and the slot.
pub fn suffix(owner_uid: &str, slot: &str) -> String {
    let digest = Sha256::new().chain_update(owner_uid).chain_update([0]).chain_update(slot).finalize();
    let number = digest.iter().take(8).fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let base = ALPHABET.len() as u64;
    (0..SUFFIX)
        .scan(number, |rest, _| {
            let digit = *rest % base;
            *rest /= base;
            Some(char::from(ALPHABET[digit as usize]))
        })
        .collect()
}

/// `<base>-<suffix>`, the base cut so that the whole has at most 63 characters.
pub fn child_name(base: &str, owner_uid: &str, slot: &str) -> String {
    let room = LONGEST - SUFFIX - 1;
    let cut = (0..=base.len().min(room)).rev().find(|at| base.is_char_boundary(*at)).unwrap_or(0);
    format!("{}-{}", base[..cut].trim_end_matches(['-', '.']), suffix(owner_uid, slot))
}

/// A name as a label value: itself, or, above 63 characters, a short hash in upstream's form.
pub fn label_value(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hash_{}_z", base64_url(hash.to_be_bytes()))
}

/// The next unused slot, from the owner's record and the slots of its children. The record prevents that the name of a
/// deleted child is used again.
pub fn next_slot<'a>(recorded: Option<&str>, used: impl IntoIterator<Item = &'a str>) -> u64 {
    let recorded = recorded.and_then(|text| text.parse().ok()).unwrap_or(0);
    used.into_iter()
        .filter_map(|slot| slot.parse::<u64>().ok())
        .fold(recorded, |next, slot| next.max(slot.saturating_add(1)))
}

/// Unpadded URL-safe base64 of four bytes: six characters.
fn base64_url(bytes: [u8; 4]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u64::from(u32::from_be_bytes(bytes)) << 4;
    (0..6).rev().map(|group| char::from(DIGITS[(bits >> (group * 6) & 63) as usize])).collect()
}

/// FNV-1a hash (64 bits) as 16 hexadecimal digits, to detect changes of a text. Not collision-resistant.
pub fn fingerprint(text: &str) -> String {
    let sum = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_owner_and_slot_give_the_same_name() {
        assert_eq!(child_name("md", "uid", "0"), child_name("md", "uid", "0"));
        assert_ne!(child_name("md", "uid", "0"), child_name("md", "uid", "1"));
        assert_ne!(suffix("uid", "11"), suffix("uid1", "1"));
        assert_eq!(suffix("uid", "0").len(), 5);
    }

    #[test]
    fn a_long_base_is_cut_to_63_characters_without_a_double_dash() {
        let name = child_name(&format!("{}-{}", "a".repeat(56), "b".repeat(40)), "uid", "0");
        assert_eq!(name.len(), 56 + 1 + 5);
        assert!(!name.contains("--"), "{name}");
        assert_eq!(child_name(&"a".repeat(100), "uid", "0").len(), 63);
        assert!(child_name(&"é".repeat(50), "uid", "0").len() <= 63);
    }

    #[test]
    fn a_long_label_value_is_hashed_and_a_short_one_kept() {
        assert_eq!(label_value("short"), "short");
        let hashed = label_value(&"a".repeat(64));
        assert_eq!(hashed.len(), "hash_".len() + 6 + "_z".len());
        assert!(hashed.starts_with("hash_") && hashed.ends_with("_z"));
        // "aaaa" in base64 is "YWFhYQ".
        assert_eq!(base64_url(*b"aaaa"), "YWFhYQ");
    }

    #[test]
    fn a_slot_is_never_given_out_again() {
        for (what, recorded, used, expected) in [
            ("nothing yet", None, vec![], 0),
            ("children seen but not recorded", None, vec!["0", "1"], 2),
            ("the newest child is gone but was recorded", Some("3"), vec!["0"], 3),
            ("a child without a readable slot", Some("x"), vec!["y"], 0),
        ] {
            assert_eq!(next_slot(recorded, used), expected, "{what}");
        }
    }

    /// Vectors of the algorithm's authors; fingerprints stand in the status of objects, so they must not change.
    #[test]
    fn a_fingerprint_is_the_same_for_ever() {
        assert_eq!(fingerprint(""), "cbf29ce484222325");
        assert_eq!(fingerprint("foobar"), "85944171f73967e8");
    }
}
