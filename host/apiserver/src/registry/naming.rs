//! Validation of names, and `generateName`.

use rand::RngExt as _;

use crate::catalog::Resource;
use crate::status::Cause;

/// As upstream: without vowels and look-alikes.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
const LONGEST: usize = 63;

pub(super) fn generate(base: &str) -> String {
    let mut end = base.len().min(LONGEST - SUFFIX);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut random = rand::rng();
    let suffix = (0..SUFFIX).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())]));
    base[..end].chars().chain(suffix).collect()
}

pub(super) fn uid() -> String {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
}

pub(super) fn check(resource: &Resource, name: &str) -> Option<Cause> {
    let invalid = |why: &str| {
        let message = format!("Invalid value: \"{name}\": {why}");
        Some(Cause { reason: "FieldValueInvalid".into(), message, field: "metadata.name".into() })
    };
    // RBAC names are free as long as they fit into a path.
    if resource.group == "rbac.authorization.k8s.io" {
        return if name == "." || name == ".." || name.contains(['/', '%']) {
            invalid("may not contain '/' or '%', or be '.' or '..'")
        } else {
            None
        };
    }
    let label_only = matches!(resource.store.as_str(), "namespaces" | "services");
    let longest = if label_only { LONGEST } else { 253 };
    if name.len() > longest {
        return invalid(&format!("must be no more than {longest} characters"));
    }
    let word = |part: &str| {
        let alphanumeric = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.bytes().all(|c| alphanumeric(c) || c == b'-')
            && part.bytes().next().is_some_and(alphanumeric)
            && part.bytes().last().is_some_and(alphanumeric)
    };
    if label_only {
        if word(name) {
            return None;
        }
        return invalid(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character \
             (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        );
    }
    if name.split('.').all(word) {
        return None;
    }
    invalid(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric \
         character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_keep_their_base_and_fit_into_a_label() {
        let name = generate("machine-");
        assert!(name.starts_with("machine-") && name.len() == 13, "{name}");
        assert_eq!(generate(&"a".repeat(80)).len(), 63);
    }

    #[test]
    fn uids_are_version_4_uuids() {
        let uid = uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"));
    }
}
