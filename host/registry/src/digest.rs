//! SHA-256 digests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 hexadecimal digits, which are safe in a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

const PREFIX: &str = "sha256:";

impl Digest {
    /// Digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("{PREFIX}{}", hex::encode(Sha256::digest(bytes))))
    }

    /// The hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0[PREFIX.len()..]
    }

    /// `sha256:<hex>`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest: sha256: and 64 hexadecimal digits in lower case are expected")]
pub struct NotADigest(String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = text
            .strip_prefix(PREFIX)
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        if valid { Ok(Self(text.to_owned())) } else { Err(NotADigest(text.chars().take(80).collect())) }
    }
}

impl TryFrom<String> for Digest {
    type Error = NotADigest;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn only_sha256_in_lower_case_is_a_digest() {
        let empty = Digest::of(b"");
        assert_eq!(empty.as_str(), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(empty.as_str().parse(), Ok(empty.clone()));
        let upper = empty.as_str().to_uppercase().replace("SHA256", "sha256");
        for bad in ["", "sha256:", "sha512:00", &empty.as_str()[..70], &upper, &format!("{empty}0"), "sha256:../../x"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
